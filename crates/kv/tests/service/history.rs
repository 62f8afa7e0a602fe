//! Histories of many simulated clients under loss, cuts of the network, and restarts, with one
//! server or with several that come and go. The test checks whether each key behaves like a
//! register that one operation at a time changes (linearizability). Planted bugs must be found. A
//! run with real processes records a history, too.
//!
//! | file | what it owns |
//! |---|---|
//! | `record.rs` | the operations with their times and outcomes |
//! | `model.rs` | a model of one key |
//! | `search.rs` | the search for an order that explains a history |
//! | `lines.rs` | histories as files, for a checker in another language |
//! | `plan.rs` | the decisions of a seed, planted bugs, and counts |
//! | `nodes.rs`, `client.rs`, `members.rs` | the simulated processes |
//! | `processes.rs` | real processes: servers that are killed, and clients |
//! | `stage.rs` | sessions, restarts, lists, and the run of a seed |
//! | `stage/cuts.rs` | cuts of the network, by which sessions end |

mod client;
mod lines;
mod members;
mod model;
mod nodes;
mod plan;
mod processes;
mod record;
mod search;
mod stage;

use dunlin_testkit::seeds;

use plan::{Bug, Sum};
use stage::run_seed;

/// The seeds of the runs without bugs.
const SEEDS: u64 = 40;
/// A planted bug must be found within this number of seeds.
#[cfg(feature = "mutants")]
const BUG_SEEDS: u64 = 60;

#[test]
fn every_history_has_an_order() {
    let mut sum = Sum::default();
    for (seed, verdict) in seeds::run(0..SEEDS, |seed| run_seed(seed, Bug::None)) {
        assert!(!verdict.is_broken, "seed {seed}: no order explains it");
        match verdict.result {
            Ok(seen) => sum = sum.plus(seen),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{sum:?}");
    // The runs must have covered the cases that they are meant to test.
    assert!(
        sum.restarts > SEEDS && sum.operations > 100 * SEEDS,
        "{sum:?}"
    );
    assert!(sum.cuts > 2 * SEEDS && sum.cut_off > 5 * SEEDS, "{sum:?}");
    assert!(sum.unknown > SEEDS / 4 && sum.found > 20 * SEEDS, "{sum:?}");
    assert!(sum.expired > SEEDS && sum.differs > SEEDS, "{sum:?}");
    assert!(sum.evicted > SEEDS && sum.refused > SEEDS, "{sum:?}");
    assert!(sum.servers > 5 * SEEDS && sum.lists > 3 * SEEDS, "{sum:?}");
}

#[test]
fn a_history_of_real_processes_has_an_order() {
    processes::run();
}

/// Plays a process of that test, in a child.
pub(crate) fn play(role: &str) {
    processes::play(role);
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    for (bug, message) in Bug::PLANTED {
        let (mut found, mut is_broken) = (None, !bug.breaks_histories());
        for seed in 0..BUG_SEEDS {
            let verdict = run_seed(seed, bug);
            is_broken |= verdict.is_broken;
            found = found.or(verdict.result.err());
            if found.is_some() && is_broken {
                break;
            }
        }
        let what = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        assert!(what.contains(message), "{bug:?}: {what}");
        assert!(is_broken, "{bug:?}: an order explains each history");
    }
}
