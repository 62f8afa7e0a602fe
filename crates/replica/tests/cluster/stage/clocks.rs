//! Hosts whose clocks show times that differ by minutes. A process that starts again may find its
//! clock set forward or back. Nothing of a replica may depend on the time that a clock shows:
//! leases, lifetimes and elections count how much time has passed since something that the same
//! process has seen. A clock that stands still while its process goes on, or jumps while the
//! process is paused, is one of the other faults: a pause.

use dunlin_core::Nanos;
use dunlin_sim::{PortId, Rng};

use super::{END, STEP, Stage};
use crate::sum::{Bug, Sum};

const SEEDS: u64 = 30;

/// Clocks differ by this much at most.
const APART: Nanos = Nanos::from_secs(600);

/// Sets the clocks of hosts when their processes start.
pub(super) struct Clocks(Rng);

impl Clocks {
    fn draw(&mut self) -> Nanos {
        Nanos(self.0.below(APART.0))
    }
}

impl Stage {
    /// Sets the clock of a replica whose process starts, if the hosts have clocks of their own.
    pub(super) fn set_clock(&mut self, port: usize) {
        if let Some(clocks) = &mut self.clocks {
            self.world.set_clock(PortId(port), clocks.draw());
        }
    }

    /// Gives the hosts of replicas clocks of their own from now on.
    fn set_clocks_apart(&mut self, seed: u64) {
        self.clocks = Some(Clocks(Rng::new(!seed)));
        (0..self.replicas).for_each(|port| self.set_clock(port));
    }
}

fn run(seed: u64, bug: Bug) -> Result<Sum, String> {
    let mut stage = Stage::new(seed, bug);
    stage.set_clocks_apart(seed);
    stage.run_until(END, STEP)?;
    stage.judge_history(&format!("clocks-{bug:?}-{seed}"))
}

#[test]
fn clocks_that_differ_by_minutes_change_nothing() {
    let sums = (0..SEEDS)
        .map(|seed| run(seed, Bug::None).unwrap_or_else(|what| panic!("seed {seed}: {what}")));
    let sum = sums.fold(Sum::default(), Sum::plus);
    println!("{sum:?}");
    assert!(sum.terms > 3 * SEEDS / 2 && sum.restarts > SEEDS, "{sum:?}");
}

#[cfg(feature = "mutants")]
#[test]
fn lifetimes_by_the_clock_of_the_leader_are_found() {
    let bug = Bug::Replica(dunlin_replica::Mutant::LeadersTime);
    let found = (0..SEEDS).find_map(|seed| Some((seed, run(seed, bug).err()?)));
    let (seed, what) = found.expect("the planted bug was not found");
    println!("seed {seed}: {what}");
    assert!(what.contains("the log's time runs ahead"), "{what}");
}
