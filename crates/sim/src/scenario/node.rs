//! An endpoint of a load: it calls, or answers, or both. A call begins when the previous batch has
//! ended and a pause is over (a closed loop), or when it arrives (an open loop).
//!
//! Invariant: while an operation's call is in flight, the call owns its msgbufs; otherwise the
//! operation does. Called by the world, and by `build` before the run.

use dunlin_core::{Counters, Cx, Done, Nanos, Request, Session, Tag, TimerToken};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use super::session::Process;
use super::stats::{Latencies, SharedStats, Took};
use super::{Arrivals, Load, Scenario};
use crate::world::clock::SimClock;
use crate::world::net::{NetHandle, SimEndpoint, SimTransport};
use crate::world::rng::Rng;
use crate::world::{Cluster, Node, ProcessId};

const CALL: ReqType = ReqType(1);
/// Requests and responses begin and end with a word that is computed from their name. The last word
/// of a response also contains the time at which it was made.
const WORD: usize = 8;
/// If a thread did not run for longer than this, it was idle, not busy.
const SPIN: Nanos = Nanos(500);
/// The endpoint reads the time at least once in this many idle iterations.
const LOOKS: u32 = 64;

/// Makes the endpoints of a scenario.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) scenario: Scenario,
    /// The role of each port.
    pub(super) roles: Vec<Role>,
    pub(super) stats: Vec<SharedStats>,
    pub(super) seeds: Rng,
}

/// The role of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Role {
    pub(super) load: usize,
    pub(super) host: usize,
    pub(super) calls: bool,
    pub(super) serves: bool,
}

/// An endpoint.
pub(super) struct Member {
    rpc: SimEndpoint<App>,
    /// When it last ran.
    ran: Nanos,
}

pub(super) struct App {
    load: Load,
    stats: SharedStats,
    clock: SimClock,
    rpc_cost: Nanos,
    rng: Rng,
    /// Its port, which distinguishes the names of its requests from those of all other endpoints.
    port: u64,
    sessions: Vec<Session>,
    ops: Vec<Op>,
    latencies: Latencies,
    /// In a closed loop: the number of each batch's operations that are in flight.
    batches: Vec<u32>,
    /// In an open loop: operations that are not in flight.
    idle: Vec<usize>,
    queue: Option<Queue>,
}

/// The arrivals of an open loop that have not begun. Only the first one is stored. The times
/// between arrivals are drawn when needed, so waiting arrivals take no memory.
struct Queue {
    rng: Rng,
    /// The mean of the times between two arrivals.
    gap: Nanos,
    first: Nanos,
    /// Whether a timer runs for the first arrival.
    is_awaited: bool,
}

/// Token of the timer that starts the client.
const START: TimerToken = TimerToken(0);
/// Token of the timer for the next arrival of an open loop. Tokens above it are for the pauses of
/// batches.
const ARRIVAL: TimerToken = TimerToken(1);

struct Op {
    name: u64,
    issued: Nanos,
    bufs: Option<(MsgBuf, MsgBuf)>,
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        let role = self.roles[process.port.0];
        let app = App {
            load: self.scenario.loads[role.load].clone(),
            stats: self.stats[role.load].clone(),
            clock: net.borrow().clock(process.port),
            rpc_cost: self.scenario.rpc_cost,
            rng: self.seeds.fork(),
            port: process.port.0 as u64,
            sessions: Vec::new(),
            ops: Vec::new(),
            latencies: Latencies::new(self.scenario.warm_up),
            batches: Vec::new(),
            idle: Vec::new(),
            queue: None,
        };
        let config = self.scenario.endpoint.clone();
        let seed = self.seeds.next_u64();
        let mut rpc = SimTransport::endpoint(net, process.port, app, config, seed);
        rpc.on(CALL, on_call);
        rpc.on_completion(on_completion);
        rpc.on_timer(on_timer);
        let ran = Nanos::ZERO;
        Member { rpc, ran }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

/// Reads both ends of the request and answers with a function of it.
fn on_call(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    app.clock.spend(app.rpc_cost);
    let name = first_word(req.data());
    let whole = req.data().len() == app.load.request_bytes as usize;
    if !whole || last_word(req.data()) != name {
        app.stats
            .borrow_mut()
            .violate("a request differs from the one that was sent");
        return req.reject(cx, ErrorCode::application(1));
    }
    let now = cx.now();
    req.reply(cx, app.load.response_bytes as usize, |out| {
        mark(out, !name, (!name).wrapping_add(now.0));
    });
}

/// The time at which the server answered the request with this name. `None`: the response belongs
/// to another request.
fn answered_at(response: &[u8], name: u64) -> Option<Nanos> {
    let at = last_word(response).wrapping_sub(!name);
    (first_word(response) == !name).then_some(Nanos(at))
}

fn on_completion(app: &mut App, done: Done, cx: &mut Cx<'_>) {
    app.clock.spend(app.rpc_cost);
    let index = usize::try_from(done.tag.0).expect("a tag is the index of an operation");
    let op = &mut app.ops[index];
    let (now, issued, name) = (cx.now(), op.issued, op.name);
    op.bufs = Some((done.request, done.response));
    let response = op
        .bufs
        .as_ref()
        .map_or(&[][..], |(_, response)| response.data());
    let answered = answered_at(response, name).filter(|at| (issued..=now).contains(at));
    let mut stats = app.stats.borrow_mut();
    if done.result.is_err() {
        stats.on_failure(now);
        app.latencies.on_failure(now);
    } else if let Some(answered) = answered {
        let took = Took {
            whole: now.since(issued),
            across: answered.since(issued),
            back: now.since(answered),
        };
        stats.on_end(now, &took);
        app.latencies.on_end(now, &took);
    } else {
        stats.violate("a response belongs to another request");
    }
    drop(stats);
    app.on_end(index, cx);
}

fn on_timer(app: &mut App, token: TimerToken, cx: &mut Cx<'_>) {
    match (token, &mut app.queue) {
        (START, None) => {
            for batch in 0..app.batches.len() {
                app.begin_batch(batch, cx);
            }
        }
        (START, Some(queue)) => {
            queue.first = cx.now();
            queue.take();
            app.begin_arrived(cx);
        }
        (ARRIVAL, Some(queue)) => {
            queue.is_awaited = false;
            app.begin_arrived(cx);
        }
        (TimerToken(token), _) => {
            let batch = usize::try_from(token - ARRIVAL.0).expect("it was an index");
            app.begin_batch(batch, cx);
        }
    }
}

impl App {
    /// Handles the end of operation `index`: begins a waiting call, or the next batch if this
    /// operation was the last of its batch.
    fn on_end(&mut self, index: usize, cx: &mut Cx<'_>) {
        let (size, think) = match self.load.arrivals {
            Arrivals::Closed { batch, think } => (batch, think),
            Arrivals::Open { .. } => {
                self.idle.push(index);
                return self.begin_arrived(cx);
            }
        };
        let batch = index / size as usize;
        self.batches[batch] -= 1;
        if self.batches[batch] != 0 {
            return;
        }
        match think {
            Nanos::ZERO => self.begin_batch(batch, cx),
            _ => {
                let pause = Nanos(self.rng.exponential(think.0));
                cx.timer(cx.now() + pause, TimerToken(ARRIVAL.0 + batch as u64));
            }
        }
    }

    /// Begins the requests of an open loop that have arrived, as long as operations are free, and
    /// awaits the next one. The latency of a request counts from its arrival, even if it has to
    /// wait. Drops waiting requests after the load's stop.
    fn begin_arrived(&mut self, cx: &mut Cx<'_>) {
        let (now, stop) = (cx.now(), self.load.stop);
        while let Some(queue) = self.queue.as_mut().filter(|_| now < stop) {
            if queue.first > now {
                if queue.first < stop && !queue.is_awaited {
                    queue.is_awaited = true;
                    cx.timer(queue.first, ARRIVAL);
                }
                return;
            }
            let Some(index) = self.idle.pop() else {
                // The end of an operation calls this again.
                return;
            };
            let arrived = queue.take();
            self.issue(index, arrived, cx);
        }
    }

    fn begin_batch(&mut self, batch: usize, cx: &mut Cx<'_>) {
        let Arrivals::Closed { batch: size, .. } = self.load.arrivals else {
            return;
        };
        let now = cx.now();
        if now >= self.load.stop {
            return;
        }
        let size = size as usize;
        let first = batch * size;
        let ops = first..self.ops.len().min(first + size);
        self.batches[batch] = u32::try_from(ops.len()).unwrap_or(u32::MAX);
        for index in ops {
            self.issue(index, now, cx);
        }
    }

    /// Begins an operation whose latency counts from `arrived`.
    fn issue(&mut self, index: usize, arrived: Nanos, cx: &mut Cx<'_>) {
        let session = *self.rng.pick(&self.sessions);
        let op = &mut self.ops[index];
        op.name = op.name.wrapping_add(1 << 24);
        op.issued = arrived;
        let Some((mut request, response)) = op.bufs.take() else {
            return self
                .stats
                .borrow_mut()
                .violate("an operation is begun twice");
        };
        mark(request.data_mut(), op.name, op.name);
        let tag = Tag(index as u64);
        if let Err(refused) = cx.call(session, CALL, request, response, tag) {
            let why = format!("a request is refused: {:?}", refused.kind);
            op.bufs = Some((refused.request, refused.response));
            self.stats.borrow_mut().violate(&why);
        }
    }
}

impl Queue {
    /// Takes the first arrival, and draws the next one.
    fn take(&mut self) -> Nanos {
        let after = self.first + Nanos(self.rng.exponential(self.gap.0));
        std::mem::replace(&mut self.first, after)
    }
}

/// Writes a word to each end of a message.
fn mark(out: &mut [u8], first: u64, last: u64) {
    let len = out.len().min(WORD);
    out[..len].copy_from_slice(&first.to_le_bytes()[..len]);
    let start = out.len() - len;
    out[start..].copy_from_slice(&last.to_le_bytes()[..len]);
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

fn last_word(bytes: &[u8]) -> u64 {
    bytes
        .last_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

impl Process for Member {
    type App = App;

    fn rpc(&mut self) -> &mut SimEndpoint<App> {
        &mut self.rpc
    }
}

impl Member {
    /// Adds a session that the process has opened.
    pub(super) fn add_session(&mut self, session: Session) {
        self.rpc.app_mut().sessions.push(session);
    }

    /// Makes the operations of a client, which begin at `start`. `None` if there is no memory for
    /// them.
    pub(super) fn prepare(&mut self, start: Nanos) -> Option<()> {
        let (app, mut cx) = self.rpc.with();
        let (request, response) = (app.load.request_bytes, app.load.response_bytes);
        for index in 0..u64::from(app.load.in_flight) {
            let bufs = (
                cx.buf(request as usize).ok()?,
                cx.buf(response as usize).ok()?,
            );
            app.ops.push(Op {
                name: app.port << 32 | index,
                issued: Nanos::ZERO,
                bufs: Some(bufs),
            });
        }
        match app.load.arrivals {
            Arrivals::Closed { batch, .. } => {
                let batches = app.load.in_flight.div_ceil(batch);
                app.batches = vec![0; batches as usize];
            }
            Arrivals::Open { gap } => {
                app.idle = (0..app.ops.len()).rev().collect();
                app.queue = Some(Queue {
                    rng: app.rng.fork(),
                    gap,
                    first: Nanos::ZERO,
                    is_awaited: false,
                });
            }
        }
        cx.timer(start, START);
        Some(())
    }

    pub(super) fn latencies(&self) -> &Latencies {
        &self.rpc.app().latencies
    }

    pub(super) fn counters(&self) -> &Counters {
        self.rpc.counters()
    }
}

impl Node for Member {
    fn run_once(&mut self) {
        // A real idle thread reads the time in every 64th iteration, which is about once a
        // microsecond; here it reads the time immediately.
        let now = self.rpc.now();
        if now.since(self.ran) > SPIN {
            // A real thread would have polled its queue all the time. The simulator skips those
            // iterations, so the endpoint polls now.
            self.rpc.lifecycle().halves_mut().0.look_away();
            self.rpc.run_once();
        }
        for _ in 0..LOOKS {
            let busy = self.rpc.run_once().busy;
            if busy || self.rpc.next_wakeup() > now {
                break;
            }
        }
        self.ran = now;
        let stats = self.rpc.app().stats.clone();
        self.rpc
            .take_rtts(|rtt| stats.borrow_mut().on_rtt(now, rtt));
    }

    fn next_wakeup(&mut self) -> Nanos {
        self.rpc.next_wakeup()
    }

    /// Notes that the thread has not polled its queue.
    fn on_resume(&mut self) {
        self.ran = self.rpc.now();
    }
}
