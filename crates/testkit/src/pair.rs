//! Two endpoints with a session between them, and handlers of every kind. The test moves frames and
//! time.

use std::ops::Deref;

use dunlin_core::transport::LANE_PACKET;
use dunlin_core::{
    BackgroundRequest, CallId, CallOptions, Check, Config, Cx, DeferredRequest, Done, Endpoint,
    EndpointNum, Nanos, Request, RpcError, Session, SessionEvent, SessionOffer, SessionOptions,
    Tag, TimerToken, Workers,
};
use dunlin_wire::{ErrorCode, Header, ReqType};

use crate::clock::StepClock;
use crate::session::connect;
pub use crate::session::options;
use crate::wire::{End, Wire};
pub use crate::wire::{References, deliver, kinds, take};
use crate::workers::StepWorkers;

/// Data bytes of a packet.
pub const DATA_SIZE: u32 = Wire::DATA_SIZE;
/// Answered with its own data.
pub const ECHO: ReqType = ReqType(1);
/// Kept in [`App::held`].
pub const HOLD: ReqType = ReqType(2);
/// Its handler panics.
pub const PANIC: ReqType = ReqType(3);
/// Its handler returns without an answer.
pub const SILENT: ReqType = ReqType(4);
/// Answered by a worker with its own data, unless the data is a command.
pub const BACKGROUND: ReqType = ReqType(5);
/// Answered in batches with its own data, unless the data is a command.
pub const BATCH: ReqType = ReqType(6);
/// Rejected with 42.
pub const REJECT: ReqType = ReqType(7);
/// Answered after an [`ECHO`] to the client.
pub const CALL_BACK: ReqType = ReqType(8);
/// The tag of calls that handlers make.
pub const NESTED: Tag = Tag(u64::MAX);
/// No handler is registered for it.
pub const UNKNOWN: ReqType = ReqType(999);

/// The user's state of an endpoint: everything that its handlers and continuations were called
/// with.
#[derive(Debug, Default)]
pub struct App {
    /// The clock of both endpoints.
    pub clock: StepClock,
    /// The data of requests.
    pub ran: Vec<Vec<u8>>,
    /// Requests that wait for an answer.
    pub held: Vec<DeferredRequest>,
    /// Calls that have ended, and their responses.
    pub done: Vec<(Tag, Result<Vec<u8>, RpcError>)>,
    /// Events of sessions.
    pub events: Vec<SessionEvent>,
    /// Timers that have fired.
    pub timers: Vec<TimerToken>,
    /// Number of requests whose client no longer waits.
    pub given_up: usize,
    /// The lengths of batches.
    pub batches: Vec<usize>,
}

/// An endpoint of a pair.
pub type TestRpc = Endpoint<Wire, StepClock, App>;

/// An endpoint, with the handles of its end of the wire.
#[derive(Debug)]
pub struct Host {
    /// The endpoint.
    pub rpc: TestRpc,
    /// Its workers.
    pub workers: StepWorkers,
    end: End,
}

impl Deref for Host {
    type Target = End;

    fn deref(&self) -> &End {
        &self.end
    }
}

impl Host {
    /// Begins to open a session, which then waits for an answer.
    ///
    /// # Panics
    /// If there is no room.
    pub fn open(&mut self, options: &SessionOptions) -> Session {
        self.rpc.lifecycle().open(options).expect("there is room")
    }
}

/// Both endpoints.
#[derive(Debug)]
pub struct Pair {
    /// The clock of both endpoints.
    pub clock: StepClock,
    /// The endpoint that has opened the session.
    pub client: Host,
    /// The endpoint that has accepted the session.
    pub server: Host,
    /// The session at the client.
    pub session: Session,
    /// The session at the server.
    pub back: Session,
}

fn echo(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    app.ran.push(req.data().to_vec());
    let data = req.data();
    req.reply(cx, data.len(), |out| out.copy_from_slice(data));
}

fn host(clock: &StepClock, config: Config, seed: u64, has_workers: bool, lane: usize) -> Host {
    let config = Config {
        readable_buffers: true,
        ..config
    };
    let end = End {
        lane,
        ..End::default()
    };
    let workers = StepWorkers::new(4);
    let app = App {
        clock: clock.clone(),
        ..App::default()
    };
    let shared: Box<dyn Workers> = Box::new(workers.clone());
    let mut rpc: TestRpc = Endpoint::new(
        app,
        clock.clone(),
        end.halves(clock),
        config,
        seed,
        has_workers.then_some(shared),
        EndpointNum::chosen(u32::try_from(seed).expect("1 or 2")),
    )
    .expect("the options are in range");
    register(&mut rpc);
    Host { rpc, workers, end }
}

fn register(rpc: &mut TestRpc) {
    rpc.on(ECHO, echo);
    rpc.on(HOLD, |app, req, cx| {
        app.ran.push(req.data().to_vec());
        app.held.push(req.defer(cx));
    });
    rpc.on(PANIC, |app, req, _| {
        app.ran.push(req.data().to_vec());
        panic!("a handler that panics");
    });
    rpc.on(SILENT, |app, req, _| app.ran.push(req.data().to_vec()));
    rpc.on(REJECT, |_, req, cx| {
        req.reject(cx, ErrorCode::application(42))
    });
    rpc.on(CALL_BACK, |app, req, cx| {
        let body = cx.copy(req.data()).expect("there is memory");
        let answer = cx.buf(64).expect("there is memory");
        let session = req.session();
        app.held.push(req.defer(cx));
        cx.call(session, ECHO, body, answer, NESTED)
            .expect("the backlog has room");
    });
    rpc.on_background(BACKGROUND, 512, |req: BackgroundRequest<'_>| {
        match req.data() {
            b"panic" => panic!("a background handler that panics"),
            b"large" => assert!(req.reply(100_000, |_, _| {}).is_err()),
            b"drop" => {}
            data => {
                let len = data.len();
                req.reply(len, |data, out| out.copy_from_slice(data))
                    .expect("it fits");
            }
        }
    });
    rpc.on_batch(BATCH, |app, mut batch, _| {
        app.batches.push(batch.len());
        for item in batch.iter_mut() {
            let data = item.data();
            app.ran.push(data.to_vec());
            match data {
                b"none" => {}
                b"reject" => item.reject(ErrorCode::application(1)),
                b"panic" => panic!("a batch handler that panics"),
                _ => item
                    .reply(data.len(), |out| out.copy_from_slice(data))
                    .expect("it fits"),
            }
        }
    });
    rpc.on_completion(|app, done: Done, cx| {
        let result = done.result.map(|()| done.response.data().to_vec());
        if done.tag == NESTED {
            let held = app
                .held
                .pop()
                .expect("the request that called back is held");
            held.reply_bytes(cx, done.response.data());
        }
        app.done.push((done.tag, result));
        cx.recycle([done.request, done.response]);
    });
    rpc.on_session(|app, event, _| app.events.push(event));
    rpc.on_timer(|app, token, _| app.timers.push(token));
    rpc.on_given_up(|app, ticket, cx| {
        assert_eq!(cx.is_cancelled(ticket), Ok(true));
        app.given_up += 1;
    });
}

/// The same options, with checks of the laws after each event.
fn checked(config: Config) -> Config {
    Config {
        check: Check::Event,
        ..config
    }
}

#[expect(
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "a test says what it expects by failing"
)]
impl Pair {
    /// A pair with default options.
    pub fn new() -> Self {
        Self::with(Config::default(), SessionOptions::default())
    }

    /// A pair of endpoints with `config` whose session has `options`. They check their laws after
    /// each event.
    pub fn with(config: Config, options: SessionOptions) -> Self {
        Self::made(checked(config), options, true, 0)
    }

    /// A pair of endpoints that check their laws as often as `config` says.
    pub fn checked_as(config: Config) -> Self {
        Self::made(config, SessionOptions::default(), true, 0)
    }

    /// A pair with default options whose endpoints stage packets of every length that fits into a
    /// lane.
    pub fn with_long_lanes() -> Self {
        let (config, options) = (checked(Config::default()), SessionOptions::default());
        Self::made(config, options, true, LANE_PACKET)
    }

    /// A pair with default options whose endpoints have no worker threads.
    pub fn without_workers() -> Self {
        let (config, options) = (checked(Config::default()), SessionOptions::default());
        Self::made(config, options, false, 0)
    }

    fn made(config: Config, options: SessionOptions, workers: bool, lane: usize) -> Self {
        let clock = StepClock::at(Nanos(1_000_000));
        let mut client = host(&clock, config.clone(), 1, workers, lane);
        let mut server = host(&clock, config, 2, workers, lane);
        let [session, back] = connect(&mut client.rpc, &mut server.rpc, [Wire::PEER; 2], &options);
        let mut pair = Self {
            clock,
            client,
            server,
            session,
            back,
        };
        pair.run();
        pair
    }

    /// Makes the server accept a session that the client opens. Returns the server's handle of it,
    /// and the answer, which the client has not received yet.
    pub fn accept(&mut self, session: Session) -> (Session, SessionOffer) {
        let offer = self.client.rpc.lifecycle().offer_of(session);
        let accepted = self
            .server
            .rpc
            .lifecycle()
            .accept(Wire::PEER, &offer.expect("it is opening"));
        accepted.expect("a good offer")
    }

    /// Makes the server accept the session, and gives the client the answer. Returns the server's
    /// handle of it.
    pub fn complete(&mut self, session: Session) -> Session {
        let (back, answer) = self.accept(session);
        self.client
            .rpc
            .lifecycle()
            .opened(session, Wire::PEER, &answer)
            .expect("a good answer");
        back
    }

    /// Issues a call at the client.
    pub fn call(&mut self, req_type: ReqType, data: &[u8], tag: u64) -> CallId {
        self.call_for(req_type, data, tag, None)
    }

    /// Issues a call with a deadline at the client.
    pub fn call_for(
        &mut self,
        req_type: ReqType,
        data: &[u8],
        tag: u64,
        deadline: Option<Nanos>,
    ) -> CallId {
        let rpc = &mut self.client.rpc;
        let mut request = rpc.buf(data.len()).expect("there is memory");
        request.data_mut().copy_from_slice(data);
        let response = rpc.buf(1024).expect("there is memory");
        let options = CallOptions { deadline };
        rpc.call_with(self.session, req_type, request, response, Tag(tag), options)
            .expect("the backlog has room")
    }

    /// Runs both hosts and delivers their frames, until no frame moves.
    pub fn run(&mut self) {
        for _ in 0..100 {
            self.step_client();
            self.step_server();
            let moved = deliver(&self.client.out, &self.server.inbox)
                + deliver(&self.server.out, &self.client.inbox);
            if moved == 0 {
                return;
            }
        }
        panic!("packets go back and forth forever");
    }

    /// Runs the client.
    pub fn step_client(&mut self) {
        step(&mut self.client.rpc);
    }

    /// Runs the server.
    pub fn step_server(&mut self) {
        step(&mut self.server.rpc);
    }

    /// Lets time pass in steps of at most 100 µs, and runs both hosts after each.
    pub fn pass(&mut self, span: Nanos) {
        let end = self.clock.read() + span;
        while self.clock.read() < end {
            self.clock
                .set((self.clock.read() + Nanos(100_000)).min(end));
            self.run();
        }
    }

    /// Lets time pass at the client and drops its packets. Returns their headers.
    pub fn pass_alone(&mut self, span: Nanos) -> Vec<Header> {
        let end = self.clock.read() + span;
        let mut lost = Vec::new();
        while self.clock.read() < end {
            self.clock
                .set((self.clock.read() + Nanos(100_000)).min(end));
            self.step_client();
            lost.extend(take(&self.client.out));
        }
        lost
    }

    /// Lets time pass at the client; its packets wait in the queue to the server.
    pub fn pass_at_client(&mut self, span: Nanos) {
        let end = self.clock.read() + span;
        while self.clock.read() < end {
            self.clock
                .set((self.clock.read() + Nanos(100_000)).min(end));
            self.step_client();
            deliver(&self.client.out, &self.server.inbox);
        }
    }

    /// Calls of the client that have ended.
    pub fn done(&self) -> &[(Tag, Result<Vec<u8>, RpcError>)] {
        &self.client.rpc.app().done
    }

    /// Requests that the server has handled.
    pub fn ran(&self) -> usize {
        self.server.rpc.app().ran.len()
    }

    /// Runs the background jobs of the server.
    pub fn run_jobs(&mut self) {
        self.server.workers.run_all();
    }

    /// Checks at the end that no call, no msgbuf and no credit is missing.
    pub fn assert_clean(&mut self) {
        // Passes three seconds in large steps, because every test does this.
        for _ in 0..600 {
            self.clock.pass(Nanos::from_millis(5));
            self.run();
        }
        for host in [&mut self.client, &mut self.server] {
            for session in host.rpc.sessions().collect::<Vec<_>>() {
                let info = host.rpc.session_info(session).expect("it is alive");
                assert_eq!((info.in_flight, info.backlog), (0, 0));
                assert_eq!(info.credits, info.credit_limit);
            }
            assert_eq!(host.rpc.pool_use().1, 0, "msgbufs are missing");
            assert_eq!(host.rpc.next_wakeup(), Nanos::MAX);
            assert_eq!(host.rpc.counters().broken_laws, 0);
        }
    }
}

/// Runs one endpoint often enough to see due timers; only every 64th idle iteration checks them.
fn step(rpc: &mut TestRpc) {
    for _ in 0..65 {
        rpc.run_once();
    }
}
