//! The command gopt: `gopt IN.c` transforms a C file, `gopt bench` measures what interleaving
//! gains on this machine.
//!
//! Exit codes: 0, the command did its work; 1, it failed; 2, the arguments are wrong; 130, Ctrl-C
//! stopped it.
#![forbid(unsafe_code)]

mod bench;
mod translate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use harness::process::{self, RoleArgs};
use harness::{machine, signal};

/// The exit code that a shell expects of a program that Ctrl-C stopped: 128 and the number of the
/// signal.
const STOPPED: u8 = 130;

/// Hides the memory latency of batched look-ups in C, and measures what that gains.
#[derive(Parser)]
#[command(
    name = "gopt",
    version,
    after_help = translate::EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Args {
    #[command(flatten)]
    translate: translate::Args,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Measures look-ups that miss the cache, one after the other and interleaved
    Bench(bench::Args),
    /// One process of an experiment; started by `bench` alone
    #[command(name = process::SUBCOMMAND, hide = true)]
    Role(RoleArgs),
}

#[cfg(test)]
mod tests;

fn main() -> ExitCode {
    machine::introduce("gopt", env!("CARGO_PKG_VERSION"));
    let args = Args::parse();
    let outcome = match args.command {
        None => translate::run(&args.translate),
        Some(Command::Bench(args)) => bench::run(&args),
        Some(Command::Role(args)) => process::run_role(&args, bench::ROLES),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<signal::Interrupted>() => ExitCode::from(STOPPED),
        Err(error) => {
            eprintln!("gopt: {error:#}");
            ExitCode::FAILURE
        }
    }
}
