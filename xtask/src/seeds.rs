//! `cargo xtask seeds`: builds the simulator in the measured profile, with its planted bugs, and
//! passes its arguments on. The program itself is `crates/sim/src/bin/seeds.rs`.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Arguments for the program.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the program; true if no checker found a fault.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["run", "--quiet", "--release", "--package", "dunlin-sim"])
        .args(["--features", "mutants", "--bin", "seeds", "--"])
        .args(&args.arguments)
        .status()
        .context("cargo cannot be started")?;
    Ok(status.success())
}
