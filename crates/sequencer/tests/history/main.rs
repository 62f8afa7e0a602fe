//! Histories of many simulated clients while servers crash, stall, lose their disk and take over
//! from each other. No number is given twice, and a call that begins after another has returned
//! gets larger numbers (fetch-and-add). Planted bugs must be found.
//!
//! | file | what it owns |
//! |---|---|
//! | `record.rs` | the numbers with the times of their calls, and the check |
//! | `shelf.rs` | a disk that both hosts share, and that a crash tears |
//! | `bug.rs` | planted bugs |
//! | `nodes.rs` | the simulated processes |
//! | `stage.rs` | sessions, faults, and the run of a seed |
//! | `actors.rs` | the simulated processes of a run over a replicated store |
//! | `scribe.rs` | the part of a server that calls such a store |
//! | `replicated.rs` | the run of a seed over it |

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod actors;
mod bug;
mod nodes;
mod record;
mod replicated;
mod scribe;
mod shelf;
mod stage;

use dunlin_testkit::seeds;

use bug::Bug;
use replicated::Counts;
use stage::{Sum, run_seed};

/// The seeds of the runs without bugs.
const SEEDS: u64 = 60;
/// The seeds of such runs over a replicated store.
const REPLICATED_SEEDS: u64 = 40;
/// A planted bug must be found within this number of seeds.
#[cfg(feature = "mutants")]
const BUG_SEEDS: u64 = 60;

#[test]
fn every_history_gives_each_number_once_and_in_order() {
    let mut sum = Sum::default();
    for (seed, result) in seeds::run(0..SEEDS, |seed| run_seed(seed, Bug::None, false)) {
        match result {
            Ok(seen) => sum = sum.plus(seen),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{sum:?}");
    // The runs must have covered the cases that they are meant to test.
    assert!(sum.taken > 100 * SEEDS && sum.crashes > SEEDS, "{sum:?}");
    assert!(
        sum.take_overs > SEEDS / 2 && sum.refused > SEEDS / 10,
        "{sum:?}"
    );
    assert!(sum.torn > SEEDS / 10 && sum.pauses > SEEDS / 2, "{sum:?}");
    assert!(
        sum.deposed > SEEDS / 10 && sum.epochs > 2 * SEEDS && sum.carries > SEEDS / 3,
        "{sum:?}"
    );
}

#[test]
fn every_history_over_a_replicated_store_gives_each_number_once_and_in_order() {
    let mut counts = Counts::default();
    let run = |seed| replicated::run_seed(seed, Bug::None, false);
    for (seed, result) in seeds::run(0..REPLICATED_SEEDS, run) {
        match result {
            Ok(seen) => counts = counts.plus(seen),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{counts:?}");
    // The runs must have covered the cases that they are meant to test.
    let seeds = REPLICATED_SEEDS;
    assert!(counts.taken > 500 * seeds && counts.crashes > seeds && counts.epochs > 2 * seeds);
    assert!(counts.deposed > seeds / 2 && counts.refused > seeds / 10 && counts.unknown > 0);
    assert!(counts.replica_crashes > seeds && counts.cuts > seeds);
}

/// It makes no difference that hosts' clocks differ by minutes and are set when a process starts.
#[test]
fn clocks_that_differ_by_minutes_change_nothing() {
    for seed in 0..REPLICATED_SEEDS / 2 {
        let runs = [
            run_seed(seed, Bug::None, true).map(|it| it.taken),
            replicated::run_seed(seed, Bug::None, true).map(|it| it.taken),
        ];
        for run in runs {
            let taken = run.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            assert!(taken > 20, "seed {seed}: only {taken} numbers were taken");
        }
    }
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    for bug in Bug::PLANTED {
        find(bug, |seed| run_seed(seed, bug, false).err());
        find(bug, |seed| replicated::run_seed(seed, bug, false).err());
    }
}

/// Looks for a seed whose run shows the bug.
#[cfg(feature = "mutants")]
fn find(bug: Bug, run: impl Fn(u64) -> Option<String>) {
    let found = (0..BUG_SEEDS).find_map(|seed| Some((seed, run(seed)?)));
    let (seed, what) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?}: seed {seed}: {what}");
    assert!(what.contains("no counter explains"), "{bug:?}: {what}");
}
