//! Attacks a server for some minutes while a healthy client uses it, and judges what the client
//! and the kernel saw. `cargo xtask hostile` builds and starts it.
//!
//! | module | what it owns |
//! |---|---|
//! | `args` | the command line |
//! | `stage` | the processes of a run, and its phases |
//! | `honest` | the server, the healthy client, and calls that are easy to judge |
//! | `attack` | the attackers: a process each |
//! | `watch` | whether the machine itself stood still |
//! | `judge` | the rules for the observations of a run |
//! | `words` | the messages between the processes |
#![forbid(unsafe_code)]

mod args;
mod attack;
mod honest;
mod judge;
mod report;
mod stage;
mod watch;
mod words;

use std::process::ExitCode;

use clap::Parser;
use harness::process::{self, Role};
use harness::{machine, signal};

use args::{Args, Command};
use attack::{blaster, drills, floods, pawn, scribbler};
use honest::{client, server};

/// The exit code that a shell expects of a program that Ctrl-C stopped.
const STOPPED: u8 = 130;

/// The processes of a run.
const ROLES: [Role; 9] = [
    server::ROLE,
    client::ROLE,
    blaster::ROLE,
    floods::ROLE,
    scribbler::ROLE,
    scribbler::SCRIBE,
    drills::ROLE,
    pawn::ROLE,
    watch::ROLE,
];

fn main() -> ExitCode {
    machine::introduce("hostile", env!("CARGO_PKG_VERSION"));
    let args = Args::parse();
    let outcome = match &args.command {
        Some(Command::Role(role)) => process::run_role(role, ROLES).map(|()| true),
        None => run(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<signal::Interrupted>() => ExitCode::from(STOPPED),
        Err(error) => {
            eprintln!("hostile: {error:#}\nto see it again: {}", args.replay());
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<bool> {
    signal::watch()?;
    let seen = stage::run(args)?;
    let faults = judge::faults(&seen, args.reach);
    report::print(args, &seen, &faults);
    if seen.interrupted {
        return Err(signal::Interrupted.into());
    }
    Ok(faults.is_empty())
}
