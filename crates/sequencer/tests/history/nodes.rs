//! The simulated processes: servers with their disk, and clients that take numbers and record
//! them.

use std::collections::BTreeMap;

use dunlin_core::{Check, Config, Nanos};
use dunlin_sequencer::{
    Client, ClientOptions, Desk, Disk, End, Ending, Error, Job, Outcome, Token, perform,
};
use dunlin_sim::world::rng::Ppm;
use dunlin_sim::{NetHandle, Node, PortId, Rng, SimEndpoint, SimTransport, take_reports};

use crate::record::{Shared, Taken};
use crate::shelf::View;

/// The sequences. Every endpoint has a client for each.
pub(crate) const SEQUENCES: [&str; 2] = ["orders", "events"];

/// Clients begin no call after this time.
pub(crate) const BUSY: Nanos = Nanos::from_millis(3000);
/// Mean time between two calls of a client.
const GAP: u64 = 15_000_000;

/// Options of every endpoint.
pub(crate) fn endpoint() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 4 << 20,
        check: Check::Event,
        ..Config::default()
    }
}

/// A process.
pub(crate) enum Member {
    Server(Box<ServerNode>),
    /// The process of a server that did not get the directory.
    Idle(Box<SimEndpoint<()>>),
    Client(Box<ClientNode>),
}

impl Node for Member {
    fn run_once(&mut self) {
        match self {
            Self::Server(server) => server.run_once(),
            Self::Idle(rpc) => {
                rpc.run_once();
                take_reports(rpc);
            }
            Self::Client(client) => client.run_once(),
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(server) => server.next_wakeup(),
            Self::Idle(rpc) => rpc.next_wakeup(),
            Self::Client(client) => client.next_wakeup(),
        }
    }
}

/// A job of the disk, which takes time.
enum Pending {
    /// The disk performs the job when this time is over.
    Job(Job),
    /// The disk has performed the job at once; the server learns the outcome when this time is
    /// over.
    Done(Outcome),
}

pub(crate) struct ServerNode {
    pub(crate) rpc: SimEndpoint<Desk>,
    pub(crate) disk: View,
    pub(crate) process: u32,
    rng: Rng,
    pending: Option<(Nanos, Pending)>,
}

impl ServerNode {
    pub(crate) fn new(rpc: SimEndpoint<Desk>, disk: View, process: u32, rng: Rng) -> Self {
        Self {
            rpc,
            disk,
            process,
            rng,
            pending: None,
        }
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let now = self.rpc.now();
        if let Some((_, pending)) = self.pending.take_if(|(due, _)| *due <= now) {
            let outcome = match pending {
                Pending::Job(job) => perform(&mut self.disk, &job),
                Pending::Done(outcome) => outcome,
            };
            let (desk, mut cx) = self.rpc.with();
            desk.on_outcome(outcome, &mut cx);
        }
        if let Some(job) = self.rpc.app_mut().next_job(now) {
            let span = match self.rng.one_in(20) {
                true => self.rng.log_between(20_000_000, 1_000_000_000),
                false => self.rng.log_between(50_000, 20_000_000),
            };
            let pending = match self.rng.one_in(2) {
                true => Pending::Job(job),
                false => Pending::Done(perform(&mut self.disk, &job)),
            };
            self.pending = Some((now + Nanos(span), pending));
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        let disk = self.pending.as_ref().map_or(Nanos::MAX, |(due, _)| *due);
        let own = self.rpc.app().next_job_at().min(disk);
        self.rpc.next_wakeup().min(own)
    }

    /// Handles the death of the host: the disk may have begun to write.
    pub(crate) fn on_crash(&mut self) {
        if let Some((_, Pending::Job(job))) = self.pending.take() {
            let _ = perform(&mut Half(&mut self.disk), &job);
        }
    }

    pub(crate) fn is_deposed(&self) -> bool {
        matches!(self.rpc.app().ending(), Some(Ending::Deposed(_)))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.rpc.app().ending().is_some()
    }
}

/// A disk that stops before it has synced.
struct Half<'a>(&'a mut View);

impl Disk for Half<'_> {
    fn epochs(&mut self) -> std::io::Result<Vec<u32>> {
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn read(&mut self, _: u32) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn lock(&mut self, _: u32) -> std::io::Result<bool> {
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn make(&mut self, _: u32, _: &[u8]) -> std::io::Result<bool> {
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, bytes)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn remove(&mut self, _: u32) -> std::io::Result<()> {
        Err(std::io::ErrorKind::TimedOut.into())
    }
}

/// The clients of an endpoint, one for each sequence.
pub(crate) struct Clients(pub(crate) Vec<Client>);

pub(crate) struct ClientNode {
    pub(crate) rpc: SimEndpoint<Clients>,
    records: Vec<Shared>,
    rng: Rng,
    next: Nanos,
    tokens: u64,
    begun: BTreeMap<u64, (usize, Nanos)>,
    /// Sessions that clients want and the stage has not made yet: client and server.
    pub(crate) wishes: Vec<(usize, usize)>,
    is_last: bool,
}

impl ClientNode {
    pub(crate) fn boot(
        net: &NetHandle,
        port: PortId,
        servers: usize,
        records: Vec<Shared>,
        mut rng: Rng,
    ) -> Self {
        let clients = SEQUENCES.iter().zip(0..).map(|(name, number)| {
            let options = ClientOptions {
                servers,
                create: true,
                speculates: rng.one_in(2),
                patience: Nanos::from_millis(100),
                most_pause: Nanos::from_millis(50),
                number,
                ..ClientOptions::DEFAULT
            };
            Client::new(name.parse().unwrap(), options)
        });
        let clients = Clients(clients.collect());
        let seed = rng.next_u64();
        let mut rpc = SimTransport::endpoint(net, port, clients, endpoint(), seed);
        rpc.on_completion(|clients, mut done, cx| {
            for client in &mut clients.0 {
                done = match client.on_done(done, cx) {
                    Some(other) => other,
                    None => return,
                };
            }
            panic!("a call is no client's");
        });
        rpc.on_session(|clients, event, cx| {
            for client in &mut clients.0 {
                client.on_session(event, cx);
            }
        });
        Self {
            rpc,
            records,
            rng,
            next: Nanos::ZERO,
            tokens: 0,
            begun: BTreeMap::new(),
            wishes: Vec::new(),
            is_last: false,
        }
    }

    /// The number of calls that have not ended.
    pub(crate) fn under_way(&self) -> usize {
        self.begun.len()
    }

    pub(crate) fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let now = self.rpc.now();
        if now >= self.next {
            self.next = now + Nanos(self.rng.exponential(GAP));
            match now < BUSY {
                true => self.begin_some(now),
                false => self.begin_last(now),
            }
        }
        for index in 0..SEQUENCES.len() {
            let (clients, mut cx) = self.rpc.with();
            clients.0[index].on_time(&mut cx);
            let server = self.rpc.app_mut().0[index].wish(now);
            self.wishes.extend(server.map(|server| (index, server)));
            while let Some(end) = self.rpc.app_mut().0[index].next_end() {
                self.on_end(end);
            }
        }
    }

    pub(crate) fn next_wakeup(&mut self) -> Nanos {
        let clients = self.rpc.app().0.iter();
        let own = clients.map(Client::next_wakeup).min().unwrap();
        self.rpc.next_wakeup().min(own.min(self.next))
    }

    fn begin_some(&mut self, now: Nanos) {
        let index = self.rng.index(SEQUENCES.len());
        let count = match self.rng.one_in(8) {
            true => self.rng.between(1, 300),
            false => 1,
        };
        let span = Nanos::from_millis(self.rng.log_between(5, 1500));
        // Several calls at once share a burst.
        let most = if self.rng.chance(Ppm::percent(10)) {
            10
        } else {
            1
        };
        for _ in 0..most {
            self.begin(index, u32::try_from(count).unwrap(), now, span);
        }
    }

    /// Takes one number of each sequence at the end, when a server serves.
    fn begin_last(&mut self, now: Nanos) {
        self.next = Nanos::MAX;
        if std::mem::replace(&mut self.is_last, true) {
            return;
        }
        for index in 0..SEQUENCES.len() {
            self.begin(index, 1, now, Nanos::from_secs(8));
        }
    }

    fn begin(&mut self, index: usize, count: u32, now: Nanos, span: Nanos) {
        self.tokens += 1;
        self.begun.insert(self.tokens, (index, now));
        let (clients, mut cx) = self.rpc.with();
        let client = &mut clients.0[index];
        let token = Token(self.tokens);
        client
            .begin(count, token, Some(now + span), &mut cx)
            .unwrap();
    }

    fn on_end(&mut self, end: End) {
        let (index, begin) = self.begun.remove(&end.token.0).unwrap();
        let mut record = self.records[index].borrow_mut();
        match end.result {
            Ok(numbers) => record.taken.push(Taken {
                begin,
                end: self.rpc.now(),
                numbers,
            }),
            Err(Error::DeadlinePassed) if begin < BUSY => {}
            Err(error) => {
                let what = format!("a call of {begin:?} fails: {error}");
                record.violation.get_or_insert(what);
            }
        }
    }
}
