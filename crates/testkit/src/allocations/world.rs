//! Two endpoints over any transport in one thread, with all kinds of handlers, and a clock that the
//! test moves. Nothing here allocates after [`World::new`].

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use dunlin_core::transport::{Halves, PeerId, Transport};
use dunlin_core::{
    CallId, CallOptions, Config, Cx, DeferredRequest, Done, Endpoint, EndpointNum, Job, Nanos,
    Request, Session, SessionOptions, Tag, TimerToken, Workers,
};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use super::lossy::{Lossy, lossy};
use crate::clock::StepClock;
use crate::session::connect;

pub(super) const ECHO: ReqType = ReqType(1);
/// Kept, and answered when a timer fires.
pub(super) const LATER: ReqType = ReqType(2);
/// Kept; answered after the server has called back.
pub(super) const NESTED: ReqType = ReqType(3);
pub(super) const BATCH: ReqType = ReqType(4);
pub(super) const BATCH_LATER: ReqType = ReqType(5);
pub(super) const BACKGROUND: ReqType = ReqType(6);
pub(super) const REJECT: ReqType = ReqType(7);
/// Kept, and never answered by the handler.
pub(super) const HOLD: ReqType = ReqType(8);
/// Kept, and dropped immediately.
pub(super) const DROP: ReqType = ReqType(9);
/// Lets time pass in the handler.
pub(super) const SLOW: ReqType = ReqType(10);
pub(super) const UNKNOWN: ReqType = ReqType(11);

/// Request and response bytes of most calls.
pub(super) const SIZE: usize = 32;
/// [`LATER`] is answered after this time, which is long enough for the request to be acknowledged
/// first.
const LATER_AFTER: Nanos = Nanos::from_micros(120);
/// The most calls that the tests have in flight.
const CALLS: usize = 512;

/// Workers that run each job when the endpoint polls for results.
struct Inline(VecDeque<Job>);

impl Workers for Inline {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        if self.0.len() == self.0.capacity() {
            return Err(job);
        }
        self.0.push_back(job);
        Ok(())
    }

    fn poll(&mut self) -> Option<Job> {
        let mut job = self.0.pop_front()?;
        job.run();
        Some(job)
    }
}

/// The state of one endpoint.
pub struct App {
    clock: StepClock,
    /// Msgbufs for calls.
    bufs: Vec<[MsgBuf; 2]>,
    /// Calls that have not ended.
    pub outstanding: usize,
    /// Calls that have ended.
    pub completed: u64,
    /// Calls that have ended well.
    pub succeeded: u64,
    /// Kept requests, by timer token or tag.
    kept: Vec<Option<DeferredRequest>>,
    free: Vec<usize>,
    /// Requests that wait for an answer.
    pub held: Vec<DeferredRequest>,
}

impl App {
    fn new(clock: &StepClock) -> Self {
        Self {
            clock: clock.clone(),
            bufs: Vec::with_capacity(CALLS),
            outstanding: 0,
            completed: 0,
            succeeded: 0,
            kept: (0..CALLS).map(|_| None).collect(),
            free: (0..CALLS).collect(),
            held: Vec::with_capacity(CALLS),
        }
    }

    fn keep(&mut self, held: DeferredRequest) -> u64 {
        let at = self.free.pop().expect("fewer calls are under way");
        self.kept[at] = Some(held);
        at as u64
    }

    fn release(&mut self, at: u64) -> DeferredRequest {
        let at = usize::try_from(at).expect("it was an index");
        self.free.push(at);
        self.kept[at].take().expect("it is kept")
    }
}

pub(super) type TestRpc<T> = Endpoint<Lossy<T>, StepClock, App>;

/// Two endpoints with sessions between them.
pub struct World<T: Transport> {
    /// The clock of both endpoints.
    pub clock: StepClock,
    /// One in this many packets is lost, in both directions; none if it is 0.
    pub loss: Rc<Cell<u64>>,
    /// The endpoint that calls.
    pub client: Endpoint<Lossy<T>, StepClock, App>,
    /// The endpoint that answers, and calls back.
    pub server: Endpoint<Lossy<T>, StepClock, App>,
    /// The sessions of the client.
    pub sessions: Vec<Session>,
    next: usize,
}

impl<T: Transport> World<T> {
    /// Makes the endpoints, over the two `ends` of a transport, with this number of sessions.
    /// `peers`: the number by which each end knows the other.
    pub fn new(ends: [Halves<T::Rx, T::Tx>; 2], peers: [PeerId; 2], sessions: usize) -> Self {
        let (clock, loss) = (StepClock::at(Nanos(1_000_000)), Rc::default());
        let [client, server] = ends;
        let mut client = endpoint::<T>(&clock, lossy(client, &loss), 1);
        let mut server = endpoint::<T>(&clock, lossy(server, &loss), 2);
        let options = SessionOptions::default();
        let mut open = |_| connect(&mut client, &mut server, peers, &options)[0];
        let sessions = (0..sessions).map(&mut open).collect();
        let mut world = Self {
            clock,
            loss,
            client,
            server,
            sessions,
            next: 0,
        };
        for _ in 0..CALLS {
            for rpc in [&mut world.client, &mut world.server] {
                let bufs = [(); 2].map(|()| rpc.buf(SIZE).expect("there is memory"));
                rpc.app_mut().bufs.push(bufs);
            }
        }
        world.settle();
        world
    }

    /// Issues a call at the client, on its sessions in turn.
    pub fn call(&mut self, req_type: ReqType, deadline: Option<Nanos>) -> CallId {
        self.next = (self.next + 1) % self.sessions.len();
        let (app, mut cx) = self.client.with();
        app.outstanding += 1;
        let [request, response] = app.bufs.pop().expect("fewer calls are under way");
        let (session, options) = (self.sessions[self.next], CallOptions { deadline });
        cx.call_with(session, req_type, request, response, Tag(u64::MAX), options)
            .expect("the backlog has room")
    }

    /// Lets a microsecond pass, and runs both endpoints once. True if one of them had work.
    pub fn step(&mut self) -> bool {
        self.clock.pass(Nanos(1_000));
        self.client.run_once().busy | self.server.run_once().busy
    }

    /// Runs both endpoints until no frame moves and nothing is due.
    pub fn exchange(&mut self) {
        while self.step() || self.due() <= self.clock.read() {}
    }

    fn due(&self) -> Nanos {
        self.client.next_wakeup().min(self.server.next_wakeup())
    }

    /// Lets time pass, stopping at each time at which something is due.
    pub fn pass(&mut self, span: Nanos) {
        let end = self.clock.read() + span;
        self.exchange();
        while self.clock.read() < end {
            let due = self.due().min(end);
            self.clock.set(due.max(self.clock.read()));
            self.exchange();
        }
    }

    /// Runs until every call has completed.
    pub fn settle(&mut self) {
        let mut rounds = 0;
        self.exchange();
        while self.client.app().outstanding + self.server.app().outstanding != 0 {
            rounds += 1;
            assert!(rounds < 100_000, "calls do not complete");
            self.pass(Nanos::from_micros(50));
        }
    }
}

fn endpoint<T: Transport>(
    clock: &StepClock,
    halves: Halves<T::Rx, <Lossy<T> as Transport>::Tx>,
    seed: u64,
) -> TestRpc<T> {
    let config = Config {
        readable_buffers: true,
        response_hold: Nanos::from_millis(2),
        ..Config::default()
    };
    let workers = Box::new(Inline(VecDeque::with_capacity(CALLS)));
    let app = App::new(clock);
    let mut rpc = Endpoint::new(
        app,
        clock.clone(),
        halves,
        config,
        seed,
        Some(workers),
        EndpointNum::take().expect("few tests"),
    )
    .expect("the options are in range");
    register(&mut rpc);
    rpc
}

fn register<T: Transport>(rpc: &mut TestRpc<T>) {
    rpc.on(ECHO, echo);
    rpc.on(LATER, |app, req, cx| {
        let at = app.keep(req.defer(cx));
        cx.timer(cx.now() + LATER_AFTER, TimerToken(at));
    });
    rpc.on_timer(|app, token, cx| app.release(token.0).reply_bytes(cx, &[1; SIZE]));
    rpc.on(NESTED, call_back);
    rpc.on_batch_up_to(BATCH, SIZE, |_, mut batch, _| {
        for item in batch.iter_mut() {
            let data = item.data();
            item.reply(data.len(), |out| out.copy_from_slice(data))
                .expect("it fits");
        }
    });
    rpc.on_batch(BATCH_LATER, |app, mut batch, cx| {
        for item in batch.iter_mut() {
            let at = app.keep(item.defer(cx));
            cx.timer(cx.now() + LATER_AFTER, TimerToken(at));
        }
    });
    rpc.on_background(BACKGROUND, SIZE, |req| {
        let len = req.data().len();
        req.reply(len, |data, out| out.copy_from_slice(data))
            .expect("it fits");
    });
    rpc.on(REJECT, |_, req, cx| {
        req.reject(cx, ErrorCode::application(1))
    });
    rpc.on(HOLD, |app, req, cx| app.held.push(req.defer(cx)));
    rpc.on(DROP, |_, req, cx| drop(req.defer(cx)));
    rpc.on(SLOW, |app, req, cx| {
        app.clock.pass(Nanos::from_micros(100));
        req.reply_bytes(cx, &[1; SIZE]);
    });
    rpc.on_completion(complete);
}

fn echo(_: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let data = req.data();
    req.reply(cx, data.len(), |out| out.copy_from_slice(data));
}

fn call_back(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let [mut request, response] = app.bufs.pop().expect("fewer calls are under way");
    request.fill(req.data()).expect("it fits");
    let session = req.session();
    let at = app.keep(req.defer(cx));
    app.outstanding += 1;
    cx.call(session, ECHO, request, response, Tag(at))
        .expect("the backlog has room");
}

fn complete(app: &mut App, done: Done, cx: &mut Cx<'_>) {
    app.outstanding -= 1;
    app.completed += 1;
    app.succeeded += u64::from(done.result.is_ok());
    if done.tag != Tag(u64::MAX) {
        app.release(done.tag.0)
            .reply_bytes(cx, done.response.data());
    }
    app.bufs.push([done.request, done.response]);
}
