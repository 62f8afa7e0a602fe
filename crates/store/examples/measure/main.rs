//! Measures the table by itself: `cargo run --release -p dunlin-store --example measure -- `,
//! followed by one of the lines below. Without arguments, it measures rates of a small table, each
//! once.
//!
//! ```text
//! rates [GIB] [store|cache]   gets, batched and not, beside random cache lines
//! memory                      bytes an item in store mode; items lost and RSS in cache mode
//! hits SOCKET MIB             hit ratios beside a memcached on a UNIX socket; -: alone
//! ```

#![forbid(unsafe_code)]

mod hits;
mod lines;
mod memory;
mod rates;
mod workload;

use std::process::ExitCode;

use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table};

/// Size of the table that is measured without arguments, once, to show the form of the output.
const SMALL_GIB: f64 = 0.01;

/// Samples of each rate, taken in turns.
const ROUNDS: usize = 7;

/// The time of every call: nothing expires here.
const NOW: Seconds = Seconds(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let gib = |word: &str| word.parse().ok();
    let result = match words[..] {
        [] => rates::run(SMALL_GIB, Mode::Store, 1),
        ["rates"] => rates::run(1.0, Mode::Store, ROUNDS),
        ["rates", size] => gib(size).map_or_else(usage, |gib| rates::run(gib, Mode::Store, ROUNDS)),
        ["rates", size, "cache"] => {
            gib(size).map_or_else(usage, |gib| rates::run(gib, Mode::Cache, ROUNDS))
        }
        ["rates", size, "store"] => {
            gib(size).map_or_else(usage, |gib| rates::run(gib, Mode::Store, ROUNDS))
        }
        ["memory"] => memory::run(),
        ["hits", socket, mib] => mib
            .parse()
            .map_or_else(|_| usage(), |mib| hits::run(socket, mib)),
        _ => usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn usage() -> Outcome {
    Err("rates [GIB] [store|cache], memory, or hits SOCKET MIB".into())
}

/// Makes a table with all of its memory touched.
fn table(memory: usize, mode: Mode) -> Result<Table, Box<dyn std::error::Error>> {
    let mut region = Region::new(memory)?;
    region.touch(|_| true);
    let config = Config {
        mode,
        seed: Seed::new([0x5eed, 1]),
        first_version: 1,
    };
    Ok(Table::new(region, config)?)
}

/// Measures the processor time of `work`: on a busy machine, a wall clock would count other
/// programs too. The kernel updates that time a few hundred times a second, so `work` must take
/// about a tenth of a second.
fn seconds(work: impl FnOnce()) -> f64 {
    let begin = processor_seconds();
    work();
    processor_seconds() - begin
}

fn processor_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times
        .split_whitespace()
        .next()
        .and_then(|time| time.parse::<f64>().ok());
    nanoseconds.expect("the kernel counts processor time") / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
