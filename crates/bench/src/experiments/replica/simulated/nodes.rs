//! The processes: replicas, whose thread pays for each step of Raft, and a client that puts or
//! echoes, one at a time.
//!
//! A replica sends the answers and messages of a run at once, as `dunlin::replica::Driver` does.
//! The simulator lets more time pass between two iterations than a real event loop that has work,
//! so the client runs a second iteration for the request of each operation that it begins.
//!
//! The time of a put at the leader begins when its handler takes the request, and ends when the
//! leader has applied the entry, as in the paper's program.

use std::collections::{BTreeMap, VecDeque};

use dunlin::replica::{Answer, Change, Client, ClientOptions, Host, Replica, Token, serve};
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Config, Done, Nanos, Rng, Session, SessionOffer, Tag};
use dunlin_sim::{NetHandle, Node, PortId, SimClock, SimEndpoint, SimTransport, take_reports};

use super::super::client::{KEY, key_of, value_of};
use super::super::members::ECHO;
use super::{STEP, offer};

/// Bytes of an echo.
const ECHOED: usize = 32;

/// A process.
pub(super) enum Process {
    Replica(Box<ReplicaNode>),
    Client(Box<ClientNode>),
}

/// A replica, and the steps of Raft that wait for its next run.
pub(super) struct Member {
    replica: Replica,
    clock: SimClock,
    steps: u64,
    /// When the first handler of this iteration began.
    begun: Option<Nanos>,
}

impl Host for Member {
    fn replica(&mut self) -> &mut Replica {
        // A handler asks for the replica once, to give it an operation or messages.
        self.steps += 1;
        self.begun.get_or_insert(self.clock.read());
        &mut self.replica
    }
}

impl Member {
    pub(super) fn node(&self) -> Option<&dunlin::replica::Node<dunlin_core::Ticket>> {
        self.replica.node()
    }
}

/// A replica with its endpoint.
pub(super) struct ReplicaNode {
    pub(super) rpc: SimEndpoint<Member>,
    clock: SimClock,
    wishes: VecDeque<String>,
    /// The entry of the put in flight here, and when its handler began.
    put: Option<(u64, Nanos)>,
    last: u64,
    /// Times that puts took at this leader.
    pub(super) took: Vec<Nanos>,
}

impl ReplicaNode {
    pub(super) fn boot(net: &NetHandle, port: PortId, replica: Replica, seed: u64) -> Self {
        let clock = net.borrow().clock(port);
        let member = Member {
            replica,
            clock: clock.clone(),
            steps: 0,
            begun: None,
        };
        let mut rpc = SimTransport::endpoint(net, port, member, options(), seed);
        serve(&mut rpc);
        rpc.on_completion(|member, done, cx| {
            if let Some(other) = member.replica.on_done(done, cx) {
                return cx.recycle([other.request, other.response]);
            }
            member.steps += 1;
        });
        rpc.on_session(|member, event, cx| member.replica.on_session(event, cx));
        rpc.on(ECHO, |_, request, cx| {
            let data = request.data();
            request.reply(cx, data.len(), |out| out.copy_from_slice(data));
        });
        Self {
            clock,
            rpc,
            wishes: VecDeque::new(),
            put: None,
            last: 0,
            took: Vec::new(),
        }
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let (member, mut cx) = self.rpc.with();
        let steps = std::mem::take(&mut member.steps);
        let begun = member.begun.take();
        self.clock.spend(STEP.times(steps));
        let has_run = member.replica.run(&mut cx);
        while let Some(address) = member.replica.wish(cx.now()) {
            self.wishes.push_back(address);
        }
        self.note(begun);
        if has_run {
            self.rpc.send_queued();
        }
    }

    /// Notes the beginning or the end of a put, if this is the leader.
    fn note(&mut self, begun: Option<Nanos>) {
        let Some(node) = self.rpc.app().node().filter(|node| node.leads()) else {
            return;
        };
        let (last, applied) = (node.log().last(), node.applied());
        if let Some((entry, began)) = self.put
            && applied >= entry
        {
            self.took.push(self.clock.read().since(began));
            self.put = None;
        }
        if last > self.last && self.put.is_none() && last > applied {
            self.put = begun.map(|begun| (last, begun));
        }
        self.last = last;
    }
}

/// The work of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Rest,
    /// Echoes, over this session.
    Echo(Session),
    /// Puts, each after this pause.
    Put(Nanos),
    /// One get of a key.
    Get([u8; KEY]),
}

/// A put that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub(super) number: u64,
    pub(super) ended: Nanos,
}

/// The state of the client's endpoint.
pub(super) struct Caller {
    client: Client,
    echoed: Option<Done>,
}

/// A client with its endpoint.
pub(super) struct ClientNode {
    rpc: SimEndpoint<Caller>,
    clock: SimClock,
    wishes: VecDeque<String>,
    rng: Rng,
    work: Work,
    /// When the next operation begins, if none is in flight.
    next: Nanos,
    begun: Option<Nanos>,
    key: [u8; KEY],
    numbers: u64,
    /// Times that operations took.
    pub(super) took: Vec<Nanos>,
    /// The last put that was acknowledged.
    pub(super) put: Option<Put>,
    /// The last acknowledged put of each key.
    pub(super) acknowledged: BTreeMap<[u8; KEY], u64>,
    /// The value that a get has found.
    pub(super) found: Option<Vec<u8>>,
    /// Describes an operation that ended wrongly.
    pub(super) wrong: Option<String>,
}

impl ClientNode {
    pub(super) fn boot(net: &NetHandle, port: PortId, addresses: Vec<String>, seed: u64) -> Self {
        let caller = Caller {
            client: Client::new(addresses, ClientOptions::DEFAULT),
            echoed: None,
        };
        let mut rpc = SimTransport::endpoint(net, port, caller, options(), seed);
        rpc.on_completion(|caller, done, cx| {
            if let Some(other) = caller.client.on_done(done, cx) {
                caller.echoed = Some(other);
            }
        });
        rpc.on_session(|caller, event, cx| caller.client.on_session(event, cx));
        Self {
            clock: net.borrow().clock(port),
            rpc,
            wishes: VecDeque::new(),
            rng: Rng::new(seed),
            work: Work::Rest,
            next: Nanos::MAX,
            begun: None,
            key: [0; KEY],
            numbers: 0,
            took: Vec::new(),
            put: None,
            acknowledged: BTreeMap::new(),
            found: None,
            wrong: None,
        }
    }

    /// Changes the work from the next operation on.
    pub(super) fn set_work(&mut self, work: Work) {
        self.work = work;
        if self.begun.is_none() {
            self.next = Nanos::ZERO;
        }
    }

    /// Whether an operation is in flight.
    pub(super) const fn is_busy(&self) -> bool {
        self.begun.is_some()
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let (caller, mut cx) = self.rpc.with();
        caller.client.on_time(&mut cx);
        self.take_end();
        if self.begun.is_none() && self.clock.read() >= self.next {
            self.begin();
            self.rpc.run_once();
        }
        let (caller, cx) = self.rpc.with();
        while let Some(address) = caller.client.wish(cx.now()) {
            self.wishes.push_back(address);
        }
    }

    fn begin(&mut self) {
        let token = Token(self.numbers);
        let now = self.clock.read();
        let (caller, mut cx) = self.rpc.with();
        let begun = match self.work {
            Work::Rest => {
                self.next = Nanos::MAX;
                return;
            }
            Work::Echo(session) => {
                let request = cx.copy(&[0x65; ECHOED]).expect("one at a time");
                let response = cx.buf(ECHOED).expect("one at a time");
                let called = cx.call(session, ECHO, request, response, Tag(0));
                called.map(|_| ()).map_err(|error| error.to_string())
            }
            Work::Put(_) => {
                self.numbers += 1;
                self.key = key_of(&mut self.rng);
                let change = Change::Put(value_of(self.numbers).to_vec());
                let client = &mut caller.client;
                let begun = client.begin_change(&self.key, change, token, None, &mut cx);
                begun.map_err(|error| error.to_string())
            }
            Work::Get(key) => {
                let begun = caller.client.begin_get(&key, token, None, &mut cx);
                begun.map_err(|error| error.to_string())
            }
        };
        self.begun = Some(now);
        if let Err(what) = begun {
            self.wrong.get_or_insert(what);
        }
    }

    fn take_end(&mut self) {
        let Some(begun) = self.begun else {
            return;
        };
        let caller = self.rpc.app_mut();
        let ended = match (caller.echoed.take(), caller.client.next_end()) {
            (Some(done), _) => match done.result {
                Ok(()) if *done.response.data() == [0x65; ECHOED] => Ok(Answer::Missing),
                other => Err(format!("an echo has ended with {other:?}")),
            },
            (None, Some(end)) => end.result.map_err(|error| error.to_string()),
            (None, None) => return,
        };
        let now = self.clock.read();
        self.begun = None;
        self.took.push(now.since(begun));
        match (self.work, ended) {
            (Work::Echo(_), Ok(Answer::Missing)) => self.next = now,
            (Work::Put(pause), Ok(Answer::Written(_))) => {
                self.acknowledged.insert(self.key, self.numbers);
                self.put = Some(Put {
                    number: self.numbers,
                    ended: now,
                });
                self.next = now + pause;
            }
            (Work::Rest, Ok(_)) => self.next = Nanos::MAX,
            (Work::Get(_), Ok(Answer::Found(_, value))) => {
                self.found = Some(value);
                self.work = Work::Rest;
                self.next = Nanos::MAX;
            }
            (work, ended) => {
                self.wrong
                    .get_or_insert(format!("{work:?} has ended with {ended:?}"));
                self.next = Nanos::MAX;
            }
        }
    }
}

impl Process {
    /// Addresses with which the process wants a session.
    pub(super) fn wishes(&mut self) -> &mut VecDeque<String> {
        match self {
            Self::Replica(node) => &mut node.wishes,
            Self::Client(node) => &mut node.wishes,
        }
    }

    /// Opens a session, which then waits for the answer to its offer.
    pub(super) fn offer(&mut self) -> Option<(Session, SessionOffer)> {
        match self {
            Self::Replica(node) => offer(&mut node.rpc),
            Self::Client(node) => offer(&mut node.rpc),
        }
    }

    /// Takes the answer to an offer.
    pub(super) fn opened(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
    ) -> Option<()> {
        let opened = match self {
            Self::Replica(node) => node.rpc.lifecycle().opened(session, peer, answer),
            Self::Client(node) => node.rpc.lifecycle().opened(session, peer, answer),
        };
        opened.ok()
    }

    /// Notes the session with a requested address; `None` if there can be none.
    pub(super) fn on_connected(&mut self, address: &str, session: Option<Session>) {
        match self {
            Self::Replica(node) => {
                let replica = &mut node.rpc.app_mut().replica;
                match session {
                    Some(session) => replica.on_connecting(address, session),
                    None => replica.on_refused(address, node.clock.read()),
                }
            }
            Self::Client(node) => {
                let client = &mut node.rpc.app_mut().client;
                match session {
                    Some(session) => client.on_connecting(address, session),
                    None => client.on_refused(address, node.clock.read()),
                }
            }
        }
    }

    /// Ends a session.
    pub(super) fn close(&mut self, session: Session, reason: CloseReason) {
        match self {
            Self::Replica(node) => node.rpc.lifecycle().close(session, reason),
            Self::Client(node) => node.rpc.lifecycle().close(session, reason),
        };
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
            Self::Replica(node) => {
                let own = node.rpc.app().replica.next_wakeup();
                node.rpc.next_wakeup().min(own)
            }
            Self::Client(node) => {
                let own = match node.begun {
                    Some(_) => Nanos::MAX,
                    None => node.next,
                };
                let client = node.rpc.app().client.next_wakeup();
                node.rpc.next_wakeup().min(client).min(own)
            }
        }
    }
}

pub(super) fn options() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 32 << 20,
        ..Config::default()
    }
}
