//! The simulated processes: partitions, and clients that issue random operations and record their
//! outcomes.

use std::collections::BTreeMap;

use dunlin_core::{Account, Config, Endpoint, Nanos, Report};
use dunlin_kv::store::Delta;
use dunlin_kv::store::Verb;
use dunlin_kv::{Client, End, Error, Options, Partition, Reply, Request, Store, Token};
use dunlin_sim::world::rng::Ppm;
use dunlin_sim::{NetHandle, Node, PortId, Rng, SimClock, SimTransport};

use crate::record::{
    Action, KEYS, Kind, Operation, Outcome, Shared, key_bytes, kind, number_of, value_of,
};

/// An endpoint of the simulator.
pub(crate) type Rpc<App> = Endpoint<SimTransport, SimClock, App>;

/// A process.
pub(crate) enum Member {
    /// A partition, or a process without one, because the server has fewer now.
    Server(Box<Rpc<Partition>>),
    Idle(Box<Rpc<()>>),
    Client(Box<ClientNode>),
}

/// Operations of clients begin until then.
pub(crate) const BUSY: Nanos = Nanos::from_millis(3500);
/// Mean time between two operations of a client.
const GAP: u64 = 40_000_000;

/// Options of every endpoint.
pub(crate) fn endpoint() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 64 << 20,
        ..Config::default()
    }
}

/// Takes an endpoint's reports. The stage ends sessions itself; a question gets no answer.
pub(crate) fn take_reports<App>(rpc: &mut Rpc<App>) {
    while let Some(report) = rpc.lifecycle().take_report() {
        if let Report::Question(question) = report {
            rpc.lifecycle()
                .on_account(question.session, &Account::Nothing);
        }
    }
}

impl Node for Member {
    fn run_once(&mut self) {
        match self {
            Self::Server(rpc) => {
                rpc.run_once();
                take_reports(rpc);
            }
            Self::Idle(rpc) => {
                rpc.run_once();
                take_reports(rpc);
            }
            Self::Client(client) => client.run_once(),
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(rpc) => rpc.next_wakeup(),
            Self::Idle(rpc) => rpc.next_wakeup(),
            Self::Client(client) => client.next_wakeup(),
        }
    }
}

/// An operation that is under way: its key and action, or those of a get of many.
struct Begun {
    keys: Vec<usize>,
    action: Action,
    begin: Nanos,
}

pub(crate) struct ClientNode {
    pub(crate) rpc: Rpc<Client>,
    record: Shared,
    rng: Rng,
    next: Nanos,
    tokens: u64,
    begun: BTreeMap<u64, Begun>,
    /// The latest version of each key that this client has seen.
    versions: [u64; KEYS],
    /// Wishes that the stage has not granted yet.
    pub(crate) wishes: Vec<u16>,
    is_last: bool,
}

impl ClientNode {
    pub(crate) fn boot(
        net: &NetHandle,
        port: PortId,
        options: Options,
        record: Shared,
        mut rng: Rng,
    ) -> Self {
        let seed = rng.next_u64();
        let mut rpc = SimTransport::endpoint(net, port, Client::new(options), endpoint(), seed);
        rpc.on_completion(|client, done, cx| {
            let other = client.on_done(done, cx);
            assert!(other.is_none(), "the client makes all calls");
        });
        rpc.on_session(|client, event, cx| client.on_session(event, cx));
        Self {
            rpc,
            record,
            rng,
            next: Nanos::ZERO,
            tokens: 0,
            begun: BTreeMap::new(),
            versions: [0; KEYS],
            wishes: Vec::new(),
            is_last: false,
        }
    }

    /// Operations that have not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.begun.len()
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let now = self.rpc.now();
        if now >= self.next {
            self.next = now + Nanos(self.rng.exponential(GAP));
            match now < BUSY {
                true => self.begin_one(now),
                false => self.begin_last(now),
            }
        }
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        while let Some(endpoint) = self.rpc.app_mut().wish(now) {
            self.wishes.push(endpoint);
        }
        while let Some(end) = self.rpc.app_mut().next_end() {
            self.on_end(end);
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        let own = self.rpc.app().next_wakeup().min(self.next);
        self.rpc.next_wakeup().min(own)
    }

    /// Reads every key once, at the end.
    fn begin_last(&mut self, now: Nanos) {
        self.next = Nanos::MAX;
        if !std::mem::replace(&mut self.is_last, true) {
            self.begin_many((0..KEYS).collect(), now);
        }
    }

    fn begin_one(&mut self, now: Nanos) {
        let key = self.rng.index(KEYS);
        if self.rng.chance(Ppm::percent(15)) {
            let keys = (0..3).map(|_| self.rng.index(KEYS)).collect();
            return self.begin_many(keys, now);
        }
        let number = self.record.borrow_mut().number();
        let lifetime = if self.rng.one_in(2) { 1 } else { 0 };
        let action = match (self.rng.below(12), kind(key)) {
            (0..5, _) => Action::Get,
            (5, _) => Action::Delete,
            (6, _) => Action::Add(number),
            (7, _) => Action::Set(number, lifetime),
            (_, Kind::Counter) => Action::Count,
            (8 | 9, _) => Action::Set(number, lifetime),
            (_, _) => Action::Cas(number, self.versions[key]),
        };
        if kind(key) == Kind::Long && action != Action::Get {
            // The get is under way, slice by slice, while the server takes the write.
            self.begin(key, Action::Get, now);
        }
        self.begin(key, action, now);
    }

    fn begin(&mut self, key: usize, action: Action, now: Nanos) {
        let bytes = key_bytes(key);
        let write = |verb, number, lifetime, if_version| {
            (
                value_of(key, number),
                Store {
                    verb,
                    lifetime,
                    if_version,
                    ..Store::set(b"", b"")
                },
            )
        };
        let (value, store) = match action {
            Action::Set(number, lifetime) => write(Verb::Set, number, lifetime, None),
            Action::Add(number) => write(Verb::Add, number, 0, None),
            Action::Cas(number, version) => write(Verb::Set, number, 0, Some(version)),
            _ => write(Verb::Set, 0, 0, None),
        };
        let request = match action {
            Action::Get => Request::Get { key: &bytes },
            Action::Delete => Request::Delete {
                key: &bytes,
                if_version: None,
            },
            Action::Count => Request::Count {
                key: &bytes,
                delta: Delta::Up(1),
                if_version: None,
            },
            _ => Request::Write(Store {
                key: &bytes,
                value: &value,
                ..store
            }),
        };
        let token = self.note(vec![key], action, now);
        let deadline = now + Nanos::from_millis(self.rng.log_between(5, 1500));
        let (client, mut cx) = self.rpc.with();
        client
            .begin(&request, token, Some(deadline), &mut cx)
            .unwrap();
    }

    fn begin_many(&mut self, keys: Vec<usize>, now: Nanos) {
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key_bytes(*key)).collect();
        let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let token = self.note(keys, Action::Get, now);
        let deadline = now + Nanos::from_millis(1500);
        let (client, mut cx) = self.rpc.with();
        client
            .begin_multi(&bytes, token, Some(deadline), &mut cx)
            .unwrap();
    }

    fn note(&mut self, keys: Vec<usize>, action: Action, begin: Nanos) -> Token {
        self.tokens += 1;
        let begun = Begun {
            keys,
            action,
            begin,
        };
        self.begun.insert(self.tokens, begun);
        Token(self.tokens)
    }

    fn on_end(&mut self, end: End) {
        let Some(begun) = self.begun.remove(&end.token.0) else {
            let what = format!("{:?} has ended twice", end.token);
            return self.record.borrow_mut().violate(what);
        };
        match end.result {
            Ok(Reply::Items(items)) => {
                for (key, item) in begun.keys.iter().zip(items) {
                    let outcome = match item {
                        Some(item) => self.found(*key, &item.value, item.version),
                        None => Outcome::Absent,
                    };
                    self.write_down(*key, &begun, outcome);
                }
            }
            Ok(reply) => {
                let outcome = match reply {
                    Reply::Found(found) => {
                        self.found(begun.keys[0], found.value(), found.version())
                    }
                    Reply::Missing => Outcome::Absent,
                    Reply::Written(version) => Outcome::Written(version),
                    Reply::Counted(number, version) => Outcome::Counted(number, version),
                    Reply::Done => Outcome::Done,
                    other => panic!("{other:?}"),
                };
                self.write_down(begun.keys[0], &begun, outcome);
            }
            Err(error) => {
                let outcome = match error {
                    Error::Absent => Outcome::Absent,
                    Error::Present => Outcome::Present,
                    Error::VersionDiffers => Outcome::Differs,
                    Error::Unknown => Outcome::Unknown,
                    // It has not happened, or it only reads.
                    Error::Unavailable | Error::DeadlinePassed => return,
                    other => {
                        let what = format!("{:?} fails: {other:?}", begun.action);
                        return self.record.borrow_mut().violate(what);
                    }
                };
                self.write_down(begun.keys[0], &begun, outcome);
            }
        }
    }

    fn found(&self, key: usize, value: &[u8], version: u64) -> Outcome {
        let Some(number) = number_of(key, value) else {
            let begin = value[..value.len().min(32)].escape_ascii();
            let what = format!(
                "no client has written the {} bytes of key {key} that begin with \"{begin}\"",
                value.len()
            );
            self.record.borrow_mut().violate(what);
            return Outcome::Absent;
        };
        Outcome::Found(number, version)
    }

    fn write_down(&mut self, key: usize, begun: &Begun, outcome: Outcome) {
        if let Outcome::Found(_, version)
        | Outcome::Written(version)
        | Outcome::Counted(_, version) = outcome
        {
            self.versions[key] = version;
        }
        let end = match outcome {
            Outcome::Unknown => Nanos::MAX,
            _ => self.rpc.now(),
        };
        self.record.borrow_mut().operations.push(Operation {
            key,
            action: begun.action,
            begin: begun.begin,
            end,
            outcome,
        });
    }
}
