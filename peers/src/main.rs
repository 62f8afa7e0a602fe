//! Builds and runs `measure`, which compares Dunlin with other ways to call another process
//! (`docs/peers.md`): `cargo run --release -p peers`.
//!
//! The measuring program is a workspace of its own, because it uses more libraries than all of
//! Dunlin. In this workspace they would be in the `Cargo.lock` of every contributor, and the
//! features that they need in shared libraries would make cargo compile Dunlin's crates again.
//!
//! Exit codes: the measuring program's; 1, it cannot be built; 2, wrong arguments; 130, Ctrl-C.
#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../measure/src/aims.rs"]
mod aims;
#[path = "../measure/src/args.rs"]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the program that is built does what is asked for")
)]
mod args;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use clap::Parser;

use crate::args::Args;

/// The exit code that a shell expects of a program that Ctrl-C stopped: 128 and the number of the
/// signal.
const STOPPED: u8 = 130;

fn main() -> ExitCode {
    // Prints help and mistakes before minutes of building.
    Args::parse();
    run().unwrap_or_else(|error| {
        eprintln!("peers: {error:#}");
        ExitCode::FAILURE
    })
}

/// Returns only if cargo cannot build or start the program.
fn run() -> anyhow::Result<ExitCode> {
    let target = target()?;
    let built = cargo("build", &target).status();
    let built = built.context("cannot start cargo")?;
    if !built.success() {
        // The build has ended without an exit code: a signal ended it.
        if built.code().is_none() {
            return Ok(ExitCode::from(STOPPED));
        }
        bail!(
            "cannot build the programs that Dunlin is compared with; cargo has printed the reason. \
             The first build needs the network, for tonic, tarpc, quinn and their dependencies"
        );
    }
    // Replaces this process by cargo, and cargo by the program, so signals and the exit code are
    // the program's own.
    let error = cargo("run", &target)
        .args(["--quiet", "--"])
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).context("cannot start cargo")
}

fn cargo(verb: &str, target: &Path) -> Command {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("measure/Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args([verb, "--release", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target);
    cargo
}

/// A folder next to this program's own folder in the target directory, wherever that is.
fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let target = program.ancestors().nth(2);
    Ok(target
        .context("the path of this program has no folder")?
        .join("peers"))
}

#[cfg(test)]
mod tests;
