//! `dunlin sim`: runs a scenario file in the simulator and prints its results (design §13). The
//! experiments of `dunlin bench` run the shipped files the same way.

mod output;
mod pcap;
mod plot;

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use dunlin_scenario::{Channels, Done, Source, Variant};
use dunlin_sim::scenario::Wrong;

use harness::signal;

const EXAMPLES: &str = "\
Examples:
  dunlin sim scenarios/incast.toml                 every run of the file, one after the other
  dunlin sim scenarios/incast.toml --set network.hosts=51 --set endpoint.cc=swift
  dunlin sim scenarios/cluster.toml --set load.0.endpoints=1 --json rows.jsonl
  dunlin sim scenarios/background.toml --plot queue.svg
  dunlin sim scenarios/hello.toml --pcap frames.pcap     for Wireshark
  dunlin sim scenarios/channels.toml --set channel.hedge_ms=5    channels and servers that fail

A file describes hosts, cables and switches, the costs of a thread's work, the calls between hosts,
and the length of the run; scenarios/hello.toml explains every key. All combinations of the values
under [sweep] are run, unless --set gives a key one value. The same seed gives the same numbers on
every machine. A file of channels (scenarios/channels.toml) describes servers, the faults that
strike them, calls, and results that it expects.
Ctrl-C ends the run and reports what was measured so far; a run of channels reports nothing then.

Exit codes: 0, all was run; 1, something failed, or was not as the file expects; 2, wrong usage;
130, Ctrl-C.";

/// The arguments of `dunlin sim`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The scenario file (TOML)
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Seed of all random numbers, in place of the file's
    #[arg(long, value_name = "S")]
    seed: Option<i64>,
    /// Changes a key of the file; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// One JSON object per run, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<output::Target>,
    /// A picture of queue length and throughput over time
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// A capture of every frame that arrives; for one run only
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

/// Runs the chosen scenario.
///
/// # Errors
/// [`signal::Interrupted`], after the results so far have been written; or an error in the file or
/// in a run; or the results cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(channels) = Channels::read(&args.scenario, &args.set, args.seed)? {
        return run_channels(args, &channels);
    }
    let mut source = Source::read(&args.scenario)?;
    for set in &args.set {
        source.set(set)?;
    }
    if let Some(seed) = args.seed {
        source.set_value("seed", seed.into())?;
    }
    let variants = source.variants()?;
    if args.pcap.is_some() && variants.len() != 1 {
        let runs = variants.len();
        bail!("--pcap is for one run, and these are {runs}; choose one with --set");
    }
    for variant in &variants {
        check_memory(&source, variant)?;
    }
    signal::watch()?;
    let mut output = output::Output::open(args.json.as_ref(), args.plot.as_deref())?;
    let mut capture = args.pcap.as_ref().map(|path| {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        pcap::Capture::begin(file)
    });
    let mut all = Vec::new();
    for variant in variants {
        let capture = capture.take().transpose()?;
        let done = run_one(variant, capture).map_err(|why| match why.downcast::<Wrong>() {
            Ok(wrong) => source.blame(&wrong, &[]),
            Err(other) => other,
        })?;
        output.add(&done)?;
        all.push(done);
        if signal::check().is_err() {
            break;
        }
    }
    output.finish(&all)?;
    Ok(signal::check()?)
}

/// Runs a scenario of channels.
///
/// # Errors
/// As for [`run`]; or the results are not as the file expects.
fn run_channels(args: &Args, channels: &Channels) -> anyhow::Result<()> {
    if args.plot.is_some() || args.pcap.is_some() {
        bail!("a scenario of channels has no --plot and no --pcap");
    }
    signal::watch()?;
    let mut output = output::Output::open(args.json.as_ref(), None)?;
    let Some(played) = channels.run()? else {
        return Ok(signal::check()?);
    };
    output.add_channels(channels, &played)?;
    channels.check(&played)
}

/// Makes one run, and writes its frames if there is a capture.
///
/// # Errors
/// The run broke an invariant, or frames cannot be written.
fn run_one(variant: Variant, capture: Option<pcap::Capture>) -> anyhow::Result<Done> {
    let failed = capture.as_ref().map(pcap::Capture::failed);
    let done = dunlin_scenario::run(variant, capture.map(pcap::Capture::into_tap))?;
    if let Some(failed) = failed {
        ensure!(!failed.get(), "frames cannot be written; is the disk full?");
    }
    Ok(done)
}

/// # Errors
/// The run would not fit into memory.
fn check_memory(source: &Source, variant: &Variant) -> anyhow::Result<()> {
    let needed = variant.scenario.memory();
    let Some(available) = available_memory() else {
        return Ok(());
    };
    if needed <= available {
        return Ok(());
    }
    let [needed, available] = [needed, available].map(|bytes| bytes.div_ceil(1 << 20));
    let (sides, endpoints) = variant.scenario.sizes();
    let what = format!(
        "{endpoints} endpoints with {sides} sides of sessions need about {needed} MB, and \
         {available} MB are free; take fewer hosts or endpoints"
    );
    Err(source.blame(&Wrong::new("network.hosts", what), &[]))
}

/// Bytes of memory that the system still has; `None` if it does not report them.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}
