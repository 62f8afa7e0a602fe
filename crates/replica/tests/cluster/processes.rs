//! The simulated processes: replicas, and clients that issue random operations and record their
//! outcomes.

use std::collections::BTreeMap;

use dunlin_core::{Account, Config, Endpoint, Nanos, Report};
use dunlin_replica::{Change, Client, ClientOptions, Replica, Token, serve};
use dunlin_sim::{NetHandle, Node, PortId, Rng, SimClock, SimTransport};

use crate::platter::SimFiles;
use crate::record::{Action, KEYS, Operation, Shared, key_bytes, value_of};

/// An endpoint of the simulator.
pub(crate) type Rpc<App> = Endpoint<SimTransport, SimClock, App>;

/// Operations of clients begin until then.
pub(crate) const BUSY: Nanos = Nanos::from_millis(1200);
/// Every key is read from then on, after all faults.
const LAST: Nanos = Nanos::from_millis(1600);
const LAST_DEADLINE: Nanos = Nanos::from_millis(900);
/// Mean time between two operations of a client.
const GAP: u64 = 10_000_000;

/// A process.
pub(crate) enum Process {
    Replica(Box<ReplicaNode>),
    Client(Box<ClientNode>),
}

pub(crate) struct ReplicaNode {
    pub(crate) rpc: Rpc<Replica>,
    /// Wishes that the stage has not granted yet.
    pub(crate) wishes: Vec<String>,
    /// The disk, if there is one.
    disk: Option<SimFiles>,
    /// A failure of the disk has ended the process.
    pub(crate) has_ended: bool,
}

pub(crate) struct ClientNode {
    pub(crate) rpc: Rpc<Client>,
    pub(crate) wishes: Vec<String>,
    record: Shared,
    rng: Rng,
    next: Nanos,
    tokens: u64,
    begun: BTreeMap<u64, Operation>,
    /// The latest version of each key that this client has seen.
    versions: [u64; KEYS],
    is_last: bool,
    /// It only reads, often, and is patient with a leader: so it would see one that has been
    /// replaced and does not know it.
    is_reader: bool,
}

pub(crate) fn options() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 32 << 20,
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
        // A panic ends a real process.
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
            is_reader,
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
            let gap = if self.is_reader { GAP / 3 } else { GAP };
            self.next = now + Nanos(self.rng.exponential(gap));
            if now < BUSY {
                self.begin_one(now);
            } else if now < LAST {
                self.next = LAST;
            } else {
                self.begin_last(now);
            }
        }
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        while let Some(address) = client.wish(cx.now()) {
            self.wishes.push(address);
        }
        while let Some(end) = self.rpc.app_mut().next_end() {
            self.on_end(&end.token, end.result, now);
        }
    }

    /// Reads every key once, at the end.
    fn begin_last(&mut self, now: Nanos) {
        self.next = Nanos::MAX;
        if !std::mem::replace(&mut self.is_last, true) {
            for key in 0..KEYS {
                self.begin(key, Action::Get, now);
            }
        }
    }

    fn begin_one(&mut self, now: Nanos) {
        let key = self.rng.index(KEYS);
        let number = self.record.borrow_mut().number();
        let action = match self.rng.below(10) {
            _ if self.is_reader => Action::Get,
            0..4 => Action::Get,
            4 => Action::Delete,
            5..7 => Action::CompareAndSet(number, self.versions[key]),
            _ => Action::Put(number),
        };
        self.begin(key, action, now);
    }

    fn begin(&mut self, key: usize, action: Action, now: Nanos) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let operation = Operation {
            key,
            action,
            begin: now,
            end: Nanos::MAX,
            answer: None,
        };
        self.begun.insert(self.tokens, operation);
        let deadline = match now < LAST {
            true => Nanos::from_millis(self.rng.log_between(20, 1200)),
            false => LAST_DEADLINE,
        };
        let deadline = Some(now + deadline);
        let bytes = key_bytes(key);
        let change = match action {
            Action::Get => None,
            Action::Put(number) => Some(Change::Put(value_of(number))),
            Action::Delete => Some(Change::Delete),
            Action::CompareAndSet(number, version) => {
                Some(Change::CompareAndSet(version, value_of(number)))
            }
        };
        let (client, mut cx) = self.rpc.with();
        let begun = match change {
            None => client.begin_get(&bytes, token, deadline, &mut cx),
            Some(change) => client.begin_change(&bytes, change, token, deadline, &mut cx),
        };
        begun.unwrap();
    }

    fn on_end(
        &mut self,
        token: &Token,
        result: Result<dunlin_replica::Answer, dunlin_replica::Error>,
        now: Nanos,
    ) {
        use dunlin_replica::Answer;
        let Some(mut operation) = self.begun.remove(&token.0) else {
            let what = format!("{token:?} has ended twice");
            return self.record.borrow_mut().violate(what);
        };
        if let Ok(Answer::Found(version, _) | Answer::Written(version) | Answer::Differs(version)) =
            &result
        {
            self.versions[operation.key] = *version;
        }
        if result.is_ok() {
            operation.end = now;
        } else if operation.begin >= LAST {
            let what = format!("{operation:?} has failed after all faults: {result:?}");
            return self.record.borrow_mut().violate(what);
        }
        self.record.borrow_mut().note(operation, result);
    }
}
