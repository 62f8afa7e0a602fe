//! The coverage of the receive path: which outcomes of its conditions, and which of its regions,
//! the tests and the fuzz corpora reach. `cargo xtask coverage` builds `dunlin-wire` and
//! `dunlin-core` with the compiler's own counters. It runs their tests and the tests of
//! `dunlin-testkit`, some of which replay the corpora in `fuzz/`, and fails if they reach less than
//! [`LEAST`].
//!
//! `report.rs` explains the counts. It is a test build, so the conditions of `debug_assert` count
//! too. Their failing sides are never reached, which lowers the result.

mod report;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use report::Report;

/// Least share of the outcomes, and of the regions, that must be reached.
const LEAST: f64 = 0.95;

/// The files that handle received packets, from their bytes to the handler or the completion.
const RECEIVE_PATH: [&str; 27] = [
    "crates/wire/src/header.rs",
    "crates/wire/src/extension.rs",
    "crates/wire/src/numbers.rs",
    "crates/wire/src/residence.rs",
    "crates/core/src/packet/receive.rs",
    "crates/core/src/session/token_check.rs",
    "crates/core/src/endpoint/event_loop.rs",
    "crates/core/src/endpoint/plain.rs",
    "crates/core/src/session/line.rs",
    "crates/core/src/session/line/credits.rs",
    "crates/core/src/session/proof.rs",
    "crates/core/src/endpoint/arrived.rs",
    "crates/core/src/endpoint/dispatch.rs",
    "crates/core/src/server/requests.rs",
    "crates/core/src/server/inbound.rs",
    "crates/core/src/server/requests/answers.rs",
    "crates/core/src/server/requests/packets.rs",
    "crates/core/src/server/requests/plain.rs",
    "crates/core/src/client/calls.rs",
    "crates/core/src/client/calls/answers.rs",
    "crates/core/src/client/calls/parts.rs",
    "crates/core/src/client/calls/plain.rs",
    "crates/core/src/transfer/scoreboard.rs",
    "crates/core/src/transfer/reassembly.rs",
    "crates/core/src/transfer/transfers.rs",
    "crates/core/src/transfer/transfers/large_responses.rs",
    "crates/core/src/transfer/transfers/silence.rs",
];

/// The tests to build: unit tests and integration tests, but not the examples in comments.
const TESTS: [&str; 9] = [
    "+nightly",
    "test",
    "--quiet",
    "--locked",
    "--package=dunlin-wire",
    "--package=dunlin-core",
    "--package=dunlin-testkit",
    "--lib",
    "--tests",
];

/// Chooses the tests that run. The test with random steps is left out: it takes longest, it reaches
/// the same code as the corpus, and a run without it is repeatable.
const FILTER: [&str; 3] = ["--", "--skip", "endpoints_keep_their_promises"];

/// Adds counters for regions and for both outcomes of each condition. The latter option is
/// unstable.
const INSTRUMENT: &str = "-Cinstrument-coverage -Zcoverage-options=branch";

/// Prints a table and the places that are not reached; true if enough of them are.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let home = home(root)?;
    let profiles = home.join("profiles");
    // Counters of an earlier build must not count for this one.
    if profiles.exists() {
        std::fs::remove_dir_all(&profiles).context("cannot remove the profiles of another run")?;
    }
    std::fs::create_dir_all(&profiles).context("cannot make a folder for the profiles")?;
    let programs = build(root, &home)?;
    let status = tests(root, &home).args(FILTER).status();
    let status = status.context("cannot start cargo")?;
    ensure!(status.success(), "the tests fail");
    let merged = merge(&profiles, &home)?;
    let counts = export(root, &merged, &programs)?;
    let report = Report::read(&counts, root, &RECEIVE_PATH)?;
    print!("{report}");
    Ok(report.is_enough(LEAST))
}

/// A target folder only for this command: in the usual one, its flags would cause everything to be
/// rebuilt.
fn home(root: &Path) -> anyhow::Result<PathBuf> {
    Ok(crate::workspaces::target_folder(root)?.join("coverage"))
}

/// The command that runs the tests.
fn tests(root: &Path, home: &Path) -> Command {
    // This is not the cargo that runs xtask, because only rustup's `cargo` accepts the name of a
    // toolchain.
    let mut command = Command::new("cargo");
    command
        .args(TESTS)
        .current_dir(root)
        .env("CARGO_TARGET_DIR", home)
        .env("RUSTFLAGS", INSTRUMENT)
        // Threads that increment the same counters slow each other down tenfold.
        .env("RUST_TEST_THREADS", "1")
        .env("LLVM_PROFILE_FILE", home.join("profiles/%p-%m.profraw"));
    command
}

/// Builds the tests; returns their programs.
fn build(root: &Path, home: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let out = tests(root, home)
        .args(["--no-run", "--message-format=json"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(out.status.success(), "the tests do not build");
    let text = String::from_utf8(out.stdout).context("cargo printed no text")?;
    let mut programs = Vec::new();
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).context("cargo printed no JSON")?;
        programs.extend(message["executable"].as_str().map(PathBuf::from));
    }
    ensure!(!programs.is_empty(), "cargo named no test");
    Ok(programs)
}

/// Puts the counters of all programs into one file.
fn merge(profiles: &Path, home: &Path) -> anyhow::Result<PathBuf> {
    let merged = home.join("merged.profdata");
    let mut merge = llvm("llvm-profdata")?;
    merge.args(["merge", "-sparse", "-o"]).arg(&merged);
    for entry in std::fs::read_dir(profiles)? {
        merge.arg(entry?.path());
    }
    ensure!(
        merge.status()?.success(),
        "llvm-profdata cannot merge the counters"
    );
    Ok(merged)
}

/// The counts of every region and every condition of the receive path.
fn export(root: &Path, merged: &Path, programs: &[PathBuf]) -> anyhow::Result<Value> {
    let mut export = llvm("llvm-cov")?;
    export.args(["export", "-format=text", "-instr-profile"]);
    export.arg(merged);
    for program in programs {
        export.arg("-object").arg(program);
    }
    export.arg("-sources");
    export.args(RECEIVE_PATH.iter().map(|file| root.join(file)));
    let out = export.output()?;
    ensure!(
        out.status.success(),
        "llvm-cov: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).context("llvm-cov printed no JSON")
}

/// A tool of the toolchain's component `llvm-tools`, because its version must match the compiler's.
fn llvm(tool: &str) -> anyhow::Result<Command> {
    let out = Command::new("rustc")
        .args(["+nightly", "--print", "target-libdir"])
        .output()
        .context("cannot start rustc")?;
    let text = String::from_utf8(out.stdout).context("rustc printed no text")?;
    let path = Path::new(text.trim()).with_file_name("bin").join(tool);
    ensure!(
        path.exists(),
        "{tool} is missing: rustup component add --toolchain nightly llvm-tools"
    );
    Ok(Command::new(path))
}

#[cfg(test)]
mod tests;
