//! The instruction budget: how many instructions an RPC of 32 bytes costs on both sides together,
//! over shared memory, and whether that is more than `budget.toml` allows.
//!
//! The example `shm_rpc` executes the same instructions in every run. Callgrind counts those of the
//! client's turns and those of the server's, for a short and a long run; the difference belongs to
//! the RPCs alone, without set-up. Other work on the machine does not change the numbers; the
//! compiler does.

mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use table::{Budget, Verdict};

const FILE: &str = "budget.toml";

/// What runs under callgrind, and how it is built.
const EXAMPLE: &str = "shm_rpc";
const BUILD: [&str; 7] = [
    "build",
    "--quiet",
    "--release",
    "--locked",
    "--package=dunlin-transport",
    "--example",
    EXAMPLE,
];

/// Modes of the example; the budget file has a number for each.
const MODES: [&str; 2] = ["one", "batch"];

/// Functions of the example whose instructions are counted, those that they call included.
const SIDES: [&str; 2] = ["client_turn", "server_turn"];

/// RPCs of the short and of the long run.
const SHORT: u64 = 10_000;
const LONG: u64 = 30_000;

/// Prints a table; true if everything is within its budget.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let text = std::fs::read_to_string(root.join(FILE)).context("cannot read budget.toml")?;
    let budgets = table::parse(&text)?;
    let program = build(root)?;
    println!("instructions per RPC of 32 bytes over shared memory");
    println!(
        "{:8} {:>8} {:>8} {:>8} {:>8}",
        "", "client", "server", "both", "budget"
    );
    let mut is_within = true;
    for mode in MODES {
        let budget = Budget::find(&budgets, mode)?;
        let [client, server] = [
            per_rpc(&program, mode, SIDES[0])?,
            per_rpc(&program, mode, SIDES[1])?,
        ];
        let both = client + server;
        println!(
            "{mode:8} {client:>8.1} {server:>8.1} {both:>8.1} {:>8}",
            budget.instructions
        );
        let verdict = budget.judge(both);
        is_within &= verdict != Verdict::Above;
        if let Some(advice) = budget.advice(both) {
            println!("{advice}");
        }
    }
    Ok(is_within)
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(BUILD)
        .current_dir(root)
        .status();
    ensure!(
        status.context("cannot start cargo")?.success(),
        "the example does not build"
    );
    let metadata = crate::tidy::metadata(root)?;
    let target = metadata["target_directory"].as_str();
    let target = Path::new(target.context("cargo metadata names no target directory")?);
    Ok(target.join("release/examples").join(EXAMPLE))
}

fn per_rpc(program: &Path, mode: &str, side: &str) -> anyhow::Result<f64> {
    let short = count(program, mode, side, SHORT)?;
    let long = count(program, mode, side, LONG)?;
    let more = long.checked_sub(short).filter(|more| *more > 0);
    let more = more.context("a longer run executed no more instructions")?;
    // Both are far below 2^52.
    Ok(more as f64 / (LONG - SHORT) as f64)
}

/// Instructions of one side's turns in one run.
fn count(program: &Path, mode: &str, side: &str, rpcs: u64) -> anyhow::Result<u64> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{side}*"))
        .arg(program)
        .args([mode, &rpcs.to_string()])
        .output()
        .context("cannot start valgrind; install the package of that name")?;
    let log = String::from_utf8_lossy(&out.stderr);
    ensure!(
        out.status.success(),
        "{} failed under valgrind:\n{log}",
        program.display()
    );
    table::collected(&log).with_context(|| format!("callgrind printed no count:\n{log}"))
}
