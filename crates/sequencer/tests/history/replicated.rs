//! The run of a seed over a replicated store: two hosts that may serve, three replicas that store
//! the servers' reservations, sessions, faults, and the check of the clients' numbers.

use dunlin_core::transport::PeerId;
use dunlin_core::{Nanos, Session};
use dunlin_replica::Node;
use dunlin_sequencer::{Ending, Taking};
use dunlin_sim::world::Act;
use dunlin_sim::world::schedule::Schedule;
use dunlin_sim::{HostId, Net, PortId, Rng, World};

use crate::actors::{ALL, Actor, Actors, Giver, REPLICAS, ReplicaNode, SCRIBES, SERVERS};
use crate::bug::Bug;
use crate::nodes::{BUSY, ClientNode};
use crate::record::judge;
use crate::scribe::{Finished, Scribe};
use crate::stage::draw_origin;

/// No fault begins after this time.
const CHAOS: Nanos = Nanos::from_millis(2800);
/// By this time, every call must have ended.
const END: Nanos = Nanos::from_millis(12_000);
const STEP: Nanos = Nanos::from_micros(500);

/// Counts of events, which show that the runs cover the intended cases.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) taken: u64,
    pub(crate) crashes: u64,
    pub(crate) refused: u64,
    pub(crate) deposed: u64,
    /// Writes to the store whose outcome was unknown, after which the server went on.
    pub(crate) unknown: u64,
    pub(crate) epochs: u64,
    pub(crate) replica_crashes: u64,
    pub(crate) cuts: u64,
}

impl Counts {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            taken: self.taken + other.taken,
            crashes: self.crashes + other.crashes,
            refused: self.refused + other.refused,
            deposed: self.deposed + other.deposed,
            unknown: self.unknown + other.unknown,
            epochs: self.epochs + other.epochs,
            replica_crashes: self.replica_crashes + other.replica_crashes,
            cuts: self.cuts + other.cuts,
        }
    }
}

/// Events that the stage has scheduled.
#[derive(Clone, Debug)]
enum Event {
    /// A client's session with a server.
    Connect(PortId, usize, usize),
    /// A session with a replica.
    ConnectTo(PortId, String),
    Lost(PortId, u32, Session),
    Crash(usize),
    Start(usize, Taking),
    CrashReplica(bool),
    StartReplica(usize),
    Pause(usize),
    Resume(usize),
    /// A host has no network for a while.
    Cut(HostId),
    Act(Act),
    /// Faults are over. If no server serves, the stage starts one.
    Settle,
}

struct Stage {
    world: World<Actors>,
    hosts: Vec<HostId>,
    rng: Rng,
    events: Schedule<Event>,
    /// The sessions, each by its two ends: the port, the life of its process, and the session
    /// there.
    ties: Vec<[(PortId, u32, Session); 2]>,
    paused: [bool; SERVERS],
    newest: u32,
    counts: Counts,
    /// The generator for the clocks of servers and replicas; `None`: all clocks show the same time.
    clocks: Option<Rng>,
}

/// Runs a seed, perhaps with clocks that differ by minutes.
///
/// # Errors
/// A description of the history's fault.
pub(crate) fn run_seed(seed: u64, bug: Bug, apart: bool) -> Result<Counts, String> {
    let mut stage = Stage::new(seed, bug);
    if apart {
        stage.clocks = Some(Rng::new(!seed));
        let others = (0..SERVERS).chain(SCRIBES..ALL);
        others.for_each(|port| stage.set_clock(port));
    }
    stage.go();
    stage.judge(&format!("replicated-{bug:?}-{seed}-{apart}"))
}

impl Stage {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::undamaged(&mut rng);
        let actors = Actors::new(bug, rng.fork());
        let mut world = World::new(&net, actors, rng.next_u64());
        let mut hosts = Vec::new();
        for port in 0..ALL {
            let host = match port {
                SCRIBES..REPLICAS => hosts[port - SCRIBES],
                _ => world.add_host(),
            };
            hosts.push(host);
            world.add_port(host);
        }
        for port in (SERVERS..=SCRIBES).chain(REPLICAS..ALL) {
            world.act(Act::Boot(PortId(port)));
        }
        let mut stage = Self {
            world,
            hosts,
            rng,
            events: Schedule::default(),
            ties: Vec::new(),
            paused: [false; SERVERS],
            newest: 0,
            counts: Counts::default(),
            clocks: None,
        };
        stage.plan_faults();
        stage
    }

    fn plan_faults(&mut self) {
        for _ in 0..self.rng.between(4, 12) {
            let at = Nanos(self.rng.below(CHAOS.0));
            let server = self.rng.index(SERVERS);
            let event = match self.rng.below(9) {
                0 | 1 => Event::Crash(server),
                2 => Event::Pause(server),
                3 => Event::Start(server, Taking::Free),
                4 => Event::Start(server, Taking::Over),
                5 => Event::CrashReplica(true),
                6 => Event::CrashReplica(false),
                7 => Event::Cut(self.hosts[server]),
                _ => Event::Cut(self.hosts[self.rng.index(ALL - REPLICAS) + REPLICAS]),
            };
            self.schedule(at, event);
        }
        self.schedule(BUSY, Event::Settle);
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.events.add(at, event);
    }

    fn schedule_in(&mut self, least_us: u64, most_us: u64, event: Event) {
        let span = Nanos::from_micros(self.rng.log_between(least_us, most_us));
        self.schedule(self.world.now() + span, event);
    }

    fn go(&mut self) {
        // After a violation, the world's time no longer advances.
        while self.world.now() < END && self.world.net().borrow().violation().is_none() {
            let now = self.world.now();
            let next = self.events.next_at().unwrap_or(END).max(now);
            self.world.run_until(next.min(now + STEP).min(END));
            self.take_wishes();
            (0..SERVERS).for_each(|server| self.pass_jobs(server));
            while let Some(event) = self.events.take_due(self.world.now()) {
                self.on_event(event);
            }
        }
    }

    fn server(&mut self, server: usize) -> Option<&mut Giver> {
        match self.world.node(PortId(server)) {
            Some(Actor::Server(server)) => Some(server),
            _ => None,
        }
    }

    fn scribe(&mut self, server: usize) -> Option<&mut Scribe> {
        match self.world.node(PortId(SCRIBES + server)) {
            Some(Actor::Scribe(scribe)) => Some(scribe),
            _ => None,
        }
    }

    fn replica(&mut self, port: usize) -> Option<&mut ReplicaNode> {
        match self.world.node(PortId(port)) {
            Some(Actor::Replica(replica)) => Some(replica),
            _ => None,
        }
    }

    fn client(&mut self, port: PortId) -> &mut ClientNode {
        match self.world.node(port) {
            Some(Actor::Client(client)) => client,
            _ => panic!("the client is gone"),
        }
    }

    /// Sets the clock of a process that starts, forward or back by minutes.
    fn set_clock(&mut self, port: usize) {
        if let Some(clocks) = &mut self.clocks {
            self.world.set_clock(PortId(port), draw_origin(clocks));
        }
    }

    /// The time of a process's clock.
    fn time_of(&self, port: PortId) -> Nanos {
        self.world.net().borrow().clock(port).read()
    }

    /// Carries jobs and their results between the two parts of a server, as its threads would.
    fn pass_jobs(&mut self, server: usize) {
        if self.paused[server] {
            return;
        }
        let finished = self.scribe(server).and_then(|it| it.finished.take());
        match finished {
            Some(Finished::Claim(Ok(claim))) => {
                self.world.cluster.claims[server] = Some(claim);
                self.set_clock(server);
                self.world.act(Act::Boot(PortId(server)));
                let epoch = self.server(server).map(|it| it.rpc.app().epoch());
                self.newest = self.newest.max(epoch.unwrap_or(0));
            }
            Some(Finished::Claim(Err(_))) => {
                self.counts.refused += 1;
                self.end(SCRIBES + server);
            }
            Some(Finished::Job(outcome)) => {
                if let Some(node) = self.server(server) {
                    let (desk, mut cx) = node.rpc.with();
                    desk.on_outcome(outcome, &mut cx);
                    let goes_on = desk.ending().is_none();
                    self.world.poke(PortId(server));
                    let scribe = self.scribe(server);
                    let unknown = scribe.map_or(0, |it| std::mem::take(&mut it.unknown));
                    self.counts.unknown += unknown * u64::from(goes_on);
                }
            }
            None => {}
        }
        let now = self.time_of(PortId(server));
        let job = self
            .server(server)
            .and_then(|it| it.rpc.app_mut().next_job(now));
        if let Some(job) = job {
            self.scribe(server).expect("a server has both").take(job);
            self.world.poke(PortId(SCRIBES + server));
        }
    }

    fn take_wishes(&mut self) {
        for port in (SERVERS..SCRIBES).map(PortId) {
            for (client, server) in std::mem::take(&mut self.client(port).wishes) {
                self.schedule_in(50, 5_000, Event::Connect(port, client, server));
            }
        }
        for port in (SCRIBES..ALL).map(PortId) {
            let wishes = self.world.node(port).map(Actor::take_wishes);
            for address in wishes.unwrap_or_default() {
                self.schedule_in(50, 5_000, Event::ConnectTo(port, address));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connect(port, client, server) => self.connect(port, client, server),
            Event::ConnectTo(port, address) => self.connect_to(port, &address),
            Event::Lost(port, life, session) => {
                if self.world.life(port) == life
                    && let Some(node) = self.world.node(port)
                {
                    node.close(session);
                    self.world.poke(port);
                }
            }
            Event::Crash(server) => {
                self.crash(server);
                let other = self.rng.index(SERVERS);
                self.schedule_in(100, 300_000, Event::Start(other, Taking::Over));
            }
            Event::Start(server, taking) => self.start(server, taking),
            Event::CrashReplica(is_leader) => self.crash_replica(is_leader),
            Event::StartReplica(port) => {
                self.set_clock(port);
                self.world.act(Act::Boot(PortId(port)));
            }
            Event::Pause(server) => {
                self.paused[server] = true;
                self.world.act(Act::Pause(self.hosts[server]));
                self.schedule_in(1_000, 1_500_000, Event::Resume(server));
                self.schedule_in(1_000, 400_000, Event::Start(1 - server, Taking::Over));
            }
            Event::Resume(server) => {
                self.paused[server] = false;
                self.world.act(Act::Resume(self.hosts[server]));
            }
            Event::Cut(host) => {
                self.counts.cuts += 1;
                self.world.act(Act::Unplug(host));
                self.schedule_in(1_000, 800_000, Event::Act(Act::Plug(host)));
                let other = self.rng.index(SERVERS);
                self.schedule_in(1_000, 400_000, Event::Start(other, Taking::Over));
            }
            Event::Act(act) => self.world.act(act),
            Event::Settle => self.settle(),
        }
    }

    fn connect(&mut self, port: PortId, client: usize, server: usize) {
        let session = match self.paused[server] {
            true => None,
            false => self.make(port, PortId(server)),
        };
        let now = self.world.now();
        let client = &mut self.client(port).rpc.app_mut().0[client];
        match session {
            Some(session) => client.on_connecting(session),
            None => client.on_refused(now),
        }
        self.world.poke(port);
    }

    fn connect_to(&mut self, near: PortId, address: &str) {
        let far = address.parse().unwrap();
        let made = self.make(near, PortId(far));
        let now = self.time_of(near);
        match (self.world.node(near), made) {
            (Some(Actor::Scribe(node)), Some(session)) => {
                node.rpc.app_mut().on_connecting(address, session);
            }
            (Some(Actor::Scribe(node)), None) => node.rpc.app_mut().on_refused(address, now),
            (Some(Actor::Replica(node)), Some(session)) => {
                node.rpc.app_mut().on_connecting(address, session);
            }
            (Some(Actor::Replica(node)), None) => node.rpc.app_mut().on_refused(address, now),
            _ => return,
        }
        self.world.poke(near);
    }

    /// Makes a session, if both processes run.
    fn make(&mut self, near: PortId, far: PortId) -> Option<Session> {
        let peer = |port: PortId| PeerId(u32::try_from(port.0).unwrap());
        let (session, offer) = self.world.node(near)?.offer()?;
        let accepted = match self.world.node(far) {
            Some(Actor::Server(node)) => node.rpc.lifecycle().accept(peer(near), &offer).ok(),
            Some(Actor::Replica(node)) => node.rpc.lifecycle().accept(peer(near), &offer).ok(),
            _ => None,
        };
        let Some((theirs, answer)) = accepted else {
            self.world.node(near)?.close(session);
            return None;
        };
        let opened = match self.world.node(near)? {
            Actor::Client(node) => node.rpc.lifecycle().opened(session, peer(far), &answer),
            Actor::Scribe(node) => node.rpc.lifecycle().opened(session, peer(far), &answer),
            Actor::Replica(node) => node.rpc.lifecycle().opened(session, peer(far), &answer),
            Actor::Server(_) => return None,
        };
        opened.ok()?;
        let end = |port, session| (port, self.world.life(port), session);
        self.ties.push([end(near, session), end(far, theirs)]);
        Some(session)
    }

    /// Ends the process at a port. The others learn that soon.
    fn end(&mut self, port: usize) {
        if self.world.node(PortId(port)).is_none() {
            return;
        }
        self.world.act(Act::Crash(PortId(port)));
        for ends in std::mem::take(&mut self.ties) {
            match ends.iter().position(|(end, ..)| end.0 == port) {
                Some(dead) => {
                    let (far, life, session) = ends[1 - dead];
                    self.schedule_in(1, 5_000, Event::Lost(far, life, session));
                }
                None => self.ties.push(ends),
            }
        }
    }

    /// Ends both parts of a server.
    fn crash(&mut self, server: usize) {
        if self.scribe(server).is_none() {
            return;
        }
        self.counts.crashes += 1;
        let ending = self.server(server).and_then(|it| it.rpc.app().ending());
        self.counts.deposed += u64::from(matches!(ending, Some(Ending::Deposed(_))));
        self.end(server);
        self.end(SCRIBES + server);
    }

    /// Starts a server in place of one that has ended.
    fn start(&mut self, server: usize, taking: Taking) {
        if self.paused[server] {
            return;
        }
        let claims = self.scribe(server).is_some() && self.server(server).is_none();
        let serves = |it: &mut Giver| it.rpc.app().ending().is_none();
        if claims || self.server(server).is_some_and(serves) {
            return;
        }
        self.crash(server);
        self.world.cluster.taking = taking;
        self.set_clock(SCRIBES + server);
        self.world.act(Act::Boot(PortId(SCRIBES + server)));
    }

    /// Crashes a replica, which keeps its log and its items.
    fn crash_replica(&mut self, is_leader: bool) {
        let mut victim = REPLICAS + self.rng.index(ALL - REPLICAS);
        for port in (REPLICAS..ALL).filter(|_| is_leader) {
            let leads = |it: &mut ReplicaNode| it.rpc.app().node().is_some_and(Node::leads);
            if self.replica(port).is_some_and(leads) {
                victim = port;
            }
        }
        let node = self.replica(victim).and_then(|it| it.rpc.app().node());
        let Some(image) = node.map(Node::image) else {
            return;
        };
        self.counts.replica_crashes += 1;
        self.world.cluster.images[victim - REPLICAS] = Some(image);
        self.end(victim);
        self.schedule_in(100, 400_000, Event::StartReplica(victim));
    }

    fn settle(&mut self) {
        self.world.net().borrow_mut().heal();
        (0..SERVERS).for_each(|server| self.on_event(Event::Resume(server)));
        let newest = self.newest;
        let serves = |it: &mut Giver| {
            let desk = it.rpc.app();
            desk.ending().is_none() && desk.epoch() == newest
        };
        if !(0..SERVERS).any(|it| self.server(it).is_some_and(serves)) {
            self.crash(0);
            self.start(0, Taking::Over);
        }
        self.schedule_in(1_000_000, 1_500_000, Event::Settle);
    }

    /// Checks the clients' numbers.
    fn judge(mut self, name: &str) -> Result<Counts, String> {
        if let Some(what) = self.world.net().borrow().violation() {
            return Err(what.to_owned());
        }
        let ports = (SERVERS..SCRIBES).map(PortId);
        let left: usize = ports.map(|port| self.client(port).under_way()).sum();
        let taken = judge(&self.world.cluster.records, name)?;
        if left > 0 {
            return Err(format!("{left} calls have not ended"));
        }
        Ok(Counts {
            taken,
            epochs: self.newest.into(),
            ..self.counts
        })
    }
}
