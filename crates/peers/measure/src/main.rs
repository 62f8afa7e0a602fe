//! Measures the same echo over Dunlin and over other ways to call another process: one table from
//! one run (`docs/peers.md`). Client and server are two processes with a thread each; the peers
//! take turns in every round, so that what else happens on the machine happens to all of them.
//! Exit codes: 0, all were measured; 1, one was not; 2, wrong arguments; 130, Ctrl-C stopped it.
#![forbid(unsafe_code)]

mod child;
mod cpu;
mod load;
mod peer;
mod plan;
mod progress;
mod row;
mod table;
mod work;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::child::Task;
use crate::peer::Name;
use crate::plan::Plan;

const EXAMPLES: &str = "Examples:
  cargo run --release -p peers
  cargo run --release -p peers -- --only dunlin-udp,tonic --rounds 9
  cargo run --release -p peers -- --size 32 --json peers.json";

/// What a shell expects of a program that Ctrl-C stopped: 128 and the number of the signal.
const STOPPED: u8 = 130;

#[derive(Parser)]
#[command(
    name = "peers",
    about = "Measures the same echo over Dunlin and over other ways to call another process",
    after_help = EXAMPLES
)]
struct Args {
    /// Measures only these
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<Name>,
    /// Bytes of a request and of its response, multiples of 8
    #[arg(
        long = "size",
        value_name = "BYTES",
        value_delimiter = ',',
        default_values_t = [32, 1024, 65536],
        value_parser = size
    )]
    sizes: Vec<usize>,
    /// How often each is measured; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Milliseconds of each measurement
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=60_000)
    )]
    span: u64,
    /// Writes one JSON object for each figure to this file, or with `-` to the standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    task: Option<Hidden>,
}

#[derive(Subcommand)]
enum Hidden {
    /// One side of a measurement; started by this program alone
    #[command(name = child::SUBCOMMAND, hide = true)]
    Task(Task),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.task {
        Some(Hidden::Task(task)) => child::run(task).map(|()| ExitCode::SUCCESS),
        None => measure(&args),
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
    // Opened first: a place that cannot be written is known before minutes of measuring.
    let file = match &args.json {
        Some(path) if path.as_os_str() != "-" => {
            let named = || format!("cannot write {}", path.display());
            Some(File::create(path).with_context(named)?)
        }
        _ => None,
    };
    let plan = Plan {
        peers: peer::chosen(&args.only),
        sizes: args.sizes.clone(),
        rounds: args.rounds,
        span: Duration::from_millis(args.span),
    };
    let results = plan.run(&stop);
    let json = row::json(&results.rows)?;
    let text = table::render(&results);
    match (file, &args.json) {
        (Some(mut file), _) => {
            file.write_all(json.as_bytes())?;
            print!("{text}");
        }
        // Whoever reads the JSON does not want a table in it.
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

fn size(text: &str) -> Result<usize, String> {
    let size: usize = text.parse().map_err(|error| format!("{error}"))?;
    if size == 0 || !size.is_multiple_of(8) || size > peer::LARGEST {
        return Err(format!(
            "it must be a multiple of 8, up to {}",
            peer::LARGEST
        ));
    }
    Ok(size)
}
