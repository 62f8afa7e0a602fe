//! Runs of many seeds. A test of a simulation keeps one processor busy, so it runs its seeds in two
//! threads; in a plain `cargo test`, a test whose runs take seconds each runs only some of them.

use std::ops::Range;
use std::sync::Mutex;

/// Threads of a test: no more than the processors of a small machine.
const THREADS: usize = 2;

/// The variable that makes tests run all their seeds. Continuous integration sets it.
const ALL: &str = "DUNLIN_ALL_SEEDS";

/// `few` seeds, or `all` of them in continuous integration.
pub fn count(few: u64, all: u64) -> u64 {
    match std::env::var_os(ALL) {
        Some(_) => all,
        None => few,
    }
}

/// The results of `run` for each seed, in the order of the seeds.
///
/// # Panics
/// If `run` panics.
pub fn run<T: Send>(seeds: Range<u64>, run: impl Fn(u64) -> T + Sync) -> Vec<(u64, T)> {
    let (next, results) = (Mutex::new(seeds), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.lock().expect("no holder panics").next();
                    let Some(seed) = seed else { return };
                    let result = run(seed);
                    results
                        .lock()
                        .expect("no holder panics")
                        .push((seed, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no holder panics");
    results.sort_unstable_by_key(|(seed, _)| *seed);
    results
}
