//! Hosts whose clocks differ by minutes. A process that starts again may find its clock set forward
//! or back. A replica must not depend on the time that a clock shows: leases, lifetimes and
//! elections measure the time since an event in the same process. If a clock stops while its
//! process runs, or jumps while the process is paused, this counts as a pause, which is another
//! fault.

use dunlin_core::Nanos;
use dunlin_sim::{PortId, Rng};

use super::{END, STEP, Stage};
use crate::sum::{Bug, Sum};

const SEEDS: u64 = 30;

/// Clocks differ by at most this much.
const APART: Nanos = Nanos::from_secs(600);

/// Sets the clocks of hosts when their processes start.
pub(super) struct Clocks(Rng);

impl Clocks {
    fn draw(&mut self) -> Nanos {
        Nanos(self.0.below(APART.0))
    }
}

impl Stage {
    /// Sets the clock of a replica whose process starts, if each host has a clock of its own.
    pub(super) fn set_clock(&mut self, port: usize) {
        if let Some(clocks) = &mut self.clocks {
            self.world.set_clock(PortId(port), clocks.draw());
        }
    }

    /// Gives each replica's host a clock of its own from now on.
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
fn the_bug_of_lifetimes_by_the_leaders_clock_is_found() {
    let bug = Bug::Replica(dunlin_replica::Mutant::LeadersTime);
    let found = (0..SEEDS).find_map(|seed| Some((seed, run(seed, bug).err()?)));
    let (seed, what) = found.expect("the planted bug was not found");
    println!("seed {seed}: {what}");
    assert!(what.contains("the log's time runs ahead"), "{what}");
}
