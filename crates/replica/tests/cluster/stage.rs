//! The run of a seed: sessions between the processes, faults, and the check of the history.

use std::collections::BTreeMap;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOptions};
use dunlin_replica::{Image, Member, Members, Options, Replica};
use dunlin_sim::world::rng::Ppm;
use dunlin_sim::world::trace::Trace;
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{Cluster, FaultRates, HostId, Net, NetConfig, NetHandle, PortId, Rng, World};
use dunlin_testkit::linear;

use crate::judge::Judge;
use crate::processes::{BUSY, ClientNode, Process, ReplicaNode, Rpc};
use crate::record::{KEYS, Operation, Shared};

const CLIENTS: usize = 3;
/// No fault begins after this time.
const CHAOS: Nanos = Nanos::from_millis(1000);
/// Every operation must have ended at this time, and the replicas must agree.
const END: Nanos = Nanos::from_millis(2600);
/// The invariants are checked this often.
const STEP: Nanos = Nanos::from_micros(500);

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    None,
    /// A bug of the replica.
    #[cfg(feature = "mutants")]
    Replica(dunlin_replica::Mutant),
    /// The last entries do not survive a restart.
    #[cfg(feature = "mutants")]
    LostTail,
}

/// Counts of events, which show that the runs cover the cases that they are made for.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sum {
    pub(crate) operations: u64,
    pub(crate) unknown: u64,
    pub(crate) restarts: u64,
    pub(crate) cuts: u64,
    pub(crate) pauses: u64,
    pub(crate) terms: u64,
    pub(crate) entries: u64,
    pub(crate) snapshots: u64,
    /// Names that clients have got.
    pub(crate) names: u64,
}

impl Sum {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            unknown: self.unknown + other.unknown,
            restarts: self.restarts + other.restarts,
            cuts: self.cuts + other.cuts,
            pauses: self.pauses + other.pauses,
            terms: self.terms + other.terms,
            entries: self.entries + other.entries,
            snapshots: self.snapshots + other.snapshots,
            names: self.names + other.names,
        }
    }
}

/// Makes the processes: replicas have the first ports.
struct Processes {
    members: Members,
    /// The logs and items of replicas that do not run.
    images: Vec<Option<Image>>,
    options: Options,
    remembers_one_client: bool,
    record: Shared,
    rng: Rng,
}

impl Processes {
    fn replica(&mut self, port: usize) -> Replica {
        let id = id_of(port);
        match self.images[port].take() {
            Some(image) => Replica::resume(id, self.members.clone(), image, self.options),
            None if self.remembers_one_client => {
                let image = Image::first(&self.members).remember(1);
                Replica::resume(id, self.members.clone(), image, self.options)
            }
            None => {
                let mut replica = Replica::new(id, self.options);
                replica.on_bootstrap(self.members.clone()).unwrap();
                replica
            }
        }
    }
}

impl Cluster for Processes {
    type Node = Process;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Process {
        let (port, mut rng) = (process.port, self.rng.fork());
        let replicas = self.images.len();
        if port.0 < replicas {
            let replica = self.replica(port.0);
            let node = ReplicaNode::boot(net, port, replica, rng.next_u64());
            return Process::Replica(Box::new(node));
        }
        let record = Shared::clone(&self.record);
        let client = ClientNode::boot(net, port, replicas, record, rng);
        Process::Client(Box::new(client))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

const fn id_of(port: usize) -> u64 {
    port as u64 + 1
}

/// Events that the stage has planned.
#[derive(Clone, Debug)]
enum Event {
    Connect(PortId, String),
    Strike,
    Start(usize),
    Lost(PortId, u32, Session),
    Act(Act),
}

/// A session, and the lives of the processes at its ends.
#[derive(Clone, Copy)]
struct Tie {
    ends: [(PortId, u32, Session); 2],
}

struct Stage {
    world: World<Processes>,
    rng: Rng,
    bug: Bug,
    replicas: usize,
    events: BTreeMap<(Nanos, u64), Event>,
    sequence: u64,
    ties: Vec<Tie>,
    judge: Judge,
    sum: Sum,
}

/// Runs a seed.
///
/// # Errors
/// In words: the first broken invariant.
pub(crate) fn run_seed(seed: u64, bug: Bug) -> Result<Sum, String> {
    let mut stage = Stage::new(seed, bug);
    stage.go()?;
    stage.judge_history()
}

fn members(replicas: usize) -> Members {
    let member = |port: usize| Member {
        id: id_of(port),
        address: port.to_string(),
    };
    Members::new((0..replicas).map(member)).unwrap()
}

impl Stage {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::new(NetConfig::default(), rng.next_u64(), Trace::new(false));
        // Damage that no checksum notices would change messages.
        let rates = FaultRates {
            damage: Ppm::NEVER,
            ..FaultRates::draw(&mut rng)
        };
        net.borrow_mut().set_rates(rates);
        let replicas = *rng.pick(&[3, 3, 3, 5, 5, 7]);
        let options = Options {
            kept_entries: rng.between(5, 40),
            piece_bytes: 512,
            #[cfg(feature = "mutants")]
            mutant: match bug {
                Bug::Replica(mutant) => Some(mutant),
                _ => None,
            },
            ..Options::DEFAULT
        };
        let processes = Processes {
            members: members(replicas),
            images: vec![None; replicas],
            options,
            remembers_one_client: seed % 4 == 3,
            record: Shared::default(),
            rng: rng.fork(),
        };
        let mut world = World::new(&net, processes, rng.next_u64());
        for _ in 0..replicas + CLIENTS {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        let mut stage = Self {
            world,
            rng,
            bug,
            replicas,
            events: BTreeMap::new(),
            sequence: 0,
            ties: Vec::new(),
            judge: Judge::default(),
            sum: Sum::default(),
        };
        for _ in 0..stage.rng.between(2, 8) {
            stage.plan_fault();
        }
        stage
    }

    fn plan_fault(&mut self) {
        let at = Nanos(self.rng.below(CHAOS.0));
        self.schedule(at, Event::Strike);
    }

    /// A fault begins now, half of the time at the leader.
    fn strike(&mut self) {
        let until = self.world.now() + Nanos::from_micros(self.rng.log_between(20_000, 400_000));
        let any = self.rng.index(self.replicas);
        let aims = self.rng.one_in(2);
        let leader = self.leader().filter(|_| aims);
        let victim = leader.unwrap_or(any);
        let host = HostId(victim);
        match self.rng.below(4) {
            0 => self.crash(victim),
            1 => {
                self.sum.pauses += 1;
                self.world.act(Act::Pause(host));
                self.schedule(until, Event::Act(Act::Resume(host)));
            }
            2 => {
                self.sum.cuts += 1;
                self.world.act(Act::Unplug(host));
                self.schedule(until, Event::Act(Act::Plug(host)));
            }
            _ => self.cut(victim, until),
        }
    }

    /// The replica that leads in the highest term.
    fn leader(&mut self) -> Option<usize> {
        let mut leader = None;
        for port in 0..self.replicas {
            let term = self.replica(port).and_then(|rpc| {
                let node = rpc.app().node()?;
                node.leads().then_some(node.term())
            });
            leader = leader.max(term.map(|term| (term, port)));
        }
        leader.map(|(_, port)| port)
    }

    /// Cuts a replica, and some others with it, from the rest, in one direction or in both.
    fn cut(&mut self, victim: usize, until: Nanos) {
        self.sum.cuts += 1;
        let rng = &mut self.rng;
        let is_near = |port| port == victim || rng.one_in(3);
        let is_near: Vec<bool> = (0..self.replicas).map(is_near).collect();
        let (out, back) = *self.rng.pick(&[(true, true), (true, false), (false, true)]);
        for near in (0..self.replicas).filter(|it| is_near[*it]).map(HostId) {
            for far in (0..self.replicas).filter(|it| !is_near[*it]).map(HostId) {
                if out {
                    self.world.act(Act::Block(near, far));
                    self.schedule(until, Event::Act(Act::Unblock(near, far)));
                }
                if back {
                    self.world.act(Act::Block(far, near));
                    self.schedule(until, Event::Act(Act::Unblock(far, near)));
                }
            }
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn go(&mut self) -> Result<(), String> {
        while self.world.now() < END {
            let now = self.world.now();
            if now >= BUSY {
                self.world.net().borrow_mut().set_rates(FaultRates::NONE);
            }
            let next = self.events.first_key_value().map(|((at, _), _)| *at);
            let next = next.unwrap_or(END).max(now);
            self.world.run_until(next.min(now + STEP).min(END));
            if let Some(what) = self.world.net().borrow().violation() {
                return Err(what.to_owned());
            }
            self.check_replicas()?;
            self.take_wishes();
            while let Some(entry) = self.events.first_entry() {
                if entry.key().0 > self.world.now() {
                    break;
                }
                let event = entry.remove();
                self.on_event(event);
            }
        }
        Ok(())
    }

    fn replica(&mut self, port: usize) -> Option<&mut Rpc<Replica>> {
        match self.world.node(PortId(port)) {
            Some(Process::Replica(node)) => Some(&mut node.rpc),
            _ => None,
        }
    }

    fn check_replicas(&mut self) -> Result<(), String> {
        for port in 0..self.replicas {
            if let Some(Process::Replica(replica)) = self.world.node(PortId(port)) {
                let node = replica.rpc.app().node().expect("it has a seat");
                self.judge.check(id_of(port), node)?;
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
                self.world.act(Act::Boot(PortId(victim)));
            }
            Event::Lost(port, life, session) => {
                if self.world.life(port) == life {
                    self.close(port, session);
                }
            }
            Event::Act(act) => self.world.act(act),
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
        let (now, far) = (self.world.now(), address.parse().unwrap());
        let made = self.make(near, PortId(far));
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

    fn crash(&mut self, victim: usize) {
        let Some(rpc) = self.replica(victim) else {
            return;
        };
        let image = rpc.app().node().expect("it has a seat").image();
        self.world.cluster.images[victim] = Some(self.survivor(image));
        self.world.act(Act::Crash(PortId(victim)));
        self.sum.restarts += 1;
        let now = self.world.now();
        let ties = std::mem::take(&mut self.ties);
        for tie in ties {
            match tie.ends.iter().position(|(port, ..)| port.0 == victim) {
                Some(dead) => {
                    let (port, life, session) = tie.ends[1 - dead];
                    let at = now + Nanos(self.rng.below(5_000_000));
                    self.schedule(at, Event::Lost(port, life, session));
                }
                None => self.ties.push(tie),
            }
        }
        let down = Nanos::from_micros(self.rng.log_between(100, 400_000));
        self.schedule(now + down, Event::Start(victim));
    }

    /// Log and items that a crash leaves.
    fn survivor(&mut self, image: Image) -> Image {
        #[cfg(feature = "mutants")]
        if self.bug == Bug::LostTail {
            let mut image = image;
            image.lose_tail(self.rng.index(4));
            return image;
        }
        let _ = self.bug;
        image
    }

    /// Checks what the clients have seen, and that the replicas agree.
    fn judge_history(mut self) -> Result<Sum, String> {
        let last = self.judge.last();
        for port in 0..self.replicas {
            let rpc = self.replica(port).ok_or("a replica does not run")?;
            let applied = rpc.app().status().applied;
            if applied != last {
                return Err(format!("replica {port} has applied {applied} of {last}"));
            }
        }
        for port in (self.replicas..self.replicas + CLIENTS).map(PortId) {
            if let Some(Process::Client(node)) = self.world.node(port) {
                let left = node.under_way();
                if left > 0 {
                    return Err(format!("{left} operations have not ended"));
                }
            }
        }
        let record = self.world.cluster.record.take();
        if let Some(what) = record.violation {
            return Err(what);
        }
        for key in 0..KEYS {
            let all = record.operations.iter();
            let of_key: Vec<Operation> = all.filter(|it| it.key == key).cloned().collect();
            linear::check(&of_key, None).map_err(|what| format!("key {key}: {what}"))?;
        }
        let unknown = record.operations.iter().filter(|it| it.answer.is_none());
        Ok(Sum {
            operations: record.operations.len() as u64,
            unknown: unknown.count() as u64,
            terms: self.judge.terms(),
            entries: last,
            snapshots: self.judge.snapshots(),
            names: self.judge.names(),
            ..self.sum
        })
    }
}

/// Opens a session that waits for an answer.
fn offer<App>(
    rpc: &mut Rpc<App>,
    options: &SessionOptions,
) -> Option<(Session, dunlin_core::SessionOffer)> {
    let mut lifecycle = rpc.lifecycle();
    let session = lifecycle.open(options).ok()?;
    Some((session, lifecycle.offer_of(session)?))
}
