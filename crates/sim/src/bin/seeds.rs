//! Runs seeds of the simulator: a given number, as many as fit into a given time, a single one, or
//! as many as are needed to find each planted bug. Each seed runs once, or twice to compare two
//! variants of an endpoint that must behave alike. `cargo xtask seeds` calls it. Exit status 1
//! means that a checker found a fault or variants differ, and 2 that the arguments are wrong.

#[path = "seeds/channel.rs"]
mod channel;
#[path = "seeds/differential.rs"]
mod differential;
#[path = "seeds/drains.rs"]
mod drains;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use dunlin_control::Overdue;
use dunlin_sim::{Failure, Mutant, Options, Report, run_seed};

const USAGE: &str = "\
Runs a simulated cluster for each seed, first with faults and then without, under checkers.

usage: seeds [--differential | --channel | --drains]
             [--count N | --minutes M | --seed N | --mutants]
             [--from N] [--threads N] [--mutant NAME] [--lines N] [--json]

  --count N      run N seeds (default 1000)
  --minutes M    run seeds for M minutes
  --seed N       run one seed; if it fails, run it again for its trace
  --mutants      for each planted bug, run up to --count seeds (default 2000) until it is found
                 (and for each planted breach of a law, which no other check may find in 100 seeds)
  --differential run each seed with two variants and compare all that an observer sees;
                 with --mutant, plant the bug in the second variant; with --mutants, run up to
                 --count seeds (default 500) until each planted difference is found
  --channel      run seeds of channels against servers that fail; with --mutants, run up to
                 --count seeds (default 200) until each planted bug of a channel is found
  --drains       run the four drills in which servers drain under load: ten drains for each of
                 --count seeds (default 10)
  --threads N    threads that run seeds of channels (default 1)
  --from N       first seed (default 1)
  --mutant NAME  plant this bug in every endpoint
  --lines N      lines of a failure's trace to print (default 120)
  --json         one JSON object per line, for programs

examples:
  cargo xtask seeds --minutes 5
  cargo xtask seeds --seed 4711
  cargo xtask seeds --mutants
  cargo xtask seeds --differential --count 1000
  cargo xtask seeds --differential --mutants
  cargo xtask seeds --channel --count 10000 --threads 2
  cargo xtask seeds --drains --count 100";

#[derive(Clone, Debug, Default)]
struct Arguments {
    count: Option<u64>,
    minutes: Option<f64>,
    seed: Option<u64>,
    from: u64,
    mutants: bool,
    differential: bool,
    channel: bool,
    drains: bool,
    /// Threads that run seeds of channels.
    threads: u64,
    /// The name of a planted bug; each kind of run has its own bugs.
    planted: Option<String>,
    mutant: Option<Mutant>,
    json: bool,
    /// Lines of a failure's trace to print.
    lines: usize,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let fine = if arguments.drains {
        drains::run(&arguments)
    } else if arguments.channel {
        channel::run(&arguments)
    } else if arguments.differential {
        differential::run(&arguments)
    } else if arguments.mutants {
        run_mutants(&arguments)
    } else if let Some(seed) = arguments.seed {
        run_one(&arguments, seed)
    } else {
        run_many(&arguments)
    };
    if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut out = Arguments {
        from: 1,
        lines: 120,
        threads: 1,
        ..Arguments::default()
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--count" => out.count = Some(number(&value()?)?),
            "--minutes" => out.minutes = Some(number(&value()?)?),
            "--seed" => out.seed = Some(number(&value()?)?),
            "--from" => out.from = number(&value()?)?,
            "--mutant" => out.planted = Some(value()?),
            "--differential" => out.differential = true,
            "--channel" => out.channel = true,
            "--drains" => out.drains = true,
            "--threads" => out.threads = number(&value()?)?,
            "--mutants" => out.mutants = true,
            "--lines" => out.lines = number(&value()?)?,
            "--json" => out.json = true,
            _ => return Err(format!("{word}: no such option")),
        }
    }
    if !out.channel {
        out.mutant = out.planted.as_deref().map(mutant).transpose()?;
    }
    if out.mutants && Mutant::all().is_empty() {
        return Err("this build has no planted bugs; build with --features mutants".to_owned());
    }
    Ok(Some(out))
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word}: not a number"))
}

fn mutant(name: &str) -> Result<Mutant, String> {
    Mutant::from_name(name).ok_or_else(|| {
        let all = Mutant::all()
            .into_iter()
            .chain(Mutant::differences())
            .chain(Mutant::breaches().into_iter().map(|(mutant, _)| mutant));
        let names: Vec<_> = all.map(Mutant::name).collect();
        match names.is_empty() {
            true => "this build has no planted bugs; build with --features mutants".to_owned(),
            false => format!(
                "{name}: no such planted bug; there are {}",
                names.join(", ")
            ),
        }
    })
}

fn run_one(arguments: &Arguments, seed: u64) -> bool {
    let options = Options {
        mutant: arguments.mutant,
        trace: false,
        ..Options::default()
    };
    match run_seed(seed, options) {
        Ok(report) => {
            print_report(&report, arguments.json);
            true
        }
        Err(failure) => {
            print_failure(&failure, arguments);
            false
        }
    }
}

/// The number of failures that are printed in full; further ones are only counted.
const FAILURES_SHOWN: u64 = 3;
const PROGRESS: Duration = Duration::from_secs(5);

fn run_many(arguments: &Arguments) -> bool {
    let options = Options {
        mutant: arguments.mutant,
        trace: false,
        ..Options::default()
    };
    let start = Instant::now();
    let mut told = start;
    let (mut run, mut failed, mut calls) = (0_u64, 0_u64, 0_u64);
    let mut overdue = Overdue::default();
    for seed in seeds_of(arguments, start) {
        run += 1;
        match run_seed(seed, options) {
            Ok(report) => {
                calls += report.calls.issued;
                overdue.add(report.overdue);
            }
            Err(failure) => {
                failed += 1;
                if failed <= FAILURES_SHOWN {
                    print_failure(&failure, arguments);
                } else {
                    println!("seed {seed} failed: {}", failure.what);
                }
            }
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            progress(run, failed, start);
        }
    }
    summary(run, failed, calls, start, arguments.json);
    print_overdue(&overdue, arguments.json);
    let is_sample = run >= STAGE_SEEDS && arguments.mutant.is_none();
    failed == 0 && (!is_sample || is_met_everywhere(&overdue))
}

/// Number of seeds in which deadlines must pass in every stage of a handshake.
const STAGE_SEEDS: u64 = 1000;

fn print_overdue(overdue: &Overdue, json: bool) {
    let counts = overdue.named();
    let counts = counts.map(|(stage, count)| match json {
        true => format!("{stage:?}:{count}"),
        false => format!("{count} {stage}"),
    });
    match json {
        true => println!("{{\"overdue\":{{{}}}}}", counts.join(",")),
        false => println!(
            "sessions that ended at their deadline: {}",
            counts.join(", ")
        ),
    }
}

/// Returns whether a deadline has passed in every stage of a handshake. Prints the stages in which
/// none has passed, because the seeds no longer test their ends.
fn is_met_everywhere(overdue: &Overdue) -> bool {
    let counts = overdue.named();
    let unmet = counts.iter().filter(|(_, count)| *count == 0);
    let unmet: Vec<_> = unmet.map(|(stage, _)| *stage).collect();
    if !unmet.is_empty() {
        println!("no deadline passed in these stages: {}", unmet.join(", "));
    }
    unmet.is_empty()
}

/// The seeds to run: the requested number of seeds, or seeds until the requested time since `start`
/// is over.
fn seeds_of(arguments: &Arguments, start: Instant) -> impl Iterator<Item = u64> + use<> {
    let limit = arguments
        .minutes
        .map(|minutes| Duration::from_secs_f64(minutes.max(0.0) * 60.0));
    let count = arguments.count.or(limit.map(|_| u64::MAX)).unwrap_or(1000);
    let from = arguments.from;
    (0..count)
        .take_while(move |_| limit.is_none_or(|limit| start.elapsed() < limit))
        .map(move |run| from.wrapping_add(run))
}

fn rate(run: u64, start: Instant) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    let run = run as f64;
    run / start.elapsed().as_secs_f64().max(1e-9)
}

fn progress(run: u64, failed: u64, start: Instant) {
    eprintln!(
        "{run} seeds, {failed} failures, {:.0} seeds/s",
        rate(run, start)
    );
}

fn summary(run: u64, failed: u64, calls: u64, start: Instant, json: bool) {
    let rate = rate(run, start);
    if json {
        println!(
            "{{\"seeds\":{run},\"failures\":{failed},\"calls\":{calls},\"seeds_per_s\":{rate:.1}}}"
        );
    } else {
        println!("{run} seeds, {failed} failures, {calls} calls, {rate:.0} seeds/s");
    }
}

/// Number of seeds within which each planted bug must be found.
const MUTANT_SEEDS: u64 = 2000;

fn run_mutants(arguments: &Arguments) -> bool {
    let count = arguments.count.unwrap_or(MUTANT_SEEDS);
    let chosen = arguments
        .mutant
        .map_or_else(Mutant::all, |mutant| vec![mutant]);
    let mut all_found = true;
    for mutant in chosen {
        let options = Options {
            mutant: Some(mutant),
            trace: false,
            ..Options::default()
        };
        let seeds = arguments.from..arguments.from.saturating_add(count);
        let found = seeds
            .into_iter()
            .find_map(|seed| run_seed(seed, options).err());
        all_found &= found.is_some();
        print_mutant(mutant, found.as_deref(), arguments);
    }
    all_found & check_laws(arguments)
}

/// Number of seeds that run without the endpoints' own checks. In these seeds, no other checker may
/// find a planted breach of a law.
const LAWLESS_SEEDS: u64 = 100;

/// Checks that the endpoints' own checks find each planted breach by the law that it breaks, and
/// that no other checker does.
fn check_laws(arguments: &Arguments) -> bool {
    if arguments.mutant.is_some() {
        return true;
    }
    let mut all_alone = true;
    for (mutant, law) in Mutant::breaches() {
        let find = |lawless, count| {
            let options = Options {
                mutant: Some(mutant),
                lawless,
                ..Options::default()
            };
            let seeds = arguments.from..arguments.from.saturating_add(count);
            let mut runs = seeds.into_iter().map(|seed| run_seed(seed, options));
            runs.find_map(Result::err)
        };
        let found = find(false, arguments.count.unwrap_or(MUTANT_SEEDS));
        let otherwise = find(true, LAWLESS_SEEDS);
        let said = [
            format!("broken law: {law}"),
            format!("Inconsistent({law:?})"),
        ];
        let is_law = |failure: &Failure| said.iter().any(|said| failure.what.contains(said));
        let is_found = found.as_deref().is_some_and(is_law);
        all_alone &= otherwise.is_none() && is_found;
        print_mutant(mutant, found.as_deref(), arguments);
        if !is_found {
            println!("  not found by the law that it breaks: {law}");
        }
        if let Some(otherwise) = otherwise {
            println!(
                "  found without laws too, by seed {}: {}",
                otherwise.seed, otherwise.what
            );
        }
    }
    all_alone
}

fn print_mutant(mutant: Mutant, found: Option<&Failure>, arguments: &Arguments) {
    let name = mutant.name();
    match (found, arguments.json) {
        (Some(failure), false) => {
            let seeds = failure
                .seed
                .saturating_sub(arguments.from)
                .saturating_add(1);
            println!("{name:<26} found after {seeds:>4} seeds: {}", failure.what);
        }
        (None, false) => println!("{name:<26} NOT FOUND"),
        (found, true) => {
            let seed = found.map_or("null".to_owned(), |failure| failure.seed.to_string());
            println!(
                "{{\"mutant\":{name:?},\"found\":{},\"seed\":{seed}}}",
                found.is_some()
            );
        }
    }
}

fn print_failure(failure: &Failure, Arguments { json, lines, .. }: &Arguments) {
    let (json, lines) = (*json, *lines);
    if json {
        let (seed, what, replay) = (failure.seed, &failure.what, failure.replay());
        println!("{{\"seed\":{seed},\"failure\":{what:?},\"replay\":{replay:?}}}");
    } else {
        for line in failure.last_lines(lines) {
            println!("  {line}");
        }
        println!("{failure}");
    }
}

fn print_report(report: &Report, json: bool) {
    let Report {
        seed,
        calls,
        frames,
        proofs,
        overdue,
        iterations,
        virtual_time,
        digest,
    } = report;
    if json {
        println!(
            "{{\"seed\":{seed},\"calls\":{},\"frames\":{},\"virtual_ns\":{},\"digest\":{digest}}}",
            calls.issued, frames.delivered, virtual_time.0
        );
    } else {
        println!(
            "seed {seed}: fine after {} ms of virtual time",
            virtual_time.0 / 1_000_000
        );
        println!("  {iterations} iterations, {proofs} addresses proven");
        println!("  {overdue:?}\n  {calls:?}\n  {frames:?}\n  digest {digest:016x}");
    }
}
