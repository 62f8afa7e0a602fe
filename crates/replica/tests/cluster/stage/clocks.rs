//! Hosts whose clocks differ by minutes. A process that starts again may find its clock set forward
//! or back. A replica must not depend on the time that a clock shows: leases, lifetimes and
//! elections measure the time since an event in the same process. A clock that jumps ahead while
//! its process is paused is a longer pause, which is another fault.
//!
//! A clock that stands while its host is suspended breaks the assumption of leases, because the
//! clocks of the others go on. A run shows that the check of the history then finds stale reads.

use dunlin_core::Nanos;
use dunlin_sim::world::Act;
use dunlin_sim::world::schedule::Schedule;
use dunlin_sim::{HostId, PortId, Rng};

use super::{END, STEP, Stage};
use crate::sum::{Bug, Sum};
use crate::verdict::has_leases;

const SEEDS: u64 = 30;

/// Clocks differ by at most this much.
const APART: Nanos = Nanos::from_secs(600);

/// The least time that a clock shows when the world begins, so that it can stand.
const LEAST: Nanos = Nanos::from_secs(10);

/// A suspension, in which the others elect another leader, and how long the leader is cut off from
/// them afterwards.
const SUSPENDED: Nanos = Nanos::from_millis(300);
const APART_AFTER: Nanos = Nanos::from_millis(100);

/// Sets the clocks of hosts when their processes start.
pub(super) struct Clocks(Rng);

impl Clocks {
    fn draw(&mut self) -> Nanos {
        LEAST + Nanos(self.0.below(APART.0))
    }
}

/// The clock of a host that is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suspended {
    GoesOn,
    Stands,
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

    /// Suspends the host of the leader for a while, and cuts it off from the other replicas.
    fn suspend_leader(&mut self, clock: Suspended) -> Result<(), String> {
        let Some(leader) = self.leader() else {
            return Ok(());
        };
        let until = self.world.now() + SUSPENDED;
        self.cut(leader, until + APART_AFTER);
        self.world.act(Act::Pause(HostId(leader)));
        self.run_until(until, STEP)?;
        if clock == Suspended::Stands {
            let shown = self.world.net().borrow().clock(PortId(leader)).read();
            let origin = shown.since(self.world.now() + SUSPENDED);
            self.world.set_clock(PortId(leader), origin);
        }
        self.world.act(Act::Resume(HostId(leader)));
        Ok(())
    }
}

/// Runs a cluster whose leaders have leases and are suspended, without any other fault.
fn run_suspended(seed: u64, clock: Suspended) -> Result<Sum, String> {
    let mut stage = Stage::new(seed, Bug::None);
    stage.events = Schedule::default();
    stage.set_clocks_apart(seed);
    for at in [400, 900] {
        stage.run_until(Nanos::from_millis(at), STEP)?;
        stage.suspend_leader(clock)?;
    }
    stage.run_until(END, STEP)?;
    stage.judge_history(&format!("suspended-{clock:?}-{seed}"))
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

/// A lease does not survive a clock that stands during a suspension (`docs/replica.md`).
#[test]
fn leases_end_during_a_suspension_unless_the_clock_stands() {
    let seeds = || (0..2 * SEEDS).filter(|seed| has_leases(*seed, Bug::None));
    for seed in seeds() {
        let run = run_suspended(seed, Suspended::GoesOn);
        run.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    let found =
        seeds().find_map(|seed| Some((seed, run_suspended(seed, Suspended::Stands).err()?)));
    let (seed, what) = found.expect("no stale read was found");
    println!("seed {seed}: {}", what.lines().next().unwrap_or_default());
    assert!(what.contains("no order explains"), "{what}");
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
