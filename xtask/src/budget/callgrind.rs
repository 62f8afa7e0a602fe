//! Runs the example under callgrind and reads the cost of each side: instructions, stores and loads
//! in its turns, including those of the functions that the turns call.
//!
//! Callgrind collects only inside `counted`, so set-up and warm-up do not count. Its profile
//! contains the cost of each call from there, so one run gives the costs of both sides.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Callgrind's names for these events, in the order of [`Cost`].
const EVENTS: [&str; 3] = ["Ir", "Dw", "Dr"];

/// Names of the counted events, in the order of [`Cost`].
pub(super) const UNITS: [&str; 3] = ["instructions", "stores", "loads"];

/// Names of the sides, in the order of [`Sides`].
pub(super) const SIDES: [&str; 2] = ["client", "server"];

/// The example's function for each side's part.
const TURNS: [&str; 2] = ["::client_turn", "::server_turn"];

/// Instructions, stores and loads.
pub(super) type Cost<T> = [T; 3];

/// Client and server.
pub(super) type Sides<T> = [Cost<T>; 2];

/// Counts the cost of an RPC or of an iteration at each side. The profile stays in the file
/// `profile`.
pub(super) fn count(program: &Path, args: &[String], profile: &Path) -> anyhow::Result<Sides<f64>> {
    let mut file = std::ffi::OsString::from("--callgrind-out-file=");
    file.push(profile);
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes"])
        // Without these options, valgrind would simulate caches like the machine's own, and stop if
        // it does not know them. Cache misses are not counted here.
        .args(["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"])
        .arg("--toggle-collect=*shm_rpc::counted*")
        .arg(file)
        .arg(program)
        .args(args)
        .output()
        .context("cannot start valgrind; install the package of that name")?;
    ensure!(
        out.status.success(),
        "{} {} failed under valgrind:\n{}",
        program.display(),
        args.join(" "),
        String::from_utf8_lossy(&out.stderr)
    );
    let done = String::from_utf8_lossy(&out.stdout);
    let done: f64 = done.trim().parse().with_context(|| {
        format!("the example printed {done:?} where a number of RPCs was expected")
    })?;
    let text = std::fs::read_to_string(profile)
        .with_context(|| format!("cannot read {}", profile.display()))?;
    let sides = sides(&text).with_context(|| format!("{}", profile.display()))?;
    // All numbers are far below 2^52.
    Ok(sides.map(|cost| cost.map(|number| number as f64 / done)))
}

/// The cost of all calls of each side's turns in a profile.
fn sides(profile: &str) -> anyhow::Result<Sides<u64>> {
    let columns = columns(profile)?;
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut sides = Sides::default();
    let mut callee = "";
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = function(line) {
            // Where a number is used for the first time, its name follows.
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            let name = *names.entry(id).or_insert(name);
            if line.starts_with('c') {
                callee = name;
            }
        } else if line.starts_with("calls=") {
            let cost = lines.next().context("a call without its cost")?;
            for (side, turn) in sides.iter_mut().zip(TURNS) {
                if callee.contains(turn) {
                    add(side, cost, columns)?;
                }
            }
        }
    }
    for (side, turn) in sides.iter().zip(TURNS) {
        ensure!(side[0] != 0, "no instruction was counted in {turn}");
    }
    Ok(sides)
}

/// The name after `fn=` or `cfn=`.
fn function(line: &str) -> Option<&str> {
    line.strip_prefix("fn=")
        .or_else(|| line.strip_prefix("cfn="))
}

/// The columns of our events in a line of costs; the first event has column 0.
fn columns(profile: &str) -> anyhow::Result<[usize; 3]> {
    let events = profile
        .lines()
        .find_map(|line| line.strip_prefix("events: "));
    let events: Vec<&str> = events.context("no line `events:`")?.split(' ').collect();
    let mut columns = [0; 3];
    for (column, wanted) in columns.iter_mut().zip(EVENTS) {
        *column = events
            .iter()
            .position(|event| *event == wanted)
            .with_context(|| format!("callgrind did not count {wanted}"))?;
    }
    Ok(columns)
}

/// Adds a line of costs: a position, and then a number for each event; trailing zeros are omitted.
fn add(side: &mut Cost<u64>, line: &str, columns: [usize; 3]) -> anyhow::Result<()> {
    let numbers: Vec<&str> = line.split_whitespace().skip(1).collect();
    for (sum, column) in side.iter_mut().zip(columns) {
        if let Some(number) = numbers.get(column) {
            let number: u64 = number.parse().with_context(|| format!("cost `{line}`"))?;
            *sum += number;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
