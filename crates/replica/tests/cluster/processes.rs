//! The simulated processes: replicas, and clients that issue random operations and record their
//! outcomes.

use std::collections::BTreeMap;

use dunlin_core::{Check, Config, Nanos};
use dunlin_replica::{
    Answer, Change, Client, ClientOptions, Compare, Error, Replica, Token, Write, serve,
};
use dunlin_sim::{NetHandle, Node, PortId, Rng, SimEndpoint, SimTransport, take_reports};

use crate::platter::SimFiles;
use crate::record::{Action, KEYS, Operation, PASSING, Shared, key_bytes, value_of};

/// In runs with faults, clients begin no operation after this time.
pub(crate) const BUSY: Nanos = Nanos::from_millis(1200);
/// Every key is read after this time, when all faults are over.
const LAST: Nanos = Nanos::from_millis(1600);
const LAST_DEADLINE: Nanos = Nanos::from_millis(900);
/// The first index after the members were agreed.
const FIRST: u64 = 2;
/// Mean time in nanoseconds between two operations of a client.
const GAP: u64 = 10_000_000;

/// A process.
pub(crate) enum Process {
    Replica(Box<ReplicaNode>),
    Client(Box<ClientNode>),
}

pub(crate) struct ReplicaNode {
    pub(crate) rpc: SimEndpoint<Replica>,
    /// Wishes that the stage has not granted yet.
    pub(crate) wishes: Vec<String>,
    /// The disk, if there is one.
    disk: Option<SimFiles>,
    /// A failure of the disk has ended the process.
    pub(crate) has_ended: bool,
}

pub(crate) struct ClientNode {
    pub(crate) rpc: SimEndpoint<Client>,
    pub(crate) wishes: Vec<String>,
    record: Shared,
    rng: Rng,
    next: Nanos,
    tokens: u64,
    /// The operations of each token, one for each key that it reads or writes.
    begun: BTreeMap<u64, Vec<Operation>>,
    /// The latest version of each key that this client has seen.
    versions: [u64; KEYS],
    is_last: bool,
    /// The token of the watch under way, and its first index.
    watch: Option<u64>,
    watch_from: u64,
    /// The client begins no random operation after this time.
    busy: Nanos,
    /// The client only reads, often, and waits long for a leader. So it would notice a leader that
    /// has been replaced and does not know it.
    is_reader: bool,
}

pub(crate) fn options() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 32 << 20,
        check: Check::Event,
        ..Config::default()
    }
}

impl ReplicaNode {
    pub(crate) fn boot(
        net: &NetHandle,
        port: PortId,
        replica: Replica,
        disk: Option<SimFiles>,
        seed: u64,
    ) -> Self {
        let mut rpc = SimTransport::endpoint(net, port, replica, options(), seed);
        serve(&mut rpc);
        rpc.on_completion(|replica, done, cx| {
            let other = replica.on_done(done, cx);
            assert!(other.is_none(), "the replica makes all calls");
        });
        rpc.on_session(|replica, event, cx| replica.on_session(event, cx));
        Self {
            rpc,
            wishes: Vec::new(),
            disk,
            has_ended: false,
        }
    }

    fn run_once(&mut self) {
        if self.has_ended {
            return;
        }
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let (replica, mut cx) = self.rpc.with();
        // A real process ends when it panics.
        let run = std::panic::AssertUnwindSafe(|| replica.run(&mut cx));
        if let Err(panic) = std::panic::catch_unwind(run) {
            if !self.disk.as_ref().is_some_and(SimFiles::has_failed) {
                std::panic::resume_unwind(panic);
            }
            self.has_ended = true;
            return;
        }
        let (replica, cx) = self.rpc.with();
        while let Some(address) = replica.wish(cx.now()) {
            self.wishes.push(address);
        }
    }
}

impl Node for Process {
    fn run_once(&mut self) {
        match self {
            Self::Replica(node) => node.run_once(),
            Self::Client(node) => node.run_once(),
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Replica(node) if node.has_ended => Nanos::MAX,
            Self::Replica(node) => {
                let own = node.rpc.app().next_wakeup();
                node.rpc.next_wakeup().min(own)
            }
            Self::Client(node) => {
                let own = node.rpc.app().next_wakeup().min(node.next);
                node.rpc.next_wakeup().min(own)
            }
        }
    }
}

impl ClientNode {
    pub(crate) fn boot(
        net: &NetHandle,
        port: PortId,
        replicas: usize,
        record: Shared,
        busy: Nanos,
        mut rng: Rng,
    ) -> Self {
        let is_reader = port.0 == replicas;
        let client_options = ClientOptions {
            expected_value: 4,
            attempt: Nanos::from_millis(if is_reader { 600 } else { 60 }),
            ..ClientOptions::DEFAULT
        };
        let addresses = (0..replicas).map(|port| port.to_string());
        let client = Client::new(addresses, client_options);
        let mut rpc = SimTransport::endpoint(net, port, client, options(), rng.next_u64());
        rpc.on_completion(|client, done, cx| {
            let other = client.on_done(done, cx);
            assert!(other.is_none(), "the client makes all calls");
        });
        rpc.on_session(|client, event, cx| client.on_session(event, cx));
        Self {
            rpc,
            wishes: Vec::new(),
            record,
            rng,
            next: Nanos::from_millis(100),
            tokens: 0,
            begun: BTreeMap::new(),
            versions: [0; KEYS],
            is_last: false,
            watch: None,
            watch_from: FIRST,
            busy,
            is_reader,
        }
    }

    /// The number of operations that have not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.begun.len()
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let now = self.rpc.now();
        if now >= self.next {
            let gap = if self.is_reader { GAP / 3 } else { GAP };
            self.next = now + Nanos(self.rng.exponential(gap));
            if now < self.busy {
                self.begin_one(now);
            } else if now < LAST {
                self.next = LAST;
            } else {
                self.begin_last(now);
            }
        }
        if self.is_reader && self.watch.is_none() {
            self.begin_watch(now);
        }
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        while let Some(address) = client.wish(cx.now()) {
            self.wishes.push(address);
        }
        while let Some(end) = self.rpc.app_mut().next_end() {
            match self.watch.take_if(|token| *token == end.token.0) {
                Some(_) => self.on_watched(end.result),
                None => self.on_end(&end.token, end.result, now),
            }
        }
    }

    /// Watches all keys, from the end of the last watch on.
    fn begin_watch(&mut self, now: Nanos) {
        self.tokens += 1;
        let (token, deadline) = (Token(self.tokens), now + Nanos::from_millis(300));
        self.watch = Some(token.0);
        let (client, mut cx) = self.rpc.with();
        client
            .begin_watch(b"key-", self.watch_from, token, Some(deadline), &mut cx)
            .unwrap();
    }

    fn on_watched(&mut self, result: Result<Answer, Error>) {
        let mut record = self.record.borrow_mut();
        match result {
            Ok(Answer::Events { next, events }) => {
                record.on_events(self.watch_from..next, events);
                self.watch_from = next;
            }
            Ok(Answer::Forgotten(first)) => {
                record.has_missed = true;
                self.watch_from = first;
            }
            // No leader has answered.
            Err(Error::Unavailable) => {}
            other => record.violate(format!("a watch has ended with {other:?}")),
        }
    }

    /// Reads every key once, at the end.
    fn begin_last(&mut self, now: Nanos) {
        self.next = Nanos::MAX;
        if !std::mem::replace(&mut self.is_last, true) {
            for key in 0..KEYS {
                self.begin(&[(key, Action::Get)], now);
            }
        }
    }

    fn begin_one(&mut self, now: Nanos) {
        let (any, key) = (self.rng.index(KEYS), self.rng.index(PASSING));
        let number = self.record.borrow_mut().number();
        let all: Vec<(usize, Action)> = (0..KEYS).map(|key| (key, Action::Get)).collect();
        let set = Action::CompareAndSet(number, self.versions[key]);
        let time = Nanos::from_millis(self.rng.log_between(1, 200));
        match self.rng.below(24) {
            _ if self.is_reader => self.begin(&[(any, Action::Get)], now),
            0..9 => self.begin(&[(any, Action::Get)], now),
            9..11 => self.begin(&[(key, Action::Delete)], now),
            11..15 => self.begin(&[(key, set)], now),
            15..17 => {
                let other = (key + 1) % PASSING;
                self.begin(&[(key, set), (other, Action::Follow(number))], now);
            }
            17 => self.begin(&all, now),
            18 => self.begin(&[(PASSING, Action::PutFor(number, time))], now),
            _ => self.begin(&[(key, Action::Put(number))], now),
        }
    }

    /// Begins an operation on a key, a transaction on two keys, or a read of all keys.
    fn begin(&mut self, parts: &[(usize, Action)], now: Nanos) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let part = |(key, action): &(usize, Action)| Operation {
            key: *key,
            action: *action,
            begin: now,
            end: Nanos::MAX,
            answer: None,
        };
        let operations = parts.iter().map(part).collect();
        self.begun.insert(self.tokens, operations);
        let deadline = match now < LAST {
            true => Nanos::from_millis(self.rng.log_between(20, 1200)),
            false => LAST_DEADLINE,
        };
        let deadline = Some(now + deadline);
        let (client, mut cx) = self.rpc.with();
        let begun = match *parts {
            [(key, action)] => {
                let key = key_bytes(key);
                match change_of(action) {
                    None => client.begin_get(&key, token, deadline, &mut cx),
                    Some(change) => client.begin_change(&key, change, token, deadline, &mut cx),
                }
            }
            [(key, Action::CompareAndSet(number, version)), (other, _)] => {
                let change = transaction([key, other], number, version);
                client.begin_change(b"", change, token, deadline, &mut cx)
            }
            _ => client.begin_range((b"key-", b""), 100, token, deadline, &mut cx),
        };
        begun.unwrap();
    }

    fn on_end(&mut self, token: &Token, result: Result<Answer, Error>, now: Nanos) {
        let Some(operations) = self.begun.remove(&token.0) else {
            let what = format!("{token:?} has ended twice");
            return self.record.borrow_mut().violate(what);
        };
        let answers = self.answers(&operations, &result);
        for (mut operation, answer) in operations.into_iter().zip(answers) {
            if answer.is_ok() {
                operation.end = now;
            } else if operation.begin >= LAST {
                let what = format!("{operation:?} has failed after all faults: {answer:?}");
                return self.record.borrow_mut().violate(what);
            }
            self.see(operation.key, &answer);
            self.record.borrow_mut().note(operation, answer);
        }
    }

    /// The answers to the parts of an operation that have one.
    fn answers(
        &self,
        operations: &[Operation],
        result: &Result<Answer, Error>,
    ) -> Vec<Result<Answer, Error>> {
        let mut record = self.record.borrow_mut();
        match (result, operations) {
            (Ok(Answer::Items { items, more: false }), _) => {
                let of_key = |operation: &Operation| {
                    let key = key_bytes(operation.key);
                    let item = items.iter().find(|it| it.key == key);
                    item.map_or(Answer::Missing, |it| {
                        Answer::Found(it.version, it.value.clone())
                    })
                };
                let versions = operations.iter().map(|it| match of_key(it) {
                    Answer::Found(version, _) => Some(version),
                    _ => None,
                });
                let versions: Vec<_> = versions.collect();
                record.ranges.push(versions.try_into().unwrap());
                operations.iter().map(|it| Ok(of_key(it))).collect()
            }
            (Ok(Answer::Written(version)), [one, other]) => {
                record.transactions.push((*version, [one.key, other.key]));
                vec![result.clone(), result.clone()]
            }
            // The second part was not carried out, so nothing is known about its key.
            (Ok(Answer::Conflict(_)), [_, _]) => vec![result.clone()],
            _ => vec![result.clone(); operations.len()],
        }
    }

    /// Notes the version of a key.
    fn see(&mut self, key: usize, answer: &Result<Answer, Error>) {
        if let Ok(Answer::Found(version, _) | Answer::Written(version) | Answer::Differs(version)) =
            answer
        {
            self.versions[key] = *version;
        }
    }
}

fn change_of(action: Action) -> Option<Change> {
    Some(match action {
        Action::Get => return None,
        Action::Put(number) | Action::Follow(number) => Change::Put(value_of(number)),
        Action::PutFor(number, time) => {
            Change::PutFor(time.0.div_ceil(1_000_000), value_of(number))
        }
        Action::Delete => Change::Delete,
        Action::CompareAndSet(number, version) => Change::CompareAndSet(version, value_of(number)),
    })
}

/// A transaction that compares the first key, and writes both.
fn transaction(keys: [usize; 2], number: u64, version: u64) -> Change {
    let (keys, value) = (keys.map(key_bytes), value_of(number));
    let compare = Compare {
        key: &keys[0],
        version,
    };
    let writes = [&keys[0], &keys[1]].map(|key| Write::Put {
        key,
        value: &value,
        lifetime: 0,
    });
    Change::transaction(&[compare], &writes)
}
