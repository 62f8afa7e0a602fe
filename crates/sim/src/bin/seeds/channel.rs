//! Seeds of channels: `seeds --channel`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dunlin_sim::channel::{Counters, Failure, Judged, Options, run_seed};

use super::{Arguments, FAILURES_SHOWN, rate};

/// Number of seeds within which each planted bug must be found.
#[cfg(feature = "mutants")]
const MUTANT_SEEDS: u64 = 200;

/// Returns whether no checker found a fault. With `--mutants`, returns whether every planted bug
/// was found.
pub(super) fn run(arguments: &Arguments) -> bool {
    let options = match options(arguments) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return false;
        }
    };
    match arguments.seed {
        Some(seed) => run_one(seed, options),
        None if arguments.mutants => run_mutants(arguments),
        None => run_many(arguments, options),
    }
}

fn run_one(seed: u64, options: Options) -> bool {
    match run_seed(seed, options) {
        Ok(report) => println!("{report:#?}"),
        Err(ref failure) => println!("{failure}"),
    }
    run_seed(seed, options).is_ok()
}

fn run_many(arguments: &Arguments, options: Options) -> bool {
    let (start, count) = (Instant::now(), arguments.count.unwrap_or(1000));
    let next = AtomicU64::new(0);
    let sums = Mutex::new((
        Counters::default(),
        Judged::default(),
        Vec::<Failure>::new(),
    ));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let result = run_seed(arguments.from.wrapping_add(at), options);
            let mut sums = sums.lock().expect("no thread panics while it counts");
            match result {
                Ok(report) => {
                    sums.0 = sums.0.plus(&report.counters);
                    sums.1 = sums.1.plus(report.judged);
                }
                Err(failure) => sums.2.push(failure),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(work);
        }
    });
    let (counters, judged, mut failures) = sums.into_inner().expect("all threads have ended");
    failures.sort_by_key(|failure| failure.seed);
    let shown = usize::try_from(FAILURES_SHOWN).unwrap_or(usize::MAX);
    failures
        .iter()
        .take(shown)
        .for_each(|failure| println!("{failure}"));
    let (failed, calls, rate) = (failures.len(), counters.calls, rate(count, start));
    if arguments.json {
        println!(
            "{{\"seeds\":{count},\"failures\":{failed},\"calls\":{calls},\
             \"seeds_per_s\":{rate:.1}}}"
        );
    } else {
        println!("{count} seeds, {failed} failures, {calls} calls, {rate:.0} seeds/s");
        println!("  {counters:?}\n  {judged:?}");
    }
    failures.is_empty()
}

#[cfg(feature = "mutants")]
fn options(arguments: &Arguments) -> Result<Options, String> {
    use dunlin_sim::channel::Mutant;
    let Some(name) = arguments.planted.as_deref() else {
        return Ok(Options::default());
    };
    let mutant = Mutant::from_name(name);
    let mutant = mutant.ok_or_else(|| format!("{name}: no bug of a channel"))?;
    Ok(Options {
        mutant: Some(mutant),
    })
}

#[cfg(not(feature = "mutants"))]
fn options(_arguments: &Arguments) -> Result<Options, String> {
    Ok(Options::default())
}

#[cfg(feature = "mutants")]
fn run_mutants(arguments: &Arguments) -> bool {
    use dunlin_sim::channel::Mutant;
    let count = arguments.count.unwrap_or(MUTANT_SEEDS);
    let mut all_found = true;
    for mutant in Mutant::all() {
        let options = Options {
            mutant: Some(mutant),
        };
        let mut seeds = arguments.from..arguments.from.saturating_add(count);
        let found = seeds.find_map(|seed| run_seed(seed, options).err());
        match &found {
            Some(Failure { seed, what, .. }) => {
                let seeds = seed - arguments.from + 1;
                println!("{:<26} found after {seeds:>4} seeds: {what}", mutant.name());
            }
            None => println!("{:<26} NOT FOUND", mutant.name()),
        }
        all_found &= found.is_some();
    }
    all_found
}

#[cfg(not(feature = "mutants"))]
fn run_mutants(_arguments: &Arguments) -> bool {
    false
}
