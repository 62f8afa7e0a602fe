//! Measures the same echo over Dunlin and over other ways to call another process: one table from
//! one run (`docs/peers.md`). Client and server are two processes with a thread each; the peers
//! take turns in every round, so that other work on the machine disturbs all of them alike. Exit
//! codes: 0, all peers were measured; 1, a peer was not; 2, wrong arguments; 130, Ctrl-C stopped
//! it.
#![forbid(unsafe_code)]

mod aims;
mod args;
mod child;
mod cpu;
mod load;
mod peer;
mod ping;
mod plan;
mod progress;
mod row;
mod state;
mod system_calls;
mod table;
mod work;

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Parser;

use crate::args::Args;
use crate::child::Task;
use crate::plan::Plan;

/// The exit code that a shell expects of a program that Ctrl-C stopped: 128 and the number of the
/// signal.
const STOPPED: u8 = 130;

fn main() -> ExitCode {
    let is_child = std::env::args_os()
        .nth(1)
        .is_some_and(|it| it == child::SUBCOMMAND);
    let done = match is_child {
        true => child::run(&Task::parse_from(std::env::args_os().skip(1))),
        false => measure(&Args::parse()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("peers: {error:#}");
        ExitCode::FAILURE
    })
}

fn measure(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    // The file is opened first, so that a place that cannot be written is known before minutes of
    // measuring.
    let file = match &args.json {
        Some(path) if path.as_os_str() != "-" => {
            let named = || format!("cannot write {}", path.display());
            Some(File::create(path).with_context(named)?)
        }
        _ => None,
    };
    let plan = Plan {
        peers: match args.aims {
            true => args.peers_of(aims::need),
            false => args.peers(),
        },
        sizes: args.sizes(aims::SIZE),
        rounds: args.rounds(),
        span: Duration::from_millis(args.span),
        counts: args.aims && system_calls::are_counted(),
    };
    let results = plan.run(&stop);
    let json = row::json(&results.rows)?;
    let text = table::render(&results, args.aims);
    match (file, &args.json) {
        (Some(mut file), _) => {
            file.write_all(json.as_bytes())?;
            print!("{text}");
        }
        // A program that reads the JSON does not want a table in it.
        (None, Some(_)) => {
            print!("{json}");
            eprint!("{text}");
        }
        (None, None) => print!("{text}"),
    }
    Ok(if stop.load(Ordering::Relaxed) {
        ExitCode::from(STOPPED)
    } else if results.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
