//! The run of a seed: sessions between the processes, and the check of the history.

mod changes;
mod clocks;
mod faults;
mod joint;
mod slow;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOptions};
use dunlin_replica::{Follower, Image, Member, Members, Options, Replica, Roster};
use dunlin_sim::world::schedule::Schedule;
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{Cluster, FaultRates, Net, NetHandle, PortId, Rng, SimEndpoint, World};
use dunlin_testkit::histories;

use crate::disk::{DiskBug, Pace, SimDisk, seat};
use crate::judge::Judge;
use crate::platter::{Folder, SimFiles};
use crate::processes::{BUSY, ClientNode, Process, ReplicaNode};
use crate::record::{KEYS, Operation, Shared};
use crate::sum::{Bug, Sum};
use crate::verdict::{check_keys, check_watched, crowded_keys, has_leases, shows_in_histories};
use clocks::Clocks;

const CLIENTS: usize = 3;
/// Processes that may join.
const SPARES: usize = 2;
/// No fault begins after this time.
const CHAOS: Nanos = Nanos::from_millis(1000);
/// By this time, every operation must have ended, and the replicas must agree.
const END: Nanos = Nanos::from_millis(2600);
/// The invariants are checked at this interval.
const STEP: Nanos = Nanos::from_micros(500);

/// Makes the processes; replicas have the first ports.
struct Processes {
    /// The rosters with which replicas have begun, for those with a seat.
    rosters: Vec<Option<Roster>>,
    /// The logs and items of replicas that do not run.
    images: Vec<Option<Image>>,
    /// The disks of the replicas; empty if their logs are in memory.
    disks: Vec<SimFiles>,
    disk_bug: Option<DiskBug>,
    /// The pace of each disk.
    paces: Vec<Pace>,
    resumed: u64,
    options: Options,
    remembers_one_client: bool,
    record: Shared,
    /// Clients begin no random operation after this time.
    busy: Nanos,
    rng: Rng,
}

impl Processes {
    fn replica_on_disk(&mut self, port: usize) -> Replica {
        let rng = self.rng.fork();
        let roster = self.rosters[port].clone();
        // A process that joins has no entry before its first snapshot.
        let joins = roster.as_ref().is_some_and(|it| !it.has_voters());
        let first = if joins { (0, 0) } else { (1, 1) };
        let (files, pace) = (&self.disks[port], self.paces[port]);
        let (disk, remains) = SimDisk::open(files, self.disk_bug, first, pace, rng);
        self.resumed += u64::from(remains.is_some());
        let seat = roster.map(|roster| seat(roster, remains));
        Replica::with_disk(id_of(port), seat, Box::new(disk), self.options)
    }

    fn replica(&mut self, port: usize) -> Replica {
        let id = id_of(port);
        if !self.disks.is_empty() {
            return self.replica_on_disk(port);
        }
        let Some(roster) = self.rosters[port].clone() else {
            return Replica::new(id, self.options);
        };
        let image = self.images[port].take().unwrap_or_else(|| {
            let image = Image::of(roster.clone());
            match self.remembers_one_client {
                true => image.remember(1),
                false => image,
            }
        });
        Replica::resume(id, roster, image, self.options)
    }
}

impl Cluster for Processes {
    type Node = Process;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Process {
        let (port, mut rng) = (process.port, self.rng.fork());
        let replicas = self.images.len();
        if port.0 < replicas {
            let replica = self.replica(port.0);
            let disk = self.disks.get(port.0).cloned();
            let node = ReplicaNode::boot(net, port, replica, disk, rng.next_u64());
            return Process::Replica(Box::new(node));
        }
        let record = Shared::clone(&self.record);
        let client = ClientNode::boot(net, port, replicas, record, self.busy, rng);
        Process::Client(Box::new(client))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

const fn id_of(port: usize) -> u64 {
    port as u64 + 1
}

/// Events that the stage has scheduled.
#[derive(Clone, Debug)]
enum Event {
    Connect(PortId, String),
    Strike,
    Start(usize),
    Lost(PortId, u32, Session),
    Act(Act),
    /// The disk of a replica has room again.
    Room(usize),
    /// Members join or leave.
    Change,
}

/// A session, and the incarnations of the processes at its ends.
#[derive(Clone, Copy)]
struct Tie {
    ends: [(PortId, u32, Session); 2],
}

pub(crate) struct Stage {
    world: World<Processes>,
    rng: Rng,
    bug: Bug,
    replicas: usize,
    events: Schedule<Event>,
    ties: Vec<Tie>,
    judge: Judge,
    sum: Sum,
    /// `None`: all clocks show the same time.
    clocks: Option<Clocks>,
    /// The last field, so that it is dropped after the disks' engines are closed.
    _folder: Folder,
}

impl Drop for Stage {
    /// Ends all processes at once. Otherwise the engines would sync, and some disk may be about to
    /// fail.
    fn drop(&mut self) {
        self.world
            .cluster
            .disks
            .iter_mut()
            .for_each(SimFiles::crash);
    }
}

/// Runs a seed.
///
/// # Errors
/// The first broken invariant, in words.
pub(crate) fn run_seed(seed: u64, bug: Bug) -> Result<Sum, String> {
    let mut stage = Stage::new(seed, bug);
    stage.run_until(END, STEP)?;
    stage.judge_history(&format!("{bug:?}-{seed}"))
}

fn member(port: usize) -> Member {
    Member {
        id: id_of(port),
        address: port.to_string(),
    }
}

/// The rosters of the founders, and of processes that may join.
fn rosters(founders: usize, replicas: usize) -> Vec<Option<Roster>> {
    let first = Roster::first(&Members::new((0..founders).map(member)).unwrap());
    let roster = |port| (port < founders).then(|| first.clone());
    (0..replicas).map(roster).collect()
}

impl Stage {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::undamaged(&mut rng);
        let founders = *rng.pick(&[3, 3, 3, 5, 5, 7]);
        // A process that joins keeps the usual number of client records.
        let changes = if seed.is_multiple_of(3) && seed % 4 != 3 {
            3
        } else {
            0
        };
        let replicas = founders + if changes > 0 { SPARES } else { 0 };
        let options = Options {
            kept_entries: rng.between(5, 40),
            piece_bytes: 512,
            slice_bytes: 100,
            lease_reads: has_leases(seed, bug),
            #[cfg(feature = "mutants")]
            mutant: match bug {
                Bug::Replica(mutant) => Some(mutant),
                _ => None,
            },
            ..Options::DEFAULT
        };
        let folder = Folder::new();
        let disks = match seed % 2 {
            0 => (0..replicas)
                .map(|it| folder.disk(it, rng.fork()))
                .collect(),
            _ => Vec::new(),
        };
        let processes = Processes {
            rosters: rosters(founders, replicas),
            images: vec![None; replicas],
            disks,
            disk_bug: bug.of_disk(),
            paces: vec![Pace::Mixed; replicas],
            resumed: 0,
            options,
            remembers_one_client: seed % 4 == 3,
            record: Shared::default(),
            busy: BUSY,
            rng: rng.fork(),
        };
        let mut stage = Self::with(&net, processes, bug, folder, rng);
        stage.plan(changes);
        stage
    }

    /// Boots all processes.
    fn with(net: &NetHandle, processes: Processes, bug: Bug, folder: Folder, mut rng: Rng) -> Self {
        let replicas = processes.images.len();
        let mut world = World::new(net, processes, rng.next_u64());
        for _ in 0..replicas + CLIENTS {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        Self {
            world,
            rng,
            bug,
            replicas,
            events: Schedule::default(),
            ties: Vec::new(),
            judge: Judge::default(),
            sum: Sum::default(),
            clocks: None,
            _folder: folder,
        }
    }

    fn plan(&mut self, changes: usize) {
        for _ in 0..self.rng.between(2, 8) {
            self.plan_fault();
        }
        for _ in 0..changes {
            let at = Nanos(self.rng.below(CHAOS.0));
            self.schedule(at, Event::Change);
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.events.add(at, event);
    }

    /// Runs all processes, and checks the invariants after each step.
    fn run_until(&mut self, end: Nanos, step: Nanos) -> Result<(), String> {
        while self.world.now() < end {
            let now = self.world.now();
            if now >= BUSY {
                self.world.net().borrow_mut().set_rates(FaultRates::NONE);
            }
            let next = self.events.next_at().unwrap_or(end).max(now);
            self.world.run_until(next.min(now + step).min(end));
            if let Some(what) = self.world.net().borrow().violation() {
                return Err(what.to_owned());
            }
            self.end_failed();
            self.check_replicas()?;
            self.take_wishes();
            while let Some(event) = self.events.take_due(self.world.now()) {
                self.on_event(event);
            }
        }
        Ok(())
    }

    fn replica(&mut self, port: usize) -> Option<&mut SimEndpoint<Replica>> {
        match self.world.node(PortId(port)) {
            Some(Process::Replica(node)) => Some(&mut node.rpc),
            _ => None,
        }
    }

    fn check_replicas(&mut self) -> Result<(), String> {
        // The log's time advances from 0 while there is a leader. A thread may run ahead.
        let most = self.world.now().0 / 1_000_000 + 1;
        for port in 0..self.replicas {
            if let Some(Process::Replica(replica)) = self.world.node(PortId(port))
                && let Some(node) = replica.rpc.app().node()
            {
                self.judge.check(id_of(port), node)?;
                if node.times().0 > most {
                    return Err(format!("the log's time runs ahead at replica {port}"));
                }
                let sends = |it: &Follower| it.sent > 0 && it.sent < it.size;
                let status = replica.rpc.app().status();
                self.sum.partly_sent += u64::from(status.followers.iter().any(sends));
            }
        }
        Ok(())
    }

    fn take_wishes(&mut self) {
        for port in (0..self.replicas + CLIENTS).map(PortId) {
            let wishes = match self.world.node(port) {
                Some(Process::Replica(node)) => std::mem::take(&mut node.wishes),
                Some(Process::Client(node)) => std::mem::take(&mut node.wishes),
                None => continue,
            };
            for address in wishes {
                let after = Nanos::from_micros(self.rng.log_between(50, 5_000));
                let at = self.world.now() + after;
                self.schedule(at, Event::Connect(port, address));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connect(port, address) => self.connect(port, &address),
            Event::Strike => self.strike(),
            Event::Start(victim) => {
                self.judge.on_restart(id_of(victim));
                self.set_clock(victim);
                self.world.act(Act::Boot(PortId(victim)));
            }
            Event::Lost(port, life, session) => {
                if self.world.life(port) == life {
                    self.close(port, session);
                }
            }
            Event::Act(act) => self.world.act(act),
            Event::Change => self.change_members(),
            Event::Room(victim) => self.world.cluster.disks[victim].fill(false),
        }
    }

    fn close(&mut self, port: PortId, session: Session) {
        let reason = CloseReason::PeerFailed;
        match self.world.node(port) {
            Some(Process::Replica(node)) => node.rpc.lifecycle().close(session, reason),
            Some(Process::Client(node)) => node.rpc.lifecycle().close(session, reason),
            None => return,
        };
        self.world.poke(port);
    }

    fn connect(&mut self, near: PortId, address: &str) {
        let far = address.parse().unwrap();
        let made = self.make(near, PortId(far));
        let now = self.world.net().borrow().clock(near).read();
        match self.world.node(near) {
            Some(Process::Replica(node)) => match made {
                Some(session) => node.rpc.app_mut().on_connecting(address, session),
                None => node.rpc.app_mut().on_refused(address, now),
            },
            Some(Process::Client(node)) => match made {
                Some(session) => node.rpc.app_mut().on_connecting(address, session),
                None => node.rpc.app_mut().on_refused(address, now),
            },
            None => return,
        }
        self.world.poke(near);
    }

    /// Makes a session, if both processes run.
    fn make(&mut self, near: PortId, far: PortId) -> Option<Session> {
        let peer = |port: PortId| PeerId(u32::try_from(port.0).unwrap());
        let options = SessionOptions::default();
        let (session, offer) = match self.world.node(near)? {
            Process::Replica(node) => offer(&mut node.rpc, &options)?,
            Process::Client(node) => offer(&mut node.rpc, &options)?,
        };
        let accepted = self.replica(far.0).and_then(|rpc| {
            let accepted = rpc.lifecycle().accept(peer(near), &offer);
            accepted.ok()
        });
        let Some((theirs, answer)) = accepted else {
            self.close(near, session);
            return None;
        };
        let opened = match self.world.node(near)? {
            Process::Replica(node) => node.rpc.lifecycle().opened(session, peer(far), &answer),
            Process::Client(node) => node.rpc.lifecycle().opened(session, peer(far), &answer),
        };
        opened.ok()?;
        let end = |port, session| (port, self.world.life(port), session);
        let ends = [end(near, session), end(far, theirs)];
        self.ties.push(Tie { ends });
        Some(session)
    }

    fn all_operations_have_ended(&mut self) -> Result<(), String> {
        for port in (self.replicas..self.replicas + CLIENTS).map(PortId) {
            if let Some(Process::Client(node)) = self.world.node(port) {
                let left = node.under_way();
                if left > 0 {
                    return Err(format!("{left} operations have not ended"));
                }
            }
        }
        Ok(())
    }

    /// Checks the clients' history, and that the replicas agree.
    fn judge_history(mut self, name: &str) -> Result<Sum, String> {
        let last = self.judge.last();
        let leader = self.leader().ok_or("no replica leads at the end")?;
        let roster = self.roster(leader).ok_or("a leader has a seat")?;
        let first = self.world.cluster.rosters[0].as_ref();
        self.sum.changed += u64::from(first != Some(&roster));
        let votes = |port: &usize| roster.part(id_of(*port)).is_some_and(|it| it.is_voter);
        for port in (0..self.replicas).filter(votes) {
            let rpc = self.replica(port).ok_or("a replica does not run")?;
            let applied = rpc.app().status().applied;
            if applied != last {
                return Err(format!("replica {port} has applied {applied} of {last}"));
            }
        }
        self.all_operations_have_ended()?;
        let record = self.world.cluster.record.take();
        if let Some(what) = record.violation {
            return Err(what);
        }
        let verdict = check_keys(&record.operations);
        let crowded = match verdict {
            Ok(()) => crowded_keys(&record.operations),
            Err(_) => Vec::new(),
        };
        let of_others = record
            .operations
            .iter()
            .filter(|it| !crowded.contains(&it.key));
        let lines = of_others.filter_map(Operation::line);
        // A history whose search takes too long proves nothing.
        let is_clear = verdict
            .as_ref()
            .err()
            .is_none_or(|what| what.contains("no order"));
        if is_clear && shows_in_histories(self.bug) {
            histories::write("replica", name, verdict.is_err(), lines);
        }
        verdict?;
        record.check_ranges()?;
        if !record.has_missed {
            let rpc = self.replica(leader).ok_or("a leader does not run")?;
            let node = rpc.app().node().ok_or("it has no seat")?;
            check_watched(&record, node, last)?;
            self.sum.watched += 1;
        }
        let unknown = record.operations.iter().filter(|it| it.answer.is_none());
        Ok(Sum {
            operations: record.operations.len() as u64,
            unknown: unknown.count() as u64,
            terms: self.judge.terms(),
            entries: last,
            snapshots: self.judge.snapshots(),
            transactions: record.transactions.len() as u64,
            ranges: record.ranges.len() as u64,
            names: self.judge.names(),
            resumed: self.world.cluster.resumed,
            lost_zeros: self
                .world
                .cluster
                .disks
                .iter()
                .map(SimFiles::lost_zeros)
                .sum(),
            keys: KEYS as u64,
            crowded: crowded.len() as u64,
            ..self.sum
        })
    }
}

/// Opens a session that waits for an answer.
fn offer<App>(
    rpc: &mut SimEndpoint<App>,
    options: &SessionOptions,
) -> Option<(Session, dunlin_core::SessionOffer)> {
    let mut lifecycle = rpc.lifecycle();
    let session = lifecycle.open(options).ok()?;
    Some((session, lifecycle.offer_of(session)?))
}
