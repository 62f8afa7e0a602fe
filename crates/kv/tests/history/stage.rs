//! The run of a seed: sessions between clients and partitions, faults of the network, servers that
//! restart with another number of partitions, and the check of what the clients have seen.

use std::collections::BTreeMap;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOptions};
use dunlin_kv::store::{Config, Mode, Region, Seed, Table};
use dunlin_kv::{Map, Options, Partition, serve};
use dunlin_sim::world::Act;
use dunlin_sim::world::ProcessId;
use dunlin_sim::world::rng::Ppm;
use dunlin_sim::world::trace::Trace;
use dunlin_sim::{
    Cluster, FaultRates, Net, NetConfig, NetHandle, PortId, Rng, SimTransport, World,
};

use crate::nodes::{BUSY, ClientNode, Member, endpoint};
use crate::record::{Action, KEYS, Operation, Outcome, Record, Shared};
use crate::search;

/// Ports that may have a partition; the server uses some of them in each life.
const PORTS: usize = 3;
const CLIENTS: usize = 5;
/// No server restarts after this time.
const CHAOS: Nanos = Nanos::from_millis(3000);
/// Every operation must have ended at this time.
const END: Nanos = Nanos::from_millis(6500);
const STEP: Nanos = Nanos::from_micros(500);

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    None,
    /// Every get misses.
    #[cfg(feature = "mutants")]
    Miss,
    /// A compare-and-set does not compare.
    #[cfg(feature = "mutants")]
    LostCompare,
    /// An expired item is returned.
    #[cfg(feature = "mutants")]
    Expired,
    /// A client repeats a write that may have happened.
    #[cfg(feature = "mutants")]
    RepeatedWrite,
    /// A client never replaces its first map, and servers accept requests that it misroutes.
    #[cfg(feature = "mutants")]
    OldMap,
    /// A client returns the item of its previous get, even if it was written meanwhile.
    #[cfg(feature = "mutants")]
    OldRead,
    /// A write stops in the middle of its value.
    #[cfg(feature = "mutants")]
    HalfWrite,
    /// A get goes on with the slices of a value that was overwritten meanwhile.
    #[cfg(feature = "mutants")]
    MixedSlices,
}

#[cfg(feature = "mutants")]
impl Bug {
    /// Every bug, and a part of the message by which it must be found.
    pub(crate) const PLANTED: [(Self, &str); 8] = [
        (Self::Miss, "no order explains"),
        (Self::LostCompare, "no order explains"),
        (Self::Expired, "no order explains"),
        (Self::RepeatedWrite, "no order explains"),
        (Self::OldMap, "no order explains"),
        (Self::OldRead, "no order explains"),
        (Self::HalfWrite, "no client has written"),
        (Self::MixedSlices, "no client has written"),
    ];
}

/// Counts of events, which show that the runs cover the cases that they are made for.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sum {
    pub(crate) operations: u64,
    pub(crate) found: u64,
    pub(crate) unknown: u64,
    pub(crate) differs: u64,
    pub(crate) expired: u64,
    pub(crate) restarts: u64,
}

impl Sum {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            found: self.found + other.found,
            unknown: self.unknown + other.unknown,
            differs: self.differs + other.differs,
            expired: self.expired + other.expired,
            restarts: self.restarts + other.restarts,
        }
    }
}

/// Makes the processes: servers have the first ports.
struct Members {
    record: Shared,
    rng: Rng,
    bug: Bug,
    /// The number of times that the server has started, and its partitions since the last start.
    life: u32,
    partitions: u16,
    expired: u64,
}

impl Members {
    fn partition(&mut self, number: u16) -> Partition {
        let config = Config {
            mode: Mode::Store,
            seed: Seed::new([self.rng.next_u64(), self.rng.next_u64()]),
            first_version: u64::from(self.life) << 32,
        };
        let region = Region::new(4 << 20).unwrap();
        let table = Table::new(region, config).unwrap();
        #[cfg(feature = "mutants")]
        let table = {
            let mut table = table;
            match self.bug {
                Bug::Miss => table.plant(dunlin_store::Mutant::Miss),
                Bug::LostCompare => table.plant(dunlin_store::Mutant::LostCompare),
                Bug::Expired => table.plant(dunlin_store::Mutant::Expired),
                Bug::HalfWrite => table.plant(dunlin_store::Mutant::HalfWrite),
                _ => {}
            }
            table
        };
        let map = Map::new(self.life, Mode::Store, 0..self.partitions).unwrap();
        let partition = Partition::new(table, map, number);
        #[cfg(feature = "mutants")]
        let partition = {
            let mut partition = partition;
            match self.bug {
                Bug::OldMap => partition.take_any_map(),
                Bug::MixedSlices => partition.take_any_stamp(),
                _ => {}
            }
            partition
        };
        partition
    }

    /// The options of a client. One client has the bug of clients, if any.
    fn options(&self, client: usize) -> Options {
        let options = Options {
            expected_value: 4,
            multi_answer: 100,
            ..Options::DEFAULT
        };
        #[cfg(feature = "mutants")]
        let options = Options {
            mutant: match self.bug {
                Bug::RepeatedWrite => Some(dunlin_kv::Mutant::RepeatedWrite),
                Bug::OldMap if client == 0 => Some(dunlin_kv::Mutant::OldMap),
                Bug::OldRead => Some(dunlin_kv::Mutant::OldRead),
                _ => None,
            },
            ..options
        };
        let _ = (client, self.bug);
        options
    }
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        let (port, mut rng) = (process.port, self.rng.fork());
        if port.0 >= PORTS {
            let options = self.options(port.0 - PORTS);
            let record = Shared::clone(&self.record);
            let client = ClientNode::boot(net, port, options, record, rng);
            return Member::Client(Box::new(client));
        }
        let number = u16::try_from(port.0).unwrap();
        let seed = rng.next_u64();
        if number >= self.partitions {
            let rpc = SimTransport::endpoint(net, port, (), endpoint(), seed);
            return Member::Idle(Box::new(rpc));
        }
        let app = self.partition(number);
        let mut rpc = SimTransport::endpoint(net, port, app, endpoint(), seed);
        serve(&mut rpc);
        Member::Server(Box::new(rpc))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

/// Events that the stage has planned.
#[derive(Clone, Copy, Debug)]
enum Event {
    Connect(PortId, u16),
    Crash,
    Start(Nanos),
    Lost(PortId, Session),
}

struct Stage {
    world: World<Members>,
    rng: Rng,
    events: BTreeMap<(Nanos, u64), Event>,
    sequence: u64,
    /// The sessions of clients with the server since its last start.
    sessions: Vec<(PortId, Session)>,
    is_up: bool,
    restarts: u64,
}

/// Runs a seed.
///
/// # Errors
/// In words: what is wrong with its history.
pub(crate) fn run_seed(seed: u64, bug: Bug) -> Result<Sum, String> {
    let mut stage = Stage::new(seed, bug);
    stage.go();
    stage.judge()
}

impl Stage {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::new(NetConfig::default(), rng.next_u64(), Trace::new(false));
        // Damage that no checksum notices would change values.
        let rates = FaultRates {
            damage: Ppm::NEVER,
            ..FaultRates::draw(&mut rng)
        };
        net.borrow_mut().set_rates(rates);
        let members = Members {
            record: Shared::default(),
            bug,
            life: 1,
            partitions: u16::try_from(rng.between(1, PORTS as u64)).unwrap(),
            rng: rng.fork(),
            expired: 0,
        };
        let mut world = World::new(&net, members, rng.next_u64());
        for _ in 0..PORTS + CLIENTS {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        let mut stage = Self {
            world,
            rng,
            events: BTreeMap::new(),
            sequence: 0,
            sessions: Vec::new(),
            is_up: true,
            restarts: 0,
        };
        for _ in 0..stage.rng.between(1, 4) {
            let at = Nanos(stage.rng.below(CHAOS.0));
            stage.schedule(at, Event::Crash);
        }
        stage
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn go(&mut self) {
        while self.world.now() < END {
            let now = self.world.now();
            if now >= BUSY {
                let net = self.world.net();
                net.borrow_mut().set_rates(FaultRates::NONE);
            }
            let next = self.events.first_key_value().map(|((at, _), _)| *at);
            let next = next.unwrap_or(END).max(now);
            self.world.run_until(next.min(now + STEP).min(END));
            self.take_wishes();
            while let Some(entry) = self.events.first_entry() {
                if entry.key().0 > self.world.now() {
                    break;
                }
                let event = entry.remove();
                self.on_event(event);
            }
        }
    }

    fn client(&mut self, port: PortId) -> &mut ClientNode {
        match self.world.node(port) {
            Some(Member::Client(client)) => client,
            _ => panic!("clients stay"),
        }
    }

    fn take_wishes(&mut self) {
        for port in (PORTS..PORTS + CLIENTS).map(PortId) {
            for endpoint in std::mem::take(&mut self.client(port).wishes) {
                let after = Nanos::from_micros(self.rng.log_between(50, 5_000));
                let at = self.world.now() + after;
                self.schedule(at, Event::Connect(port, endpoint));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connect(client, endpoint) => self.connect(client, endpoint),
            Event::Crash => self.crash(),
            Event::Start(since) => self.start(since),
            Event::Lost(port, session) => {
                let client = self.client(port);
                client
                    .rpc
                    .lifecycle()
                    .close(session, CloseReason::PeerFailed);
                self.world.poke(port);
            }
        }
    }

    fn connect(&mut self, client: PortId, endpoint: u16) {
        let now = self.world.now();
        match self.make(client, usize::from(endpoint)) {
            Some(session) => {
                self.sessions.push((client, session));
                let rpc = &mut self.client(client).rpc;
                rpc.app_mut().on_connecting(endpoint, session);
            }
            None => {
                let rpc = &mut self.client(client).rpc;
                rpc.app_mut().on_refused(endpoint, now);
            }
        }
        self.world.poke(client);
    }

    /// Makes a session, if the server runs.
    fn make(&mut self, client: PortId, server: usize) -> Option<Session> {
        let peer = |port: usize| PeerId(u32::try_from(port).unwrap());
        if !self.is_up || server >= PORTS {
            return None;
        }
        let mut near = self.client(client).rpc.lifecycle();
        let session = near.open(&SessionOptions::default()).ok()?;
        let offer = near.offer_of(session)?;
        let accepted = match self.world.node(PortId(server)) {
            Some(Member::Server(rpc)) => rpc.lifecycle().accept(peer(client.0), &offer),
            Some(Member::Idle(rpc)) => rpc.lifecycle().accept(peer(client.0), &offer),
            _ => return None,
        };
        let (_, answer) = accepted.ok()?;
        let mut near = self.client(client).rpc.lifecycle();
        near.opened(session, peer(server), &answer).ok()?;
        Some(session)
    }

    fn crash(&mut self) {
        if !std::mem::replace(&mut self.is_up, false) {
            return;
        }
        let now = self.world.now();
        for server in (0..PORTS).map(PortId) {
            self.note_figures(server);
            self.world.act(Act::Crash(server));
        }
        for (client, session) in std::mem::take(&mut self.sessions) {
            let at = now + Nanos(self.rng.below(5_000_000));
            self.schedule(at, Event::Lost(client, session));
        }
        let down = Nanos::from_micros(self.rng.log_between(100, 300_000));
        self.schedule(now + down, Event::Start(now));
    }

    fn start(&mut self, since: Nanos) {
        self.is_up = true;
        self.restarts += 1;
        let members = &mut self.world.cluster;
        members.life += 1;
        members.partitions = u16::try_from(members.rng.between(1, PORTS as u64)).unwrap();
        let lost = (0..KEYS).map(|key| Operation {
            key,
            action: Action::Lose,
            begin: since,
            end: self.world.now(),
            outcome: Outcome::Done,
        });
        let lost: Vec<Operation> = lost.collect();
        let mut record = self.world.cluster.record.borrow_mut();
        record.operations.extend(lost);
        drop(record);
        for server in (0..PORTS).map(PortId) {
            self.world.act(Act::Boot(server));
        }
    }

    /// Counts what a partition has seen, before it goes.
    fn note_figures(&mut self, server: PortId) {
        if let Some(Member::Server(rpc)) = self.world.node(server) {
            let figures = rpc.app().figures();
            self.world.cluster.expired += figures.expired;
        }
    }

    /// Checks what the clients have seen.
    fn judge(mut self) -> Result<Sum, String> {
        for server in (0..PORTS).map(PortId) {
            self.note_figures(server);
        }
        for port in (PORTS..PORTS + CLIENTS).map(PortId) {
            let left = self.client(port).under_way();
            if left > 0 {
                return Err(format!("{left} operations have not ended"));
            }
        }
        if let Some(what) = self.world.net().borrow().violation() {
            return Err(what.to_owned());
        }
        let record: Record = self.world.cluster.record.take();
        if let Some(what) = record.violation {
            return Err(what);
        }
        for key in 0..KEYS {
            let all = record.operations.iter();
            let of_key: Vec<Operation> = all.filter(|it| it.key == key).copied().collect();
            search::check(&of_key).map_err(|what| format!("key {key}: {what}"))?;
        }
        let count = |is_it: fn(&Outcome) -> bool| {
            let all = record.operations.iter();
            all.filter(|it| is_it(&it.outcome)).count() as u64
        };
        Ok(Sum {
            operations: record.operations.len() as u64,
            found: count(|it| matches!(it, Outcome::Found(..))),
            unknown: count(|it| *it == Outcome::Unknown),
            differs: count(|it| *it == Outcome::Differs),
            expired: self.world.cluster.expired,
            restarts: self.restarts,
        })
    }
}
