//! The dunlin command. Exit codes: 0, it did what was asked; 1, it failed; 2, it was asked for
//! something that it does not know; 130, Ctrl-C stopped it.

mod bench;
mod draw;
mod figure;
mod process;
mod report;
mod signal;
mod sim;
mod stats;
mod sys;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a shell expects of a program that Ctrl-C stopped: 128 and the number of the signal.
const STOPPED: u8 = 130;

#[derive(Parser)]
#[command(
    name = "dunlin",
    version,
    about = "Microsecond RPCs: experiments on this machine",
    after_help = "Examples:\n  dunlin bench raw\n  dunlin bench --help\n  dunlin sim --help"
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures this machine and Dunlin on it
    Bench(bench::Args),
    /// Draws results as a page, beside what the papers have published
    Report(report::Args),
    /// Runs a scenario in the simulator
    Sim(sim::Args),
    /// Shows what a running process counts and measures
    Stats(stats::Args),
    /// One process of an experiment; started by `bench` alone
    #[command(name = process::SUBCOMMAND, hide = true)]
    Role(process::RoleArgs),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Role(args) => process::run_role(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<signal::Interrupted>() => ExitCode::from(STOPPED),
        Err(error) => {
            eprintln!("dunlin: {error:#}");
            ExitCode::FAILURE
        }
    }
}
