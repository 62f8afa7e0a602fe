//! Runs a program under callgrind and reads the cost of each side: instructions, stores and loads
//! in its functions, including the functions that they call.
//!
//! Callgrind collects only inside `counted`, so set-up and warm-up do not count. Its profile
//! contains the cost of each call from there, so one run gives the costs of both sides. For calls
//! into an object that does not count, the profile also names the callers' callers, so their cost
//! can be subtracted from the side that made them.

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

/// Callers of a function that the profile tells apart: enough to reach the function of a side.
const CALLERS: u32 = 8;

/// The functions that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Part of the name of each side's function.
    pub(super) sides: [&'static str; 2],
    /// Whether the server of some rows is in another thread, whose work does not count.
    pub(super) client_alone: bool,
    /// Calls in them that do not count.
    pub(super) without: Option<Without>,
}

/// Calls into an object, by functions with these names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Without {
    pub(super) callers: &'static str,
    pub(super) object: &'static str,
}

/// Instructions, stores and loads.
pub(super) type Cost<T> = [T; 3];

/// Client and server.
pub(super) type Sides<T> = [Cost<T>; 2];

/// Counts the cost of an RPC or of an iteration at each side. The profile stays in the file
/// `profile`.
pub(super) fn count(
    program: &Path,
    args: &[String],
    profile: &Path,
    counted: Counted,
) -> anyhow::Result<Sides<f64>> {
    let mut file = std::ffi::OsString::from("--callgrind-out-file=");
    file.push(profile);
    let apart = counted.without.map(|it| it.callers);
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes"])
        // Without these options, valgrind would simulate caches like the machine's own, and stop if
        // it does not know them. Cache misses are not counted here.
        .args(["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"])
        .arg("--toggle-collect=*instructions::counted*")
        .args(apart.map(|callers| format!("--separate-callers{CALLERS}={callers}")))
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
    let sides = sides(&text, counted).with_context(|| format!("{}", profile.display()))?;
    // All numbers are far below 2^52.
    Ok(sides.map(|cost| cost.map(|number| number as f64 / done)))
}

/// The cost of all calls of each side's functions in a profile, less the cost of the calls that do
/// not count.
fn sides(profile: &str, counted: Counted) -> anyhow::Result<Sides<u64>> {
    let columns = columns(profile)?;
    let (mut functions, mut objects) = (Names::default(), Names::default());
    let (mut sides, mut less) = (Sides::default(), Sides::default());
    let (mut caller, mut callee, mut object) = ("", "", "");
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("fn=") {
            caller = functions.find(name);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = functions.find(name);
        } else if let Some(name) = line.strip_prefix("cob=") {
            object = objects.find(name);
        } else if let Some(name) = line.strip_prefix("ob=") {
            objects.find(name);
        } else if line.starts_with("calls=") {
            let cost = lines.next().context("a call without its cost")?;
            for (at, part) in counted.sides.into_iter().enumerate() {
                if is_call_of(callee, part) && !caller.contains(part) {
                    add(&mut sides[at], cost, columns)?;
                }
                if counted.without.is_some_and(|it| object.contains(it.object))
                    && caller.contains(part)
                {
                    add(&mut less[at], cost, columns)?;
                }
            }
            // The next call is in the caller's object unless it names another.
            object = "";
        }
    }
    for (at, (side, part)) in sides.iter().zip(counted.sides).enumerate() {
        let may_be_idle = at > 0 && counted.client_alone;
        ensure!(
            side[0] != 0 || may_be_idle,
            "no instruction was counted in {part}"
        );
    }
    if let Some(without) = counted.without {
        let is_complete = less.iter().all(|side| side[0] != 0);
        ensure!(is_complete, "no call into {} was found", without.object);
    }
    Ok(std::array::from_fn(|side| {
        std::array::from_fn(|unit| sides[side][unit] - less[side][unit])
    }))
}

/// Whether a function, named with its callers after it, is one of a side.
fn is_call_of(function: &str, part: &str) -> bool {
    let own = function.split('\'').next().unwrap_or_default();
    own.contains(part)
}

/// The names of a profile, by their numbers. Where a number is used for the first time, its name
/// follows.
#[derive(Default)]
struct Names<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    fn find(&mut self, text: &'a str) -> &'a str {
        let (id, name) = text.split_once(' ').unwrap_or((text, ""));
        self.0.entry(id).or_insert(name)
    }
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
