//! The command as a user runs it. Spans are short, because these tests do not judge speed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod captured;
mod command;
mod compare;
mod dpdk;
mod experiments;
#[cfg(feature = "kv")]
mod kv;
mod report;
#[cfg(all(feature = "index", feature = "replica", feature = "sequencer"))]
mod services;
mod simulated;
mod traced;
mod turns;
mod wireshark;
mod xdp;

use std::process::{Command, Output, Stdio};

use turns::turn;

const FIELDS: [&str; 16] = [
    "experiment",
    "transport",
    "params",
    "metric",
    "unit",
    "median",
    "min",
    "max",
    "runs",
    "baseline",
    "baseline_name",
    "ratio",
    "valid",
    "measured",
    "state",
    "run",
];

/// The command, ready to start.
fn dunlin(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dunlin"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(args: &[&str]) -> Output {
    let _turn = turn();
    dunlin(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
