//! `cargo xtask hostile`: builds the attackers, and passes its arguments on. The program itself is
//! the crate `dunlin-hostile`, which only this command builds.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Arguments for the program.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the program and returns its exit code, which tells whether it found nothing, found a fault,
/// or was stopped by Ctrl-C.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "dunlin-hostile",
            "--",
        ])
        .args(&args.arguments)
        .status()
        .context("cargo cannot be started")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(STOPPED))
}

/// The exit code of a program that a signal ended, such as the signal of Ctrl-C.
const STOPPED: u8 = 130;
