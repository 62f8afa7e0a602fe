//! Simulated clusters of three, five and seven replicas, with clients, under loss, partitions,
//! pauses, crashes and restarts. Half of them have their logs in memory, which a restart keeps; the
//! others have `raft-engine` on simulated disks, which lose, tear and reorder what is not synced,
//! fill up, and fail. In a quarter, members join and leave. The checks: one leader in each term,
//! logs that match, no committed entry lost, and linearizability, which means that each key behaves
//! like a register that one operation at a time changes, and each write takes effect once. Planted
//! bugs must be found.
//!
//! | file | what it owns |
//! |---|---|
//! | `record.rs` | the operations with their times and outcomes; a model of one key |
//! | `processes.rs` | the simulated replicas and clients |
//! | `judge.rs` | the invariants of Raft |
//! | `platter.rs` | the content of a simulated disk |
//! | `disk.rs` | the engine on it, and the time that it takes |
//! | `scripted.rs` | a client, and replicas that answer by a script |
//! | `stage.rs` | sessions, faults, changes of members, and the run of a seed |
//! | `sum.rs` | planted bugs, and counts |
//! | `verdict.rs` | the checks of a run's history |

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod disk;
mod judge;
mod platter;
mod processes;
mod record;
mod scripted;
mod stage;
mod sum;
mod verdict;

use stage::run_seed;
use sum::{Bug, Sum};

/// The seeds of the runs without bugs.
const SEEDS: u64 = 75;
/// A planted bug must be found within this number of seeds.
#[cfg(feature = "mutants")]
const BUG_SEEDS: usize = 400;

/// Runs a seed, and says how to repeat it if it fails.
fn run(seed: u64) -> Sum {
    run_bug(seed, Bug::None).unwrap_or_else(|what| {
        panic!(
            "seed {seed}: {what}\nrepeat it with: DUNLIN_SEED={seed} cargo test -p dunlin-replica \
             --test cluster one_seed"
        )
    })
}

#[test]
fn every_history_has_an_order() {
    let sum = (0..SEEDS).map(run).fold(Sum::default(), Sum::plus);
    println!("{sum:?}");
    // The runs must have covered the cases that they are meant to test.
    assert!(
        sum.operations > 200 * SEEDS && sum.unknown > SEEDS,
        "{sum:?}"
    );
    assert!(
        sum.restarts > SEEDS && sum.cuts > SEEDS && sum.pauses > SEEDS,
        "{sum:?}"
    );
    assert!(
        sum.names > 4 * SEEDS
            && sum.terms > 3 * SEEDS / 2
            && sum.entries > 100 * SEEDS
            && sum.snapshots > SEEDS / 4
            && sum.partly_sent > SEEDS / 4,
        "{sum:?}"
    );
    assert!(
        sum.resumed > SEEDS / 2
            && sum.failed_disks > SEEDS / 8
            && sum.full_disks > SEEDS / 8
            && sum.changed > SEEDS / 6
            && sum.lost_zeros > 0,
        "{sum:?}"
    );
    assert!(
        sum.transactions > SEEDS && sum.ranges > 5 * SEEDS,
        "{sum:?}"
    );
    assert!(sum.watched > SEEDS / 4, "{sum:?}");
    // The other checker decides almost all keys, too.
    assert!(10 * sum.crowded < sum.keys, "{sum:?}");
}

/// The first two seeds have disks, whose engine must not take time or order from the machine.
#[test]
fn a_seed_has_the_same_run_each_time() {
    for seed in [0, 2, 1, 7] {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

#[test]
fn one_seed() {
    let seed = std::env::var("DUNLIN_SEED").ok();
    let seed = seed.map_or(1000, |seed| seed.parse().expect("DUNLIN_SEED is a number"));
    println!("seed {seed}: {:?}", run(seed));
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    use disk::DiskBug;
    use dunlin_replica::Mutant;
    // Each bug with the seed at which the search begins, which keeps it short while the runs stay
    // the same, and with a part of the message by which the bug must be found.
    let planted = [
        (Bug::Replica(Mutant::EarlyAnswer), 0, "no order explains"),
        (Bug::Replica(Mutant::EarlyCommit), 0, "as entry"),
        (Bug::Replica(Mutant::StaleRead), 77, "no order explains"),
        (Bug::Replica(Mutant::Repeat), 0, "no order explains"),
        (Bug::Replica(Mutant::TwoVotes), 27, "has the leaders"),
        (
            Bug::Replica(Mutant::ForgottenClients),
            0,
            "has another state",
        ),
        (Bug::Replica(Mutant::Careless), 0, "no order explains"),
        (Bug::Replica(Mutant::LastChanges), 0, "no watch has shown"),
        (Bug::Replica(Mutant::LeaseByTicks), 99, "no order explains"),
        (Bug::LostTail, 255, "contradict the log"),
        // Either the mark or the other replicas' logs reveal it.
        (Bug::Disk(DiskBug::NoSync), 20, " log"),
        (Bug::Disk(DiskBug::CaughtPanic), 188, "a log is lost"),
    ];
    for (bug, first, message) in planted {
        let mut seeds = (first..).take(BUG_SEEDS);
        // A search that takes too long has found nothing.
        let is_verdict = |what: &String| !what.contains("takes too long");
        let found =
            seeds.find_map(|seed| Some((seed, run_bug(seed, bug).err().filter(is_verdict)?)));
        let (seed, what) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        println!(
            "{bug:?}: seed {seed}: {}",
            what.lines().next().unwrap_or_default()
        );
        assert!(what.contains(message), "{bug:?}: {what}");
    }
}

/// Runs a seed. Reports a panic of Raft or of the engine as a failure of the seed, too.
fn run_bug(seed: u64, bug: Bug) -> Result<Sum, String> {
    let run = std::panic::catch_unwind(|| run_seed(seed, bug));
    run.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map_or("?", String::as_str);
        Err(format!("panic: {text}"))
    })
}
