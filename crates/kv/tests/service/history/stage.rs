//! The run of a seed: sessions between clients and partitions, faults of the network, servers that
//! restart with another number of partitions, lists that change, and the check of the clients'
//! history.

mod cuts;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOptions};
use dunlin_kv::ServerId;
use dunlin_sim::world::Act;
use dunlin_sim::world::schedule::Schedule;
use dunlin_sim::{FaultRates, Net, PortId, Rng, World};

use crate::history::client::{BUSY, ClientNode};
use crate::history::lines;
use crate::history::members::{CLIENTS, Members};
use crate::history::nodes::Member;
use crate::history::plan::{Bug, Plan, Sum};
use crate::history::record::{Action, KEYS, Operation, Outcome, Record};
use crate::history::search;

/// After this time, no server stops, no list changes, and no network is cut.
const CHAOS: Nanos = Nanos::from_millis(3000);
/// By this time, every operation must have ended.
const END: Nanos = Nanos::from_millis(6500);
const STEP: Nanos = Nanos::from_micros(500);

/// Events that the stage has scheduled.
#[derive(Clone, Copy, Debug)]
enum Event {
    Connect(PortId, ServerId, u16),
    Crash(usize),
    /// A server that stopped at this time starts again.
    Start(usize, Nanos),
    /// Some clients and servers cannot reach each other for a while.
    Cut,
    Act(Act),
    /// The port of a process, its life, and the session that it loses.
    Lost(PortId, u32, Session),
    /// All servers are listed, except those whose bits are set.
    List(u32),
    ListAt(PortId, u32),
}

/// A session, and the lives of the client's and the server's process.
#[derive(Clone, Copy)]
struct Tie {
    ends: [(PortId, u32, Session); 2],
}

struct Stage {
    plan: Plan,
    seed: u64,
    world: World<Members>,
    rng: Rng,
    events: Schedule<Event>,
    /// The sessions between clients and servers since the last start of each.
    ties: Vec<Tie>,
    is_up: Vec<bool>,
    is_broken: bool,
    sum: Sum,
}

/// The end of a run.
pub(crate) struct Verdict {
    /// The counts of the run, or a description of its fault.
    pub(crate) result: Result<Sum, String>,
    /// Whether the operations of some key have no order that explains them.
    pub(crate) is_broken: bool,
}

/// Runs a seed.
pub(crate) fn run_seed(seed: u64, bug: Bug) -> Verdict {
    let mut stage = Stage::new(seed, bug);
    stage.go();
    stage.judge()
}

impl Stage {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(seed, bug, &mut rng);
        let net = Net::undamaged(&mut rng);
        let members = Members::new(plan, rng.fork());
        let mut world = World::new(&net, members, rng.next_u64());
        for _ in 0..plan.servers * plan.ports + CLIENTS {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        let mut stage = Self {
            plan,
            seed,
            world,
            rng,
            events: Schedule::default(),
            ties: Vec::new(),
            is_up: vec![true; plan.servers],
            is_broken: false,
            sum: Sum {
                servers: plan.servers as u64,
                ..Sum::default()
            },
        };
        stage.plan_events();
        stage
    }

    fn plan_events(&mut self) {
        for _ in 0..self.plan.crashes {
            let at = Nanos(self.rng.below(CHAOS.0));
            let server = self.rng.index(self.plan.servers);
            self.schedule(at, Event::Crash(server));
        }
        for _ in 0..self.plan.cuts {
            let at = Nanos(self.rng.below(CHAOS.0));
            self.schedule(at, Event::Cut);
        }
        for _ in 0..self.plan.lists {
            let at = Nanos(self.rng.below(CHAOS.0));
            // About a quarter of the servers are missing.
            let missing = self.rng.next_u32() & self.rng.next_u32();
            self.schedule(at, Event::List(missing));
        }
        if self.plan.lists > 0 {
            self.schedule(CHAOS, Event::List(0));
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.events.add(at, event);
    }

    fn go(&mut self) {
        // After a violation, the world's time no longer advances.
        while self.world.now() < END && self.world.net().borrow().violation().is_none() {
            let now = self.world.now();
            if now >= BUSY {
                let net = self.world.net();
                net.borrow_mut().set_rates(FaultRates::NONE);
            }
            let next = self.events.next_at().unwrap_or(END).max(now);
            self.world.run_until(next.min(now + STEP).min(END));
            self.take_wishes();
            while let Some(event) = self.events.take_due(self.world.now()) {
                self.on_event(event);
            }
        }
    }

    fn clients(&self) -> impl Iterator<Item = PortId> + use<> {
        let first = self.plan.servers * self.plan.ports;
        (first..first + CLIENTS).map(PortId)
    }

    fn ports_of(&self, server: usize) -> impl Iterator<Item = PortId> + use<> {
        let first = server * self.plan.ports;
        (first..first + self.plan.ports).map(PortId)
    }

    fn client(&mut self, port: PortId) -> &mut ClientNode {
        match self.world.node(port) {
            Some(Member::Client(client)) => client,
            _ => panic!("the client is gone"),
        }
    }

    fn take_wishes(&mut self) {
        for port in self.clients() {
            for (server, endpoint) in std::mem::take(&mut self.client(port).wishes) {
                let after = Nanos::from_micros(self.rng.log_between(50, 5_000));
                let at = self.world.now() + after;
                self.schedule(at, Event::Connect(port, server, endpoint));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connect(client, server, endpoint) => self.connect(client, server, endpoint),
            Event::Crash(server) => self.crash(server),
            Event::Start(server, since) => self.start(server, since),
            Event::Cut => self.cut(),
            Event::Act(act) => self.world.act(act),
            Event::Lost(port, life, session) => {
                if self.world.life(port) == life {
                    self.lose(port, session);
                }
            }
            Event::List(missing) => {
                for port in self.clients() {
                    let after = Nanos::from_micros(self.rng.log_between(10, 50_000));
                    self.schedule(self.world.now() + after, Event::ListAt(port, missing));
                }
            }
            Event::ListAt(port, missing) => {
                let is_listed = |server: &usize| *server < 2 || missing >> server & 1 == 0;
                let servers = (0..self.plan.servers).filter(is_listed);
                self.client(port).on_addresses(servers);
                self.sum.lists += 1;
                self.world.poke(port);
            }
        }
    }

    fn connect(&mut self, client: PortId, server: ServerId, endpoint: u16) {
        let name = self.client(client).rpc.app().name(server);
        let number = name.map(|name| name.trim_start_matches("server-").parse().unwrap());
        let made = number.and_then(|number| self.make(client, number, usize::from(endpoint)));
        let (fleet, mut cx) = self.client(client).rpc.with();
        match made {
            Some(session) => fleet.on_connecting(server, endpoint, session),
            None => fleet.on_refused(server, endpoint, &mut cx),
        }
        self.world.poke(client);
    }

    /// Makes a session, if the server runs.
    fn make(&mut self, client: PortId, server: usize, endpoint: usize) -> Option<Session> {
        let peer = |port: PortId| PeerId(u32::try_from(port.0).unwrap());
        let there = self.ports_of(server).nth(endpoint)?;
        if !self.is_up[server] || !self.is_whole(client, there) {
            return None;
        }
        let mut near = self.client(client).rpc.lifecycle();
        let session = near.open(&SessionOptions::default()).ok()?;
        let offer = near.offer_of(session)?;
        let accepted = match self.world.node(there) {
            Some(Member::Server(server)) => server.rpc.lifecycle().accept(peer(client), &offer),
            Some(Member::Idle(rpc)) => rpc.lifecycle().accept(peer(client), &offer),
            _ => return None,
        };
        let (far, answer) = accepted.ok()?;
        let mut near = self.client(client).rpc.lifecycle();
        near.opened(session, peer(there), &answer).ok()?;
        let end = |port, session| (port, self.world.life(port), session);
        let ends = [end(client, session), end(there, far)];
        self.ties.push(Tie { ends });
        Some(session)
    }

    /// Makes a process notice that its peer no longer answers.
    fn lose(&mut self, port: PortId, session: Session) {
        let reason = CloseReason::PeerFailed;
        match self.world.node(port) {
            Some(Member::Server(server)) => server.rpc.lifecycle().close(session, reason),
            Some(Member::Idle(rpc)) => rpc.lifecycle().close(session, reason),
            Some(Member::Client(client)) => client.rpc.lifecycle().close(session, reason),
            None => false,
        };
        self.world.poke(port);
    }

    fn crash(&mut self, server: usize) {
        if !std::mem::replace(&mut self.is_up[server], false) {
            return;
        }
        let now = self.world.now();
        let ports: Vec<PortId> = self.ports_of(server).collect();
        for port in ports.iter().copied() {
            self.note_figures(port);
            self.world.act(Act::Crash(port));
        }
        let is_lost = |tie: &mut Tie| ports.contains(&tie.ends[1].0);
        let lost: Vec<Tie> = self.ties.extract_if(.., is_lost).collect();
        for tie in lost {
            let [(client, life, session), _] = tie.ends;
            let at = now + Nanos(self.rng.below(5_000_000));
            self.schedule(at, Event::Lost(client, life, session));
        }
        let down = Nanos::from_micros(self.rng.log_between(100, 300_000));
        self.schedule(now + down, Event::Start(server, now));
    }

    fn start(&mut self, server: usize, since: Nanos) {
        self.is_up[server] = true;
        self.sum.restarts += 1;
        let end = self.world.now();
        self.world.cluster.restart(server);
        let lost = (0..KEYS).map(|key| Operation {
            server,
            key,
            action: Action::Lose,
            begin: since,
            end,
            outcome: Outcome::Done,
        });
        let mut record = self.world.cluster.record.borrow_mut();
        record.operations.extend(lost);
        drop(record);
        for port in self.ports_of(server) {
            self.world.act(Act::Boot(port));
        }
    }

    /// Adds a partition's figures to the counts before the partition is dropped.
    fn note_figures(&mut self, port: PortId) {
        if let Some(Member::Server(server)) = self.world.node(port) {
            let figures = server.rpc.app().figures();
            self.sum.expired += figures.expired;
        }
    }

    /// Checks the clients' history.
    fn judge(mut self) -> Verdict {
        let result = self.look();
        Verdict {
            result,
            is_broken: self.is_broken,
        }
    }

    fn look(&mut self) -> Result<Sum, String> {
        for server in 0..self.plan.servers {
            self.ports_of(server)
                .for_each(|port| self.note_figures(port));
        }
        let record: Record = self.world.cluster.record.take();
        let (kind, name) = match self.plan.bug {
            Bug::None => ("sound", format!("{}", self.seed)),
            #[cfg(feature = "mutants")]
            bug => ("planted", format!("{bug:?}")),
        };
        let explained = search::check_all(&record.operations);
        self.is_broken = explained.is_err();
        lines::write(kind, &name, explained.is_err(), &record.operations);
        for port in self.clients() {
            let client = self.client(port);
            let (left, missing, refused) = (client.under_way(), client.missing(), client.refused);
            if left > 0 {
                return Err(format!("{left} operations have not ended"));
            }
            if !missing.is_empty() {
                return Err(format!("no session leads to {missing:?}, which run"));
            }
            self.sum.refused += refused;
        }
        if let Some(what) = self.world.net().borrow().violation() {
            return Err(what.to_owned());
        }
        if let Some(what) = record.violation {
            return Err(what);
        }
        explained?;
        let count = |is_it: fn(&Operation) -> bool| {
            record.operations.iter().filter(|it| is_it(it)).count() as u64
        };
        Ok(Sum {
            operations: record.operations.len() as u64,
            found: count(|it| matches!(it.outcome, Outcome::Found(..))),
            unknown: count(|it| it.outcome == Outcome::Unknown),
            differs: count(|it| it.outcome == Outcome::Differs),
            evicted: count(|it| matches!(it.action, Action::Evict(_))),
            ..self.sum
        })
    }
}
