//! The dunlin command. Exit codes: 0, it did what was asked; 1, it failed; 2, it was asked for
//! something that it does not know; 130, Ctrl-C stopped it.

mod bench;
mod config;
mod echo;
mod echo_server;
mod headers;
mod info;
mod misuse;
mod options;
mod ping;
mod report;
mod role;
mod say;
mod sim;
mod stats;
mod sys;
mod top;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dunlin::settings::SettingsError;
use harness::process::{self, RoleArgs};
use harness::{machine, signal};

use misuse::Misuse;

/// What a shell expects of a program that Ctrl-C stopped: 128 and the number of the signal.
const STOPPED: u8 = 130;
/// What clap exits with when it does not know what it was asked for.
const USAGE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  dunlin info                         what this machine offers, and what it lacks
  dunlin echo-server                  a server, and in another terminal:
  dunlin ping 127.0.0.1:31850
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
    /// Draws results as a page, beside what the papers have published
    Report(report::Args),
    /// Lists every option with its value, source, unit, range and meaning
    Config(config::Args),
    /// Answers every request with its own bytes
    EchoServer(echo_server::Args),
    /// Times round trips to a server
    Ping(ping::Args),
    /// What this machine offers, and what to do about what it lacks
    Info(info::Args),
    /// Runs a scenario in the simulator
    Sim(sim::Args),
    /// Shows what a running process counts and measures
    Stats(stats::Args),
    /// Shows a running process on the terminal, refreshed
    Top(top::Args),
    /// Shows the packets of a running process, or writes them for Wireshark
    Trace(trace::Args),
    /// One process of an experiment; started by `bench` alone
    #[command(name = process::SUBCOMMAND, hide = true)]
    Role(RoleArgs<role::Role>),
    /// Measures one case for another dunlin; started by `bench compare` alone
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
        Command::Config(args) => config::run(&args),
        Command::EchoServer(args) => echo_server::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Role(args) => process::run_role(args),
        Command::Measure(args) => bench::measure_one(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<signal::Interrupted>() => ExitCode::from(STOPPED),
        Err(error) => {
            eprintln!("dunlin: {}", say::with_causes(&error));
            if error.is::<SettingsError>() || error.is::<Misuse>() {
                return ExitCode::from(USAGE);
            }
            ExitCode::FAILURE
        }
    }
}
