//! The process with all replicas: three endpoints on one thread, each with its replica, in turn.
//! The same endpoints answer the echoes of the baseline, so echoes wait as long for their turn.
//!
//! If there is one put at a time, its answer needs the leader and one follower. The leader then has
//! a turn before the turn of each follower, so that the other follower does not delay the answer.
//! Over UDP, this saved an eighth of the processor time from a put to its answer, with the client
//! on the same thread. With 32 puts in flight, all replicas have one turn each: the leader's bursts
//! are then longer, and the rate over shared memory was a tenth higher.
//!
//! The time of a put at the leader begins when its handler takes the request, and ends when the
//! leader has applied its entry, as in the paper's program.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::replica::{Host, Member, Members, Options, Replica, serve};
use dunlin::{ConnectOptions, Nexus, ReqType, Rpc};
use serde::{Deserialize, Serialize};

use super::alone;
use crate::harness::probe::patience;
use crate::harness::rtt::Recorder;
use crate::harness::subject::server::{apart, listen_to_parent};
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Setting, over};
use crate::harness::ticks;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Runs three replicas.
pub(super) const ROLE: Role = Role::new("replicas", replicate);

/// An echo: the answer is the first [`ANSWER`] bytes of the request.
pub(super) const ECHO: ReqType = ReqType(0x10);

/// Bytes of the answer to a put.
pub(super) const ANSWER: usize = dunlin::replica::Answer::HEAD;

/// Replicas of a cluster.
pub(super) const REPLICAS: u64 = 3;

/// An election takes less time than this, even on a busy machine.
const ELECTING: Duration = Duration::from_secs(10);

/// Turns between two looks at the clock.
pub(super) const BLOCK: u32 = 256;

/// The first puts do not count. They are fewer than the puts of the client's warm-up.
const WARMING_PUTS: u64 = 50;

/// The work of the process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Params {
    pub(super) setting: Setting,
    /// How long to measure Raft by itself, before the replicas start.
    pub(super) alone: Duration,
    /// Whether the leader has a turn before that of each follower.
    pub(super) is_leader_often: bool,
}

/// Where the replicas are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) addresses: Vec<String>,
    pub(super) leader: SocketAddr,
    /// The median time of a put through three `RawNode`s, in ns.
    pub(super) alone_p50: f64,
}

/// The times and counts of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Quantiles of the time of a put at the leader, in ns.
    pub(super) leader: [f64; 2],
    /// Terms that have begun since the first leader's.
    pub(super) elections: u64,
    pub(super) side: Side,
}

/// Three replicas, as their parent sees them.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) found: Found,
    process: Process,
}

impl Cluster {
    /// Starts the replicas, and waits for a leader.
    ///
    /// # Errors
    /// The process does not start.
    pub(super) fn start(params: &Params) -> anyhow::Result<Self> {
        let mut process = Process::spawn(ROLE, Seat::default(), params)?;
        let found = process.receive(patience(ELECTING + 2 * params.alone))?;
        Ok(Self { found, process })
    }

    /// Ends the process.
    ///
    /// # Errors
    /// The process has already ended.
    pub(super) fn stop(&mut self) -> anyhow::Result<Seen> {
        self.process.send(&())?;
        self.process.receive(patience(Duration::ZERO))
    }
}

/// The state of an endpoint.
pub(super) struct App {
    pub(super) replica: Replica,
    /// When the first handler of this iteration began.
    begun: Option<u64>,
}

impl Host for App {
    fn replica(&mut self) -> &mut Replica {
        self.begun.get_or_insert_with(ticks::now);
        &mut self.replica
    }
}

/// A replica and its endpoint.
pub(super) struct Seated<T: Medium> {
    pub(super) rpc: Rpc<T, App>,
    connect: ConnectOptions,
    /// The entry of the put in flight here, and when its handler began.
    put: Option<(u64, u64)>,
    last: u64,
}

impl<T: Medium> Seated<T> {
    fn new(setting: &Setting, nexus: &Nexus, id: u64) -> anyhow::Result<Self> {
        let app = App {
            replica: Replica::new(id, Options::DEFAULT),
            begun: None,
        };
        let mut rpc: Rpc<T, App> = setting.open_at(nexus, app)?;
        serve(&mut rpc);
        rpc.on_completion(|app, done, cx| {
            if let Some(other) = app.replica.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        rpc.on_session(|app, event, cx| app.replica.on_session(event, cx));
        rpc.on(ECHO, |_, request, cx| {
            let data = request.data();
            request.reply(cx, ANSWER, |out| out.copy_from_slice(&data[..ANSWER]));
        });
        let connect = ConnectOptions {
            endpoint: Some(rpc.index()),
            ..ConnectOptions::default()
        };
        Ok(Self {
            rpc,
            connect,
            put: None,
            last: 0,
        })
    }

    /// Its replica as a member of a cluster.
    pub(super) fn member(&self) -> Member {
        Member {
            id: self.rpc.app().replica.id(),
            address: self.rpc.nexus().address().to_string(),
        }
    }

    /// One iteration of the endpoint and of the replica, as in `dunlin::replica::Driver`.
    #[inline]
    pub(super) fn turn(&mut self, recorder: &mut Recorder) {
        self.rpc.run_once();
        let (app, mut cx) = self.rpc.with();
        let begun = app.begun.take();
        let has_run = app.replica.run(&mut cx);
        let now = cx.now();
        if has_run {
            self.rpc.send_queued();
        }
        self.note(begun, recorder);
        while let Some(address) = self.rpc.app_mut().replica.wish(now) {
            match self.rpc.connect_with(address.as_str(), &self.connect) {
                Ok(session) => self.rpc.app_mut().replica.on_connecting(&address, session),
                Err(_) => self.rpc.app_mut().replica.on_refused(&address, now),
            }
        }
    }

    /// Notes the beginning or the end of a put, if this is the leader.
    #[inline]
    fn note(&mut self, begun: Option<u64>, recorder: &mut Recorder) {
        let Some(node) = self.rpc.app().replica.node().filter(|node| node.leads()) else {
            return;
        };
        let (last, applied) = (node.log().last(), node.applied());
        if let Some((entry, began)) = self.put
            && applied >= entry
        {
            recorder.record(ticks::now().wrapping_sub(began));
            self.put = None;
        }
        if last > self.last && self.put.is_none() && last > applied {
            self.put = begun.map(|begun| (last, begun));
        }
        self.last = last;
    }

    /// The term of its node.
    pub(super) fn term(&self) -> u64 {
        self.rpc.app().replica.status().term
    }
}

/// # Errors
/// An endpoint cannot be opened, or no replica leads.
fn replicate(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, run(parent, &params))
}

fn run<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let asked = listen_to_parent();
    let alone_p50 = apart(|| {
        params.setting.seat.take()?;
        alone::median(params.alone)
    })?;
    let mut seats = open::<T>(&params.setting, REPLICAS)?;
    let leader = elect(&mut seats)?;
    let term = seats[leader].term();
    let members = seats.iter().map(|it| it.rpc.nexus().address());
    parent.say(&Found {
        addresses: members.map(|it| it.to_string()).collect(),
        leader: seats[leader].rpc.nexus().address(),
        alone_p50,
    })?;
    let mut recorder = Recorder::skipping(WARMING_PUTS);
    seats.swap(0, leader);
    let order: &[usize] = match params.is_leader_often {
        true => &[0, 1, 0, 2],
        false => &[0, 1, 2],
    };
    serve_until(&mut seats, order, &mut recorder, &asked);
    let elections = seats[0].term() - term;
    parent.say(&Seen {
        leader: [0.5, 0.99].map(|it| recorder.quantile(it)),
        elections,
        side: Side::read(&mut seats[0].rpc)?,
    })
}

/// Opens this number of endpoints, and gives the first three replicas their seats in a cluster.
pub(super) fn open<T: Medium>(setting: &Setting, count: u64) -> anyhow::Result<Vec<Seated<T>>> {
    // No other cluster has these numbers, because each cluster has a process of its own.
    let first = u64::from(std::process::id()) * count;
    let nexuses = (0..count).map(|_| setting.bind());
    let nexuses = nexuses.collect::<anyhow::Result<Vec<_>>>()?;
    setting.seat.take()?;
    let mut seats = Vec::new();
    for (id, nexus) in (1..).zip(&nexuses) {
        seats.push(Seated::<T>::new(setting, nexus, first + id)?);
    }
    let founders = usize::try_from(REPLICAS)?;
    let members: Vec<Member> = seats[..founders].iter().map(Seated::member).collect();
    let members = Members::new(members)?;
    for seat in &mut seats[..founders] {
        seat.rpc.app_mut().replica.on_bootstrap(members.clone())?;
    }
    Ok(seats)
}

/// Runs the replicas until one of them leads, and has applied an entry of its term. Returns its
/// place.
pub(super) fn elect<T: Medium>(seats: &mut [Seated<T>]) -> anyhow::Result<usize> {
    let begin = Instant::now();
    let mut none = Recorder::skipping(u64::MAX);
    loop {
        for _ in 0..BLOCK {
            seats.iter_mut().for_each(|seat| seat.turn(&mut none));
        }
        let leads = |seat: &Seated<T>| {
            let node = seat.rpc.app().replica.node();
            node.is_some_and(|node| node.leads() && node.applied() == node.log().last())
        };
        if let Some(leader) = seats.iter().position(leads) {
            return Ok(leader);
        }
        ensure!(begin.elapsed() < ELECTING, "no replica leads");
    }
}

fn serve_until<T: Medium>(
    seats: &mut [Seated<T>],
    order: &[usize],
    recorder: &mut Recorder,
    asked: &AtomicBool,
) {
    while !asked.load(Ordering::Relaxed) {
        for _ in 0..BLOCK {
            for place in order {
                seats[*place].turn(recorder);
            }
        }
    }
}
