//! Histories of simulated clients over a network that loses, duplicates and delays packets, while
//! the server pauses. Each key must behave like a register that one operation at a time changes,
//! and a scan must show keys in order, each once, and each as a get at the same time would. Planted
//! bugs must be found.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod operation;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use dunlin_core::transport::PeerId;
use dunlin_core::{Check, Config, Endpoint, EndpointNum, Nanos, Session, SessionOptions, Workers};
use dunlin_index::{
    Answer, Client, Direction, End, Error, Index, MAX_LIMIT, Range, Request, Scan, ScanAnswer,
    Token, What, serve, serve_in_dispatch,
};
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{
    Cluster, FaultRates, HostId, Net, NetHandle, Node, PortId, Rng, SimEndpoint, SimTransport,
    World, take_reports,
};
use dunlin_testkit::workers::StepWorkers;
use dunlin_testkit::{linear, seeds};

use operation::{Action, Operation, Outcome};

/// The seeds of a run without bugs.
const SEEDS: u64 = 40;
const CLIENTS: usize = 3;
const SERVER: PortId = PortId(0);
/// Keys that change.
const KEYS: usize = 6;
/// Keys that never change, more than a scan reads at once.
const FIXED: u64 = 1300;
/// Mean time between two operations of a client.
const GAP: u64 = 2_000_000;
/// No operation begins after this time.
const BUSY: Nanos = Nanos::from_millis(250);
const END: Nanos = Nanos::from_millis(1000);
/// One in this number of operations is a scan.
const SCANS: u64 = 6;

/// Operations of the clients of a run, with their outcomes.
#[derive(Default)]
struct Record {
    operations: Vec<Operation>,
    scans: u64,
    scans_begun: u64,
    numbers: u64,
    violation: Option<String>,
}

type Shared = Rc<RefCell<Record>>;

impl Record {
    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}

/// A key. The index has a tree for keys of eight bytes and one for all others; keys that never
/// change and keys that do are in both.
fn spell(word: u64) -> Vec<u8> {
    let end: &[u8] = if word % 4 < 2 { b"" } else { b"~" };
    [&word.to_be_bytes()[..], end].concat()
}

fn fixed(number: u64) -> Vec<u8> {
    spell(2 * number)
}

/// A key between two that never change.
fn key(number: usize) -> Vec<u8> {
    spell(2 * (number as u64 * FIXED / KEYS as u64) + 1)
}

/// The value with a number. Every third one is too long for the tree.
fn value(number: u64) -> Vec<u8> {
    let times = if number.is_multiple_of(3) { 5 } else { 1 };
    number.to_le_bytes().repeat(times)
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().unwrap())
}

/// A process.
enum Process {
    Server(Box<ServerNode>),
    Client(Box<ClientNode>),
}

struct ServerNode {
    rpc: SimEndpoint<Index>,
    workers: StepWorkers,
    scans_in_workers: bool,
    rng: Rng,
}

struct ClientNode {
    rpc: SimEndpoint<Client>,
    session: Option<Session>,
    record: Shared,
    rng: Rng,
    next: Nanos,
    tokens: u64,
    begun: BTreeMap<u64, (Option<(usize, Action)>, Nanos)>,
}

fn options() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 32 << 20,
        check: Check::Event,
        ..Config::default()
    }
}

impl ServerNode {
    /// Starts a server whose scans run in workers or in the dispatch thread.
    fn boot(net: &NetHandle, index: Index, mut rng: Rng) -> Self {
        for number in 0..FIXED {
            index.put(&fixed(number), &value(number));
        }
        let workers = StepWorkers::new(64);
        let clock = net.borrow().clock(SERVER);
        let halves = SimTransport::open(net, SERVER);
        let boxed = Some(Box::new(workers.clone()) as Box<dyn Workers>);
        let (seed, number) = (rng.next_u64(), EndpointNum::chosen(1));
        let made = Endpoint::new(index.clone(), clock, halves, options(), seed, boxed, number);
        let mut rpc = made.unwrap();
        let scans_in_workers = rng.one_in(2);
        match scans_in_workers {
            true => serve(&mut rpc, &index),
            false => serve_in_dispatch(&mut rpc),
        }
        Self {
            rpc,
            workers,
            scans_in_workers,
            rng,
        }
    }

    fn run_once(&mut self) {
        if self.rng.one_in(3) {
            self.workers.run(self.rng.index(8));
        }
        self.rpc.run_once();
        take_reports(&mut self.rpc);
    }

    fn next_wakeup(&mut self) -> Nanos {
        let soon = match self.workers.is_idle() {
            true => Nanos::MAX,
            false => self.rpc.now() + Nanos::from_micros(20),
        };
        self.rpc.next_wakeup().min(soon)
    }
}

impl ClientNode {
    fn boot(net: &NetHandle, port: PortId, record: Shared, mut rng: Rng) -> Self {
        let seed = rng.next_u64();
        let mut rpc = SimTransport::endpoint(net, port, Client::default(), options(), seed);
        rpc.on_completion(|client, done, cx| {
            assert!(client.on_done(done, cx).is_none(), "it makes all calls");
        });
        Self {
            rpc,
            session: None,
            record,
            rng,
            next: Nanos::ZERO,
            tokens: 0,
            begun: BTreeMap::new(),
        }
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let now = self.rpc.now();
        if now >= self.next {
            self.next = match now < BUSY {
                true => now + Nanos(self.rng.exponential(GAP)),
                false => Nanos::MAX,
            };
            if let Some(session) = self.session.filter(|_| now < BUSY) {
                self.begin(session, now);
            }
        }
        while let Some(end) = self.rpc.app_mut().next_end() {
            self.on_end(&end);
            end.recycle(&mut self.rpc.cx());
        }
    }

    fn begin(&mut self, session: Session, now: Nanos) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let deadline = now + Nanos::from_millis(self.rng.log_between(1, 600));
        if self.rng.below(SCANS) == 0 {
            let what = What::Items(*self.rng.pick(&[Direction::Forward, Direction::Backward]));
            let scan = Scan {
                range: Range::ALL,
                what,
                limit: MAX_LIMIT,
            };
            self.begun.insert(token.0, (None, now));
            self.record.borrow_mut().scans_begun += 1;
            let (client, mut cx) = self.rpc.with();
            return client
                .begin_scan(session, &scan, token, deadline, &mut cx)
                .unwrap();
        }
        let at = self.rng.index(KEYS);
        self.record.borrow_mut().numbers += 1;
        let number = FIXED + self.record.borrow().numbers;
        let (key, value) = (key(at), value(number));
        let (action, request) = match self.rng.below(5) {
            0..2 => (Action::Get, Request::Get { key: &key }),
            2 => (Action::Delete, Request::Delete { key: &key }),
            _ => {
                let (key, value) = (&key[..], &value[..]);
                (Action::Put(number), Request::Put { key, value })
            }
        };
        self.begun.insert(token.0, (Some((at, action)), now));
        let (client, mut cx) = self.rpc.with();
        client
            .begin(session, &request, token, deadline, &mut cx)
            .unwrap();
    }

    fn on_end(&mut self, end: &End) {
        let now = self.rpc.now();
        let mut record = self.record.borrow_mut();
        let Some((what, begin)) = self.begun.remove(&end.token.0) else {
            return record.violate(format!("{:?} has ended twice", end.token));
        };
        let mut note = |key, action, outcome: Option<Outcome>| {
            record.operations.push(Operation {
                key,
                action,
                begin,
                end: outcome.map_or(Nanos::MAX, |_| now),
                outcome,
            });
        };
        let Some((key, action)) = what else {
            if let Ok(answer) = end.scanned() {
                match shown(&answer) {
                    Ok(keys) => {
                        let outcome =
                            |number| Some(Option::map_or(number, Outcome::Missing, Outcome::Found));
                        let keys = keys.into_iter().enumerate();
                        keys.for_each(|(key, number)| note(key, Action::Get, outcome(number)));
                        record.scans += 1;
                    }
                    Err(what) => record.violate(what),
                }
            }
            return;
        };
        match end.answer() {
            Ok(Answer::Found(value)) => note(key, action, Some(Outcome::Found(number(value)))),
            Ok(Answer::Missing) => note(key, action, Some(Outcome::Missing)),
            Ok(Answer::Written) => note(key, action, Some(Outcome::Written)),
            Err(Error::Unknown) => note(key, action, None),
            Err(Error::DeadlinePassed | Error::Unavailable) => {}
            other => record.violate(format!("{action:?} has ended with {other:?}")),
        }
    }
}

/// The numbers of the keys that change, as a scan of all keys has shown them.
fn shown(answer: &ScanAnswer<'_>) -> Result<[Option<u64>; KEYS], String> {
    let ScanAnswer::Items { more: false, .. } = answer else {
        return Err(format!("a scan was answered with {answer:?}"));
    };
    let mut items: Vec<_> = answer.entries().collect();
    if items.first().map(|it| it.key) > items.last().map(|it| it.key) {
        items.reverse();
    }
    if let Some(pair) = items.windows(2).find(|pair| pair[0].key >= pair[1].key) {
        return Err(format!("{:?} after {:?}", pair[1].key, pair[0].key));
    }
    let mut seen = [None; KEYS];
    let mut stay = 0;
    for item in items {
        let number = number(item.value);
        match (0..KEYS).find(|at| key(*at) == item.key) {
            Some(at) => seen[at] = Some(number),
            None if item.key == fixed(number) => stay += 1,
            None => return Err(format!("{:?} was never there", item.key)),
        }
    }
    match stay == FIXED {
        true => Ok(seen),
        false => Err(format!("{stay} of {FIXED} keys that stay")),
    }
}

impl Node for Process {
    fn run_once(&mut self) {
        match self {
            Self::Server(node) => node.run_once(),
            Self::Client(node) => node.run_once(),
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(node) => node.next_wakeup(),
            Self::Client(node) => node.rpc.next_wakeup().min(node.next),
        }
    }
}

/// Makes the processes: the server has the first port.
struct Processes {
    index: Index,
    record: Shared,
    rng: Rng,
}

impl Cluster for Processes {
    type Node = Process;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Process {
        let rng = self.rng.fork();
        match process.port == SERVER {
            true => Process::Server(Box::new(ServerNode::boot(net, self.index.clone(), rng))),
            false => {
                let record = Shared::clone(&self.record);
                Process::Client(Box::new(ClientNode::boot(net, process.port, record, rng)))
            }
        }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

/// Makes a session from a client to the server.
fn connect(world: &mut World<Processes>, port: PortId) {
    let peer = |port: PortId| PeerId(u32::try_from(port.0).unwrap());
    let Some(Process::Client(node)) = world.node(port) else {
        unreachable!("the client runs");
    };
    let session = node.rpc.lifecycle().open(&SessionOptions::default());
    let session = session.unwrap();
    let offer = node.rpc.lifecycle().offer_of(session).unwrap();
    let Some(Process::Server(node)) = world.node(SERVER) else {
        unreachable!("the server runs");
    };
    let (_, answer) = node.rpc.lifecycle().accept(peer(port), &offer).unwrap();
    let Some(Process::Client(node)) = world.node(port) else {
        unreachable!("the client runs");
    };
    let opened = node.rpc.lifecycle().opened(session, peer(SERVER), &answer);
    opened.unwrap();
    node.session = Some(session);
    world.poke(port);
}

/// Runs a seed. Returns the numbers of operations, of operations with an unknown result, and of
/// scans.
fn run_seed(seed: u64, index: Index) -> Result<[u64; 3], String> {
    let mut rng = Rng::new(seed);
    let net = Net::undamaged(&mut rng);
    let record = Shared::default();
    let processes = Processes {
        index,
        record: Shared::clone(&record),
        rng: rng.fork(),
    };
    let mut world = World::new(&net, processes, rng.next_u64());
    for _ in 0..=CLIENTS {
        let host = world.add_host();
        let port = world.add_port(host);
        world.act(Act::Boot(port));
    }
    (1..=CLIENTS).for_each(|port| connect(&mut world, PortId(port)));
    for _ in 0..rng.below(4) {
        let at = Nanos(rng.below(BUSY.0));
        let until = at + Nanos::from_micros(rng.log_between(500, 100_000));
        world.at(at, Act::Pause(HostId(SERVER.0)));
        world.at(until, Act::Resume(HostId(SERVER.0)));
    }
    world.run_until(BUSY);
    net.borrow_mut().set_rates(FaultRates::NONE);
    world.run_until(END);
    if let Some(what) = net.borrow().violation() {
        return Err(what.to_owned());
    }
    let record = record.take();
    if let Some(what) = record.violation {
        return Err(what);
    }
    let Some(Process::Server(node)) = world.node(SERVER) else {
        unreachable!("the server runs");
    };
    // Scans run in workers, if the server has them for that; gets never do.
    let (answered, begun) = match node.scans_in_workers {
        true => (record.scans, record.scans_begun),
        false => (0, 0),
    };
    let jobs = node.workers.submitted();
    if !(answered..=begun).contains(&jobs) {
        return Err(format!(
            "{jobs} jobs of workers for {answered} to {begun} scans"
        ));
    }
    for key in 0..KEYS {
        let of_key = record.operations.iter().filter(|it| it.key == key);
        let of_key: Vec<Operation> = of_key.cloned().collect();
        linear::check(&of_key, None).map_err(|what| format!("key {key}: {what}"))?;
    }
    let unknown = record.operations.iter().filter(|it| it.outcome.is_none());
    let unknown = unknown.count() as u64;
    Ok([record.operations.len() as u64, unknown, record.scans])
}

#[test]
fn every_history_has_an_order() {
    let mut sum = [0; 3];
    for (seed, seen) in seeds::run(0..SEEDS, |seed| run_seed(seed, Index::new())) {
        let seen = seen.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        (0..3).for_each(|at| sum[at] += seen[at]);
    }
    let [operations, unknown, scans] = sum;
    println!("{operations} operations, {unknown} unknown, {scans} scans");
    assert!(
        operations > 200 * SEEDS && unknown > SEEDS / 4 && scans > 10 * SEEDS,
        "{sum:?}"
    );
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found_in_a_history() {
    use dunlin_index::Mutant;
    for (mutant, message) in [
        (Mutant::OldRead, "no order explains"),
        (Mutant::Again, "after"),
    ] {
        let found = (0..SEEDS).find_map(|seed| run_seed(seed, Index::with_mutant(mutant)).err());
        let what = found.unwrap_or_else(|| panic!("{mutant:?} was not found"));
        assert!(what.contains(message), "{mutant:?}: {what}");
    }
}
