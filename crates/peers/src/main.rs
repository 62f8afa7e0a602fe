//! Builds and runs `measure`, which compares Dunlin with other ways to call another process
//! (`docs/peers.md`): `cargo run --release -p peers`.
//!
//! The program proper is a workspace of its own, because it is made of more libraries than all of
//! Dunlin. In this one they would stand in everybody's `Cargo.lock`, and what they ask of libraries
//! that both use would have the crates of Dunlin compiled anew, with other features.
#![forbid(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("measure/Cargo.toml");
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    // Beside this program's own folder in the target directory, wherever that is.
    let target = program
        .ancestors()
        .nth(2)
        .context("this program lies nowhere")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // This process becomes cargo, and cargo the program: signals and the exit code are its own.
    let error = Command::new(cargo)
        .args(["run", "--release", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target.join("peers"))
        .arg("--")
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).context("cannot start cargo")
}
