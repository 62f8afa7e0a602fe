//! A simulated client. It issues random operations on the keys of all servers, and records their
//! outcomes. It also checks the fleet's promises about servers that are down.

use std::collections::BTreeMap;

use dunlin_core::Nanos;
use dunlin_kv::store::{Delta, Mode, Verb};
use dunlin_kv::{
    Error, Fleet, FleetEnd, FleetOptions, Reply, Request, ServerError, ServerId, ServerState,
    Store, Token, WhenDown, Wish,
};
use dunlin_sim::world::rng::Ppm;
use dunlin_sim::{NetHandle, PortId, Rng, SimEndpoint, SimTransport, take_reports};

use crate::history::nodes::endpoint;
use crate::history::plan::Plan;
use crate::history::record::{
    Action, KEYS, Kind, Operation, Outcome, Shared, TORN, key_bytes, kind, number_of, value_of,
};

/// No client begins a random operation after this time.
pub(crate) const BUSY: Nanos = Nanos::from_millis(3500);
/// The time at which each client reads all keys once more.
const LAST: Nanos = Nanos::from_millis(4900);
/// Mean time between two operations of a client.
const GAP: u64 = 40_000_000;

/// Bytes of a value that only fills memory. It is too long to be moved ahead in the log.
pub(crate) const FILLER: usize = 140_000;

/// The name of a server in the list.
pub(crate) fn name_of(server: usize) -> String {
    format!("server-{server}")
}

/// A key of an operation.
#[derive(Clone, Copy)]
struct Asked {
    key: usize,
    /// The server that owns the key, and the fleet's identifier for it.
    owner: usize,
    id: ServerId,
    /// Whether the owner, or its partition with the key, was down at some time since the operation
    /// began.
    was_down: bool,
}

/// An operation in progress. It has several keys if it is a get of many.
struct Begun {
    keys: Vec<Asked>,
    action: Action,
    begin: Nanos,
}

pub(crate) struct ClientNode {
    pub(crate) rpc: SimEndpoint<Fleet>,
    record: Shared,
    rng: Rng,
    /// The fleet's option for servers that are down.
    when_down: WhenDown,
    /// Whether the client also writes items that fill the servers' memory.
    fills: bool,
    next: Nanos,
    tokens: u64,
    begun: BTreeMap<u64, Begun>,
    /// The latest version of each key that this client has seen.
    versions: [u64; KEYS],
    /// Wishes for sessions that the stage has not granted yet.
    pub(crate) wishes: Vec<(ServerId, u16)>,
    /// The servers whose addresses the next look-up finds.
    found: Vec<usize>,
    /// Look-ups that have found other servers than the one before.
    pub(crate) lists: u64,
    /// Operations that ended because a server was down.
    pub(crate) refused: u64,
    is_last: bool,
}

impl ClientNode {
    pub(crate) fn boot(
        (net, port): (&NetHandle, PortId),
        plan: &Plan,
        options: FleetOptions,
        record: Shared,
        mut rng: Rng,
    ) -> Self {
        let fleet = Fleet::new(options, rng.next_u64(), Nanos::ZERO);
        let seed = rng.next_u64();
        let mut rpc = SimTransport::endpoint(net, port, fleet, endpoint(), seed);
        rpc.on_completion(|fleet, done, cx| {
            let other = fleet.on_done(done, cx);
            assert!(other.is_none(), "the fleet makes all calls");
        });
        rpc.on_session(|fleet, event, cx| fleet.on_session(event, cx));
        let mut client = Self {
            rpc,
            record,
            rng,
            when_down: plan.when_down,
            fills: plan.mode == Mode::Cache,
            next: Nanos::ZERO,
            tokens: 0,
            begun: BTreeMap::new(),
            versions: [0; KEYS],
            wishes: Vec::new(),
            found: Vec::new(),
            lists: 0,
            refused: 0,
            is_last: false,
        };
        client.on_addresses(0..plan.servers);
        client.take_list();
        client
    }

    /// Takes the servers whose addresses the next look-up finds.
    pub(crate) fn on_addresses(&mut self, servers: impl IntoIterator<Item = usize>) {
        let servers: Vec<usize> = servers.into_iter().collect();
        self.lists += u64::from(self.found != servers);
        self.found = servers;
    }

    /// Answers a look-up. While servers crash, some look-ups fail.
    fn look_up(&mut self, now: Nanos) {
        match now < BUSY && self.rng.one_in(4) {
            true => self.rpc.app_mut().on_lookup_failed(now),
            false => self.take_list(),
        }
    }

    fn take_list(&mut self) {
        let names: Vec<String> = self.found.iter().copied().map(name_of).collect();
        let now = self.rpc.now();
        let names = names.iter().map(String::as_str);
        self.rpc.app_mut().on_list(names, now);
    }

    /// Operations that have not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.begun.len().max(self.rpc.app().under_way())
    }

    /// The listed servers to which this client has no session, although all run.
    pub(crate) fn missing(&self) -> Vec<String> {
        let all = self.rpc.app().addresses();
        let missing = all.filter(|it| it.state != ServerState::Ready && it.links == 0);
        missing.map(|it| it.name.to_owned()).collect()
    }

    pub(crate) fn run_once(&mut self) {
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
        let (fleet, mut cx) = self.rpc.with();
        fleet.on_time(&mut cx);
        while let Some(wish) = self.rpc.app_mut().wish(now) {
            match wish {
                Wish::Session { server, endpoint } => self.wishes.push((server, endpoint)),
                Wish::LookUp => self.look_up(now),
            }
        }
        self.take_ends();
    }

    pub(crate) fn next_wakeup(&mut self) -> Nanos {
        let own = self.rpc.app().next_wakeup().min(self.next);
        self.rpc.next_wakeup().min(own)
    }

    /// The server that owns a key, and the fleet's identifier for it.
    fn owner(&self, key: usize) -> (usize, ServerId) {
        let fleet = self.rpc.app();
        let id = fleet.owner(&key_bytes(key)).expect("a server is listed");
        let name = fleet.name(id).expect("it is listed");
        (name.trim_start_matches("server-").parse().unwrap(), id)
    }

    /// Whether a get of this key may end without an answer from the server.
    fn is_down(&self, asked: &Asked) -> bool {
        let (name, fleet) = (name_of(asked.owner), self.rpc.app());
        let mut all = fleet.addresses();
        fleet.is_key_down(asked.id, &key_bytes(asked.key))
            || all.any(|address| address.name == name && address.state == ServerState::Gone)
    }

    /// Whether the fleet has no session with any partition of the server.
    fn has_no_session(&self, server: usize) -> bool {
        let (name, fleet) = (name_of(server), self.rpc.app());
        let mut all = fleet.servers().into_iter();
        all.any(|id| fleet.name(id) == Some(&*name) && fleet.is_down(id))
    }

    /// Reads every key once, at the end.
    fn begin_last(&mut self, now: Nanos) {
        if now < LAST {
            self.next = LAST;
        } else {
            self.next = Nanos::MAX;
            if !std::mem::replace(&mut self.is_last, true) {
                self.begin_many((0..KEYS).collect(), now);
            }
        }
    }

    /// Writes an item that no client reads, so that a cache evicts others.
    fn begin_filler(&mut self, now: Nanos) {
        let key = format!("filler-{}", self.rng.below(64));
        let value = [0; FILLER];
        let token = self.note(&[], Action::Set(0, 0), now);
        let (fleet, mut cx) = self.rpc.with();
        let request = Request::Write(Store::set(key.as_bytes(), &value));
        fleet.begin(&request, token, None, &mut cx).unwrap();
    }

    fn begin_one(&mut self, now: Nanos) {
        if self.fills && self.rng.one_in(6) {
            self.begin_filler(now);
        }
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
            // The get reads its value slice by slice while the server takes the write.
            self.begin(key, Action::Get, now);
        }
        self.begin(key, action, now);
    }

    fn begin(&mut self, key: usize, action: Action, now: Nanos) {
        let bytes = key_bytes(key);
        let (number, verb, lifetime, if_version) = match action {
            Action::Set(number, lifetime) => (number, Verb::Set, lifetime, None),
            Action::Add(number) => (number, Verb::Add, 0, None),
            Action::Cas(number, version) => (number, Verb::Set, 0, Some(version)),
            _ => (0, Verb::Set, 0, None),
        };
        let value = value_of(key, number);
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
                verb,
                lifetime,
                if_version,
                ..Store::set(&bytes, &value)
            }),
        };
        let (owner, _) = self.owner(key);
        let must_end = self.when_down != WhenDown::Wait && self.has_no_session(owner);
        let token = self.note(&[key], action, now);
        let deadline = now + Nanos::from_millis(self.rng.log_between(5, 1500));
        let (fleet, mut cx) = self.rpc.with();
        fleet
            .begin(&request, token, Some(deadline), &mut cx)
            .unwrap();
        if must_end {
            self.take_ends();
            if self.begun.contains_key(&token.0) {
                let what = format!("an operation waits for server {owner}, which is down");
                self.record.borrow_mut().violate(what);
            }
        }
    }

    fn begin_many(&mut self, keys: Vec<usize>, now: Nanos) {
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key_bytes(*key)).collect();
        let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let token = self.note(&keys, Action::Get, now);
        let deadline = now + Nanos::from_millis(1500);
        let (fleet, mut cx) = self.rpc.with();
        fleet
            .begin_multi(&bytes, token, Some(deadline), &mut cx)
            .unwrap();
    }

    fn note(&mut self, keys: &[usize], action: Action, begin: Nanos) -> Token {
        self.tokens += 1;
        let asked = keys.iter().map(|key| {
            let (owner, id) = self.owner(*key);
            Asked {
                key: *key,
                owner,
                id,
                was_down: false,
            }
        });
        let begun = Begun {
            keys: asked.collect(),
            action,
            begin,
        };
        self.begun.insert(self.tokens, begun);
        self.note_down();
        Token(self.tokens)
    }

    /// Notes which keys of operations in progress are down now.
    fn note_down(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        for asked in begun.values_mut().flat_map(|begun| &mut begun.keys) {
            asked.was_down = asked.was_down || self.is_down(asked);
        }
        self.begun = begun;
    }

    fn take_ends(&mut self) {
        self.note_down();
        while let Some(end) = self.rpc.app_mut().next_end() {
            self.on_end(end);
        }
    }

    fn on_end(&mut self, end: FleetEnd) {
        let Some(begun) = self.begun.remove(&end.token.0) else {
            let what = format!("{:?} has ended twice", end.token);
            return self.record.borrow_mut().violate(what);
        };
        match end.result {
            // No client reads this item.
            _ if begun.keys.is_empty() => {}
            Ok(Reply::Items(items)) => {
                for (asked, item) in begun.keys.iter().zip(items) {
                    let outcome = match item.unwrap() {
                        Some(item) => self.found(asked.key, &item.value, item.version),
                        None => Outcome::Absent,
                    };
                    self.write_down(asked, &begun, outcome);
                }
            }
            Ok(reply) => {
                let asked = &begun.keys[0];
                let outcome = match reply {
                    Reply::Found(found) => self.found(asked.key, found.value(), found.version()),
                    Reply::Missing => Outcome::Absent,
                    Reply::Written(version) => Outcome::Written(version),
                    Reply::Counted(number, version) => Outcome::Counted(number, version),
                    Reply::Done => Outcome::Done,
                    other => panic!("{other:?}"),
                };
                self.write_down(asked, &begun, outcome);
            }
            Err(error) => self.on_error(&begun, &error),
        }
    }

    fn on_error(&mut self, begun: &Begun, error: &ServerError) {
        let mut owners = begun.keys.iter().map(|asked| name_of(asked.owner));
        if !owners.any(|owner| error.server() == Some(&*owner)) {
            let what = format!("{error} is the error of a server that was not asked");
            self.record.borrow_mut().violate(what);
        }
        let outcome = match error.error() {
            Error::Absent => Outcome::Absent,
            Error::Present => Outcome::Present,
            Error::VersionDiffers => Outcome::Differs,
            Error::Unknown => Outcome::Unknown,
            // Either the write has not happened, or the operation only reads.
            Error::Unavailable => {
                self.refused += 1;
                return;
            }
            Error::DeadlinePassed => return,
            other => {
                let what = format!("{:?} fails: {other:?}", begun.action);
                return self.record.borrow_mut().violate(what);
            }
        };
        self.write_down(&begun.keys[0], begun, outcome);
    }

    fn found(&self, key: usize, value: &[u8], version: u64) -> Outcome {
        let number = number_of(key, value);
        if number == TORN {
            let begin = value[..value.len().min(32)].escape_ascii();
            let what = format!(
                "no client has written the {} bytes of key {key} that begin with \"{begin}\"",
                value.len()
            );
            self.record.borrow_mut().violate(what);
        }
        Outcome::Found(number, version)
    }

    fn write_down(&mut self, asked: &Asked, begun: &Begun, outcome: Outcome) {
        let (key, server) = (asked.key, asked.owner);
        if let Outcome::Found(_, version)
        | Outcome::Written(version)
        | Outcome::Counted(_, version) = outcome
        {
            self.versions[key] = version;
        }
        let is_read = begun.action == Action::Get && outcome == Outcome::Absent;
        if is_read && self.when_down == WhenDown::Miss && asked.was_down {
            // The client may have counted it as a miss, so it shows nothing about the item.
            self.refused += 1;
            return;
        }
        let end = match outcome {
            Outcome::Unknown => Nanos::MAX,
            _ => self.rpc.now(),
        };
        self.record.borrow_mut().operations.push(Operation {
            server,
            key,
            action: begun.action,
            begin: begun.begin,
            end,
            outcome,
        });
    }
}
