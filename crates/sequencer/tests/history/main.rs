//! Histories of many simulated clients while servers crash, stall, lose their disk and take over
//! from each other: no number is given twice, and one that was taken after another call has
//! returned is larger (fetch-and-add). Planted bugs must be found.
//!
//! | file | what it owns |
//! |---|---|
//! | `record.rs` | the numbers with the times of their calls, and the check |
//! | `shelf.rs` | a disk that both hosts share, and that a crash tears |
//! | `nodes.rs` | the simulated processes |
//! | `stage.rs` | sessions, faults, and the run of a seed |

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod nodes;
mod record;
mod shelf;
mod stage;

use stage::{Bug, Sum, run_seed};

/// The seeds of a run without bugs.
const SEEDS: u64 = 60;
/// The seeds among which a planted bug must show.
#[cfg(feature = "mutants")]
const BUG_SEEDS: u64 = 60;

#[test]
fn every_history_gives_each_number_once_and_in_order() {
    let mut sum = Sum::default();
    for seed in 0..SEEDS {
        match run_seed(seed, Bug::None) {
            Ok(seen) => sum = sum.plus(seen),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{sum:?}");
    // The runs must have had in them what they are meant to try.
    assert!(sum.taken > 100 * SEEDS && sum.crashes > SEEDS, "{sum:?}");
    assert!(
        sum.take_overs > SEEDS / 2 && sum.refused > SEEDS / 10,
        "{sum:?}"
    );
    assert!(sum.torn > SEEDS / 10 && sum.pauses > SEEDS / 2, "{sum:?}");
    assert!(
        sum.deposed > SEEDS / 10 && sum.epochs > 2 * SEEDS,
        "{sum:?}"
    );
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    for bug in Bug::PLANTED {
        let found = (0..BUG_SEEDS).find_map(|seed| run_seed(seed, bug).err());
        let what = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        println!("{bug:?}: {what}");
        assert!(what.contains("no counter explains"), "{bug:?}: {what}");
    }
}
