//! A network that is cut while the members change. The leader and the processes that join are on
//! one side, and the members that leave on the other. The cut begins when the leader has begun the
//! change and the others do not know that yet. They may elect a leader of their own, among the
//! members that they know. So until the change is complete, an entry needs a majority of the old
//! members as well: a leader that counts only the new members commits entries that differ from
//! theirs.

use dunlin_core::Nanos;
use dunlin_replica::{Options, Order};
use dunlin_sim::world::Act;
use dunlin_sim::world::trace::Trace;
use dunlin_sim::{FaultRates, HostId, Net, NetConfig, Rng};

use super::{Event, Processes, SPARES, STEP, Stage, id_of, rosters};
use crate::disk::Pace;
use crate::platter::Folder;
use crate::record::Shared;
use crate::sum::{Bug, Sum};

const SEEDS: u64 = 10;

const FOUNDERS: usize = 3;

/// The stage checks at this interval whether the change has begun.
const GLANCE: Nanos = Nanos::from_micros(5);

/// A leader must be elected, and a change must begin, within this time.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// The duration of the cut, long enough for some elections.
const CUT: Nanos = Nanos::from_millis(250);

/// No operation begins after this time, so that checking the history takes only seconds.
const QUIET: Nanos = Nanos::from_millis(550);

/// By this time, every operation must have ended, and the replicas must agree.
const END: Nanos = Nanos::from_millis(2600);

impl Stage {
    /// Three members, and two processes that may join, without other faults.
    fn before_a_change(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::new(NetConfig::default(), rng.next_u64(), Trace::new(false));
        net.borrow_mut().set_rates(FaultRates::NONE);
        let replicas = FOUNDERS + SPARES;
        let processes = Processes {
            rosters: rosters(FOUNDERS, replicas),
            images: vec![None; replicas],
            disks: Vec::new(),
            disk_bug: None,
            paces: vec![Pace::Mixed; replicas],
            resumed: 0,
            options: Options {
                #[cfg(feature = "mutants")]
                mutant: match bug {
                    Bug::Replica(mutant) => Some(mutant),
                    _ => None,
                },
                ..Options::DEFAULT
            },
            remembers_one_client: false,
            record: Shared::default(),
            busy: QUIET,
            rng: rng.fork(),
        };
        Self::with(&net, processes, bug, Folder::new(), rng)
    }

    /// Runs until `answer` returns a value.
    fn wait_for<R>(&mut self, mut answer: impl FnMut(&mut Self) -> Option<R>) -> Result<R, String> {
        let end = self.world.now() + PATIENCE;
        while self.world.now() < end {
            if let Some(answer) = answer(self) {
                return Ok(answer);
            }
            let next = self.world.now() + GLANCE;
            self.run_until(next, GLANCE)?;
        }
        Err("a change of members does not begin".to_owned())
    }

    /// Makes the leader replace the two others. Cuts it off, together with the processes that join,
    /// as soon as it lets these vote.
    fn replace_others(&mut self) -> Result<(), String> {
        let leader = self.wait_for(Self::leader)?;
        let roster = self.roster(leader).ok_or("a leader has a seat")?;
        let spares = FOUNDERS..FOUNDERS + SPARES;
        let others = (0..FOUNDERS).filter(|it| *it != leader);
        for spare in spares.clone() {
            self.join(spare, leader, &roster);
        }
        for other in others.clone() {
            self.order(leader, Order::Leave(id_of(other)));
        }
        self.wait_for(|stage| {
            let roster = stage.roster(leader)?;
            let votes = |port| roster.part(id_of(port)).is_some_and(|it| it.is_voter);
            spares.clone().any(votes).then_some(())
        })?;
        self.sum.cuts += 1;
        let until = self.world.now() + CUT;
        for near in spares.chain([leader]).map(HostId) {
            for far in others.clone().map(HostId) {
                for (from, to) in [(near, far), (far, near)] {
                    self.world.act(Act::Block(from, to));
                    self.schedule(until, Event::Act(Act::Unblock(from, to)));
                }
            }
        }
        Ok(())
    }
}

fn run(seed: u64, bug: Bug) -> Result<Sum, String> {
    let mut stage = Stage::before_a_change(seed, bug);
    let begin = Nanos::from_millis(200) + Nanos(stage.rng.below(20_000_000));
    stage.run_until(begin, STEP)?;
    stage.replace_others()?;
    stage.run_until(END, STEP)?;
    stage.judge_history(&format!("joint-{bug:?}-{seed}"))
}

#[test]
fn a_cut_between_old_and_new_members_leaves_one_history() {
    let sums = (0..SEEDS)
        .map(|seed| run(seed, Bug::None).unwrap_or_else(|what| panic!("seed {seed}: {what}")));
    let sum = sums.fold(Sum::default(), Sum::plus);
    println!("{sum:?}");
    assert_eq!(sum.changed, SEEDS, "{sum:?}");
    assert!(sum.terms > 3 * SEEDS / 2, "no other leader came: {sum:?}");
}

#[cfg(feature = "mutants")]
#[test]
fn the_bug_of_commits_by_the_new_members_alone_is_found() {
    let bug = Bug::Replica(dunlin_replica::Mutant::HalfOfJoint);
    let found = (0..SEEDS).find_map(|seed| Some((seed, run(seed, bug).err()?)));
    let (seed, what) = found.expect("the planted bug was not found");
    println!("seed {seed}: {what}");
    assert!(what.contains("has committed"), "{what}");
}
