//! The dunlin command. Exit codes: 0, success; 1, failure; 2, wrong usage; 130, Ctrl-C stopped it.
//! `dunlin health`, `dunlin list` and `dunlin call` have more.
#![forbid(unsafe_code)]

mod bench;
#[cfg(feature = "full")]
mod commands;
mod misuse;
mod report;
mod say;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use harness::process::{self, RoleArgs};
use harness::{machine, signal};

use misuse::Misuse;

/// The exit code that a shell expects of a program that Ctrl-C stopped: 128 and the number of the
/// signal.
const STOPPED: u8 = 130;
/// The exit code of clap for arguments that it does not know.
const USAGE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  dunlin info                         what this machine offers, and what it lacks
  dunlin echo-server                  a server, and in another terminal:
  dunlin ping 127.0.0.1:31850
  dunlin kv serve                     a key-value server, and in another terminal:
  dunlin kv set name dunlin
  dunlin health 127.0.0.1:31850       whether a server serves
  dunlin list 127.0.0.1:31850         the methods of a server, which `dunlin call` calls
  dunlin config                       every option
  dunlin stats                        the processes that run, and what they do
  dunlin bench                        latency, rate and idling
  dunlin COMMAND --help               more examples";

#[derive(Parser)]
#[command(
    name = "dunlin",
    version,
    about = "Microsecond RPCs: servers to try, options, and experiments on this machine",
    after_help = EXAMPLES
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures this machine and Dunlin on it
    Bench(bench::Args),
    /// Draws results as a page, with the figures that the papers published
    Report(report::Args),
    /// The commands that a build only for measurements leaves out.
    #[cfg(feature = "full")]
    #[command(flatten)]
    Other(commands::Command),
    /// One process of an experiment; only `bench` starts it
    #[command(name = process::SUBCOMMAND, hide = true)]
    Role(RoleArgs),
    /// Measures one case for another dunlin; only `bench compare` starts it
    #[command(name = bench::SUBCOMMAND, hide = true)]
    Measure(bench::MeasureArgs),
}

#[cfg(test)]
mod tests;

fn main() -> ExitCode {
    machine::introduce("dunlin", env!("CARGO_PKG_VERSION"));
    let outcome = match Args::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => report::run(&args),
        #[cfg(feature = "full")]
        Command::Other(command) => commands::run(command),
        Command::Role(args) => process::run_role(&args, dunlin_bench::experiments::roles()),
        Command::Measure(args) => bench::measure_one(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<signal::Interrupted>() => ExitCode::from(STOPPED),
        Err(error) => {
            #[cfg(feature = "full")]
            if let Some(misuse::Exit(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            eprintln!("dunlin: {}", say::with_causes(&error));
            match is_misuse(&error) {
                true => ExitCode::from(USAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// True if the error is one of wrong usage.
fn is_misuse(error: &anyhow::Error) -> bool {
    #[cfg(feature = "full")]
    if error.is::<dunlin::settings::SettingsError>() {
        return true;
    }
    error.is::<Misuse>()
}
