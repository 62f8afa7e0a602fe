//! Drains under load: `seeds --drains`.

use dunlin_sim::channel::{Drill, run_drains};

use super::Arguments;

/// Seeds of each drill; each has ten drains.
const SEEDS: u64 = 10;

/// Returns whether every call ended with its value and no drain took too long.
pub(super) fn run(arguments: &Arguments) -> bool {
    let (from, count) = match arguments.seed {
        Some(seed) => (seed, 1),
        None => (arguments.from, arguments.count.unwrap_or(SEEDS)),
    };
    let mut are_fine = true;
    for drill in Drill::ALL {
        let (mut took, mut calls, mut failed) = (Vec::new(), 0, 0);
        for seed in from..from.saturating_add(count) {
            match run_drains(seed, drill) {
                Ok(drains) => {
                    took.extend(drains.took);
                    calls += drains.report.counters.calls;
                }
                Err(failure) => {
                    failed += 1;
                    println!("{failure}");
                }
            }
        }
        took.sort_unstable();
        let at = |place: usize| took.get(place).map_or(0, |took| took.0 / 1000);
        let (median, longest) = (at(took.len() / 2), at(took.len().saturating_sub(1)));
        let drains = took.len();
        match arguments.json {
            true => println!(
                "{{\"drill\":\"{drill}\",\"drains\":{drains},\"failures\":{failed},\
                 \"calls\":{calls},\"median_us\":{median},\"longest_us\":{longest}}}"
            ),
            false => println!(
                "{drill}: {drains} drains, {failed} failures, {calls} calls; {median} µs (median), \
                 {longest} µs (longest)"
            ),
        }
        are_fine &= failed == 0;
    }
    are_fine
}
