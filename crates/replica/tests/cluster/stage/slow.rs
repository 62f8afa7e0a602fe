//! Disks on which every sync takes longer than an election timeout. A leader must stay while
//! clients write, and when it is killed, the others must elect another one in a bounded time.
//!
//! An election needs a timeout, a pre-vote, and two consecutive writes: the candidate's vote, and
//! the votes of a majority. Each write waits for the one that is already under way. So four syncs
//! and a few timeouts are enough, unless candidates split the votes or give up too early.

use dunlin_core::Nanos;
use dunlin_replica::{Image, Options};
use dunlin_sim::{Net, Rng};
use dunlin_testkit::seeds::count;

use super::{Processes, Stage, rosters};
use crate::disk::Pace;
use crate::platter::Folder;
use crate::record::Shared;
use crate::sum::Bug;

/// A run takes seconds.
const FEW_SEEDS: u64 = 4;
const SEEDS: u64 = 8;

/// The election timeout.
const ELECTION: Nanos = Nanos::from_millis(150);

/// The longest sync; the shortest takes half as long.
const SYNC: Nanos = Nanos::from_secs(1);

/// The longest sync of the good disks among slow ones.
const QUICK: Nanos = Nanos::from_millis(2);

/// A leader must stay at least this long.
const REIGN: Nanos = Nanos::from_secs(4);

/// The invariants are checked at this interval.
const STEP: Nanos = Nanos::from_millis(5);

/// The longest time without a leader, in timeouts and syncs. In 120 elections on equal disks, and
/// as many on unequal ones, the longest took 4.3 s, and half of them less than 2.3 s.
const MOST_TIME_OUTS: u64 = 6;
const MOST_SYNCS: u64 = 5;

/// The disks of a cluster.
#[derive(Clone, Copy, Debug)]
enum Disks {
    /// All disks are slow.
    Slow,
    /// Each disk is slow or good.
    Unlike,
}

impl Stage {
    /// A cluster without faults, whose disks are slow.
    fn on_slow_disks(seed: u64, bug: Bug, disks: Disks) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::sound(rng.next_u64());
        let replicas = *rng.pick(&[3, 5, 7]);
        let folder = Folder::new();
        let pace = |rng: &mut Rng| match disks {
            Disks::Unlike if rng.one_in(2) => Pace::Slow(QUICK),
            _ => Pace::Slow(SYNC),
        };
        let processes = Processes {
            rosters: rosters(replicas, replicas),
            images: vec![None::<Image>; replicas],
            disks: (0..replicas)
                .map(|it| folder.disk(it, rng.fork()))
                .collect(),
            disk_bug: None,
            paces: (0..replicas).map(|_| pace(&mut rng)).collect(),
            resumed: 0,
            options: Options {
                election: ELECTION,
                #[cfg(feature = "mutants")]
                mutant: match bug {
                    Bug::Replica(mutant) => Some(mutant),
                    _ => None,
                },
                ..Options::DEFAULT
            },
            remembers_one_client: false,
            record: Shared::default(),
            busy: Nanos::MAX,
            rng: rng.fork(),
        };
        Self::with(&net, processes, bug, folder, rng)
    }

    /// Waits for a leader. Returns its place, its term, and the time.
    fn await_leader(&mut self) -> Result<(usize, u64, Nanos), String> {
        let begin = self.world.now();
        let most = ELECTION.times(MOST_TIME_OUTS) + SYNC.times(MOST_SYNCS);
        while self.world.now() < begin + most {
            self.run_until(self.world.now() + STEP, STEP)?;
            if let Some(leader) = self.leader() {
                let term = self.term(leader);
                return Ok((leader, term, self.world.now().since(begin)));
            }
        }
        Err(format!("no replica leads after {most:?}"))
    }

    fn term(&mut self, port: usize) -> u64 {
        let node = self.replica(port).and_then(|rpc| rpc.app().node());
        node.map_or(0, dunlin_replica::Node::term)
    }

    /// Checks that a leader stays and commits writes.
    fn check_reign(&mut self, leader: usize, term: u64) -> Result<(), String> {
        let (end, first) = (self.world.now() + REIGN, self.judge.last());
        while self.world.now() < end {
            self.run_until(self.world.now() + STEP, STEP)?;
            if self.leader() != Some(leader) || self.term(leader) != term {
                let now = self.world.now();
                return Err(format!(
                    "{leader} has lost the lead of term {term} at {now:?}"
                ));
            }
        }
        match self.judge.last() > first {
            true => Ok(()),
            false => Err(format!("leader {leader} commits nothing")),
        }
    }
}

/// Kills one leader after the other, as long as a majority is left. Returns the longest time
/// without a leader.
fn run(seed: u64, bug: Bug, disks: Disks) -> Result<Nanos, String> {
    let mut stage = Stage::on_slow_disks(seed, bug, disks);
    let kills = (stage.replicas - 1) / 2;
    let mut longest = Nanos::ZERO;
    for round in 0..=kills {
        let (leader, term, time) = stage.await_leader()?;
        longest = longest.max(time);
        stage.check_reign(leader, term)?;
        if round < kills {
            stage.kill(leader);
        }
    }
    Ok(longest)
}

fn run_seeds(disks: Disks) {
    let mut times: Vec<Nanos> = (0..count(FEW_SEEDS, SEEDS))
        .map(|seed| {
            run(seed, Bug::None, disks)
                .unwrap_or_else(|what| panic!("seed {seed}, {disks:?}: {what}"))
        })
        .collect();
    times.sort_unstable();
    println!("{disks:?}: {times:?}");
    // At least one election took longer than a sync, so the disks were slow.
    assert!(times[times.len() - 1] > SYNC, "{times:?}");
}

#[test]
fn leaders_stay_and_elections_end_on_disks_slower_than_time_outs() {
    run_seeds(Disks::Slow);
}

#[test]
fn leaders_stay_and_elections_end_on_unlike_disks() {
    run_seeds(Disks::Unlike);
}

/// Each of these bugs breaks one of the two promises.
#[cfg(feature = "mutants")]
#[test]
fn bugs_of_slow_disks_are_found() {
    use dunlin_replica::Mutant;
    let planted = [
        (Mutant::Impatient, "no replica leads"),
        (Mutant::HeldHeartbeats, "has lost the lead"),
    ];
    for (mutant, message) in planted {
        let found = (0..SEEDS).find_map(|seed| {
            let what = run(seed, Bug::Replica(mutant), Disks::Slow).err()?;
            Some((seed, what))
        });
        let (seed, what) = found.unwrap_or_else(|| panic!("{mutant:?} was not found"));
        println!("{mutant:?}: seed {seed}: {what}");
        assert!(what.contains(message), "{mutant:?}: {what}");
    }
}
