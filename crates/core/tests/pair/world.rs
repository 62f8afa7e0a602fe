//! The pair: `Wire` moves frames when the test says so, time passes when the test says so.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use dunlin_core::transport::{
    Frame, Halves, Limits, PeerId, RX_BURST, Rx, Transport, Tx, TxItem, TxSeq,
};
use dunlin_core::{
    BackgroundRequest, Clock, Config, Cx, Done, Held, Job, Nanos, Request, Rpc, RpcError, Session,
    SessionEvent, SessionOptions, Tag, TimerToken, Workers,
};
use dunlin_msgbuf::PeerBytes;
use dunlin_wire::{ErrorCode, HEADER_LEN, Header, PacketType, ReqType};

pub(crate) const DATA_SIZE: u32 = 1024;
pub(crate) const ECHO: ReqType = ReqType(1);
pub(crate) const HOLD: ReqType = ReqType(2);
pub(crate) const PANIC: ReqType = ReqType(3);
pub(crate) const SILENT: ReqType = ReqType(4);
pub(crate) const BACKGROUND: ReqType = ReqType(5);
pub(crate) const BATCH: ReqType = ReqType(6);
pub(crate) const REJECT: ReqType = ReqType(7);
pub(crate) const CALL_BACK: ReqType = ReqType(8);
pub(crate) const NESTED: Tag = Tag(u64::MAX);
pub(crate) const UNKNOWN: ReqType = ReqType(999);

type Queue = Rc<RefCell<VecDeque<Vec<u8>>>>;

pub(crate) struct TestTransport;

impl Transport for TestTransport {
    type Rx = TestRx;
    type Tx = TestTx;
}

pub(crate) struct TestRx {
    queue: Queue,
    burst: Vec<Vec<u8>>,
    references: Rc<Cell<References>>,
    congestion: Rc<Cell<bool>>,
    /// Of the data that the other side has lent.
    generation: AtomicU32,
}

/// What a receiver does with the data of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum References {
    /// It comes with the packets.
    #[default]
    None,
    /// It stays with the sender.
    All,
    /// So, and the sender has taken it back.
    Revoked,
}

impl Rx for TestRx {
    fn burst(&mut self) -> usize {
        let mut queue = self.queue.borrow_mut();
        let count = queue.len().min(RX_BURST);
        self.burst = queue.drain(..count).collect();
        count
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let bytes = &self.burst[index];
        let lent = match self.references.get() {
            References::None => {
                let congestion = self.congestion.get();
                return Frame {
                    congestion,
                    ..Frame::new(bytes)
                };
            }
            References::All => 1,
            References::Revoked => 3,
        };
        let header = Header::decode(bytes).expect("an endpoint sent it");
        let (front, data) = bytes.split_at(HEADER_LEN + header.extension_len());
        let mut frame = Frame::new(front);
        if !data.is_empty() {
            frame.elsewhere = Some(PeerBytes::of(data, &self.generation, lent));
        }
        frame
    }
}

pub(crate) struct TestTx {
    out: Queue,
    taken: u64,
    /// While set, nothing is done: the transport still reads every msgbuf.
    pub stuck: Rc<Cell<bool>>,
    done: u64,
    clock: Rc<Cell<u64>>,
    /// What it takes to send a packet, in nanoseconds.
    pub cost_ns: Rc<Cell<u64>>,
}

impl Tx for TestTx {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        for item in items {
            assert_eq!(item.peer, PeerId(7));
            let mut frame = item.inline[..item.inline_len as usize].to_vec();
            if !item.data.is_empty() {
                let mut data = Vec::new();
                dunlin_msgbuf::regions::read(item.data, &mut data)
                    .expect("lent msgbufs are current");
                frame.extend_from_slice(&data);
            }
            self.out.borrow_mut().push_back(frame);
        }
        self.taken += items.len() as u64;
        let cost_ns = self.cost_ns.get() * items.len() as u64;
        self.clock.set(self.clock.get() + cost_ns);
        TxSeq(self.taken)
    }

    fn done(&mut self) -> TxSeq {
        if !self.stuck.get() {
            self.done = self.taken;
        }
        TxSeq(self.done)
    }

    fn flush(&mut self) {}
}

#[derive(Clone)]
pub(crate) struct TestClock(pub Rc<Cell<u64>>);

impl Clock for TestClock {
    fn now(&mut self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// Jobs wait here until the test runs them.
#[derive(Default)]
pub(crate) struct TestWorkers {
    pub waiting: Vec<Job>,
    pub ran: Vec<Job>,
    pub limit: usize,
}

struct SharedWorkers(std::sync::Arc<std::sync::Mutex<TestWorkers>>);

impl Workers for SharedWorkers {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        let mut workers = self.0.lock().unwrap();
        if workers.waiting.len() >= workers.limit {
            return Err(job);
        }
        workers.waiting.push(job);
        Ok(())
    }

    fn poll(&mut self) -> Option<Job> {
        self.0.lock().unwrap().ran.pop()
    }
}

#[derive(Default)]
pub(crate) struct App {
    pub ran: Vec<Vec<u8>>,
    pub held: Vec<Held>,
    pub done: Vec<(Tag, Result<Vec<u8>, RpcError>)>,
    pub events: Vec<SessionEvent>,
    pub timers: Vec<TimerToken>,
    pub given_up: usize,
    pub batches: Vec<usize>,
}

pub(crate) type TestRpc = Rpc<TestTransport, TestClock, App>;

pub(crate) struct Host {
    pub rpc: TestRpc,
    /// What it has sent, and what will be delivered to it.
    pub out: Queue,
    pub inbox: Queue,
    pub stuck: Rc<Cell<bool>>,
    /// Where the data of what it receives lies.
    pub references: Rc<Cell<References>>,
    /// While set, the network marks what is delivered to it.
    pub congestion: Rc<Cell<bool>>,
    /// What its transport takes to send a packet, in nanoseconds.
    pub cost_ns: Rc<Cell<u64>>,
    pub workers: std::sync::Arc<std::sync::Mutex<TestWorkers>>,
}

pub(crate) struct Pair {
    pub clock: Rc<Cell<u64>>,
    pub client: Host,
    pub server: Host,
    /// The session at the client and at the server.
    pub session: Session,
    pub back: Session,
}

fn echo(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    app.ran.push(req.data().to_vec());
    let data = req.data();
    req.reply(cx, data.len(), |out| out.copy_from_slice(data));
}

fn host(clock: &Rc<Cell<u64>>, config: Config, seed: u64) -> Host {
    let config = Config {
        readable_buffers: true,
        ..config
    };
    let (out, inbox) = (Queue::default(), Queue::default());
    let stuck = Rc::new(Cell::new(false));
    let cost_ns = Rc::default();
    let references = Rc::default();
    let congestion = Rc::default();
    let halves = Halves {
        rx: TestRx {
            queue: Rc::clone(&inbox),
            burst: Vec::new(),
            references: Rc::clone(&references),
            congestion: Rc::clone(&congestion),
            generation: AtomicU32::new(1),
        },
        tx: TestTx {
            out: Rc::clone(&out),
            taken: 0,
            stuck: Rc::clone(&stuck),
            done: 0,
            clock: Rc::clone(clock),
            cost_ns: Rc::clone(&cost_ns),
        },
        limits: Limits {
            data_size: DATA_SIZE,
            rx_queue: 1024,
            line_rate: 1 << 30,
        },
    };
    let workers = std::sync::Arc::new(std::sync::Mutex::new(TestWorkers {
        limit: 4,
        ..TestWorkers::default()
    }));
    let shared: Box<dyn Workers> = Box::new(SharedWorkers(std::sync::Arc::clone(&workers)));
    let clock = TestClock(Rc::clone(clock));
    let mut rpc: TestRpc =
        Rpc::new(App::default(), clock, halves, config, seed, Some(shared)).unwrap();
    register(&mut rpc);
    Host {
        rpc,
        out,
        inbox,
        stuck,
        references,
        congestion,
        cost_ns,
        workers,
    }
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
        let body = cx.copy(req.data()).unwrap();
        let answer = cx.buf(64).unwrap();
        let session = req.session();
        app.held.push(req.defer(cx));
        cx.call(session, ECHO, body, answer, NESTED).unwrap();
    });
    rpc.on_background(BACKGROUND, 512, |req: BackgroundRequest<'_>| {
        match req.data() {
            b"panic" => panic!("a background handler that panics"),
            b"large" => assert!(req.reply(100_000, |_, _| {}).is_err()),
            b"drop" => {}
            data => {
                let len = data.len();
                req.reply(len, |data, out| out.copy_from_slice(data))
                    .unwrap();
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
                    .unwrap(),
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
        assert!(cx.is_cancelled(ticket));
        app.given_up += 1;
    });
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(Config::default(), SessionOptions::default())
    }

    pub(crate) fn with(config: Config, options: SessionOptions) -> Self {
        let clock = Rc::new(Cell::new(1_000_000));
        let mut client = host(&clock, config.clone(), 1);
        let mut server = host(&clock, config, 2);
        let session = client.rpc.lifecycle().open(&options).unwrap();
        let offer = client.rpc.lifecycle().offer_of(session).unwrap();
        let (back, answer) = server.rpc.lifecycle().accept(PeerId(7), &offer).unwrap();
        client
            .rpc
            .lifecycle()
            .opened(session, PeerId(7), &answer)
            .unwrap();
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

    /// Issues a call at the client.
    pub(crate) fn call(&mut self, req_type: ReqType, data: &[u8], tag: u64) -> dunlin_core::CallId {
        self.call_for(req_type, data, tag, None)
    }

    pub(crate) fn call_for(
        &mut self,
        req_type: ReqType,
        data: &[u8],
        tag: u64,
        deadline: Option<Nanos>,
    ) -> dunlin_core::CallId {
        let rpc = &mut self.client.rpc;
        let mut request = rpc.buf(data.len()).unwrap();
        request.data_mut().copy_from_slice(data);
        let response = rpc.buf(1024).unwrap();
        let options = dunlin_core::CallOptions { deadline };
        rpc.call_with(self.session, req_type, request, response, Tag(tag), options)
            .unwrap()
    }

    /// Runs both hosts once and delivers what they sent, until nothing moves.
    pub(crate) fn run(&mut self) {
        for _ in 0..100 {
            self.step_client();
            self.step_server();
            let moved = deliver(&self.client.out, &self.server.inbox)
                + deliver(&self.server.out, &self.client.inbox);
            if moved == 0 {
                return;
            }
        }
        panic!("packets go back and forth without end");
    }

    pub(crate) fn step_client(&mut self) {
        step(&mut self.client.rpc);
    }

    pub(crate) fn step_server(&mut self) {
        step(&mut self.server.rpc);
    }

    /// Lets time pass in steps of at most 100 µs, running both hosts.
    pub(crate) fn pass(&mut self, span: Nanos) {
        let end = self.clock.get() + span.0;
        while self.clock.get() < end {
            self.clock.set((self.clock.get() + 100_000).min(end));
            self.run();
        }
    }

    /// Lets time pass at the client, whose packets are lost.
    pub(crate) fn pass_alone(&mut self, span: Nanos) -> Vec<Header> {
        let end = self.clock.get() + span.0;
        let mut lost = Vec::new();
        while self.clock.get() < end {
            self.clock.set((self.clock.get() + 100_000).min(end));
            self.step_client();
            lost.extend(take(&self.client.out));
        }
        lost
    }

    pub(crate) fn done(&self) -> &[(Tag, Result<Vec<u8>, RpcError>)] {
        &self.client.rpc.app().done
    }

    pub(crate) fn ran(&self) -> usize {
        self.server.rpc.app().ran.len()
    }

    /// Runs the background jobs of the server.
    pub(crate) fn run_jobs(&mut self) {
        let mut workers = self.server.workers.lock().unwrap();
        let mut jobs = std::mem::take(&mut workers.waiting);
        jobs.iter_mut().for_each(Job::run);
        workers.ran.extend(jobs);
    }

    /// After everything: no call, no msgbuf, no credit is missing.
    pub(crate) fn assert_clean(&mut self) {
        // Three seconds, in large steps: every test does this.
        for _ in 0..600 {
            self.clock.set(self.clock.get() + 5_000_000);
            self.run();
        }
        for host in [&mut self.client, &mut self.server] {
            for session in host.rpc.sessions().collect::<Vec<_>>() {
                let info = host.rpc.session_info(session).unwrap();
                assert_eq!((info.in_flight, info.backlog), (0, 0));
                assert_eq!(info.credits, info.credit_limit);
            }
            assert_eq!(host.rpc.pool_use().1, 0, "msgbufs are missing");
            assert_eq!(host.rpc.next_wakeup(), Nanos::MAX);
        }
    }
}

/// Runs one endpoint often enough to see due timers, which idle iterations check every 64th time.
fn step(rpc: &mut TestRpc) {
    for _ in 0..65 {
        rpc.run_once();
    }
}

pub(crate) fn deliver(from: &Queue, to: &Queue) -> usize {
    let moved = from.borrow().len();
    to.borrow_mut().extend(from.borrow_mut().drain(..));
    moved
}

/// Takes the packets that a host has sent off the wire.
pub(crate) fn take(queue: &Queue) -> Vec<Header> {
    queue
        .borrow_mut()
        .drain(..)
        .map(|bytes| Header::decode(&bytes).unwrap())
        .collect()
}

pub(crate) fn kinds(headers: &[Header]) -> Vec<PacketType> {
    headers.iter().map(|header| header.kind).collect()
}
