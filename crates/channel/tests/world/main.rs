//! Runs channels against simulated servers, from seeds. The servers crash, stop, drain, restart,
//! refuse, and lose and gain addresses. The judge checks every step against the state of the world.
//!
//! | file | what it owns |
//! |---|---|
//! | `plan.rs`, `draw.rs` | the decisions of a seed |
//! | `servers.rs`, `faults.rs` | servers, and their faults |
//! | `driver.rs`, `actions.rs` | the machine's driver: links, attempts, the ledger of calls |
//! | `judge.rs` | the laws |
//! | `state.rs`, `run.rs` | the world, and its run |
//!
//! Invariant: a seed always gives the same run.

mod actions;
mod draw;
mod driver;
mod faults;
mod judge;
mod plan;
mod run;
mod servers;
mod state;

use dunlin_channel::Counters;
use state::World;

fn run(seed: u64) -> Result<(u64, Counters), String> {
    World::new(seed, |_| {}).run()
}

#[test]
fn seeds() {
    let mut total = Counters::default();
    for seed in 1..=1000 {
        let (_, counters) = run(seed).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        total = total.plus(&counters);
    }
    // A run that no longer reaches all of these proves nothing.
    let reached = [
        total.hedges,
        total.paid_repeats,
        total.free_repeats,
        total.unpaid,
        total.drains,
        total.losses,
        total.stale,
        total.full,
        total.expired,
        total.no_server,
        total.cancelled,
    ];
    assert!(reached.iter().all(|count| *count > 100), "{total:?}");
}

#[test]
fn one_seed_is_one_run() {
    for seed in 1..=20 {
        assert_eq!(run(seed), run(seed));
    }
}

#[cfg(feature = "mutants")]
#[test]
fn each_planted_bug_is_found() {
    use dunlin_channel::mutant::Mutant;
    let mut lost = Vec::new();
    // The runs of `dunlin-sim` judge shares, which need more calls than these runs have. They also
    // judge trunks, which need several channels.
    let all = Mutant::ALL.iter().copied();
    for mutant in all.filter(|mutant| !mutant.is_of_shares() && !mutant.is_of_trunks()) {
        let find = |seed| World::new(seed, |config| config.mutant = Some(mutant)).run();
        let found = (1..=200).find_map(|seed| Some((seed, find(seed).err()?)));
        match found {
            Some((seed, what)) => println!("{:<26} by seed {seed}: {what}", mutant.name()),
            None => lost.push(mutant.name()),
        }
    }
    assert!(lost.is_empty(), "not found: {lost:?}");
}
