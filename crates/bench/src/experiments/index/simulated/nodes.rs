//! The processes: dispatch threads of the server, each with an endpoint, and clients.

use anyhow::ensure;
use dunlin::ReqType;
use dunlin_core::{Config, Done, Endpoint, Nanos, Rng, Session, Tag, Workers};
use dunlin_sim::{NetHandle, Node, PortId, SimClock, SimEndpoint, SimTransport, take_reports};

use super::super::scans::SCAN_EVERY;
use super::super::tree::Costs;
use super::pool::{Jobs, Pool};

const GET: ReqType = ReqType(1);
const SCAN: ReqType = ReqType(2);

/// Bytes of a scan's request and answer, as in the index. Gets here are as long.
const REQUEST: usize = 20;
const ANSWER: usize = 24;

/// A process.
pub(super) enum Process {
    Server(Box<ServerNode>),
    Client(Box<ClientNode>),
}

/// The state of a dispatch thread.
pub(super) struct Thread {
    clock: SimClock,
    get: Nanos,
    scan: Nanos,
}

pub(super) struct ServerNode {
    pub(super) rpc: SimEndpoint<Thread>,
    clock: SimClock,
    jobs: Option<Jobs>,
}

impl ServerNode {
    pub(super) fn boot(
        net: &NetHandle,
        port: PortId,
        pool: Option<Pool>,
        costs: Costs,
        seed: u64,
    ) -> Self {
        let clock = net.borrow().clock(port);
        let halves = SimTransport::open(net, port);
        let jobs = pool.map(Jobs::new);
        let workers = jobs.clone().map(|jobs| Box::new(jobs) as Box<dyn Workers>);
        let thread = Thread {
            clock: clock.clone(),
            get: costs.get.into(),
            scan: costs.scan.into(),
        };
        let number = dunlin_core::EndpointNum::chosen(u32::try_from(port.0).expect("a few") + 1);
        let made = Endpoint::new(
            thread,
            clock.clone(),
            halves,
            options(),
            seed,
            workers,
            number,
        );
        let mut rpc = made.expect("the options are in range");
        rpc.on(GET, |thread, request, cx| {
            thread.clock.spend(thread.get);
            request.reply(cx, ANSWER, |out| out.fill(0));
        });
        match jobs {
            Some(_) => rpc.on_background(SCAN, ANSWER, |request| {
                // The answer fits.
                let _ = request.reply(ANSWER, |_, out| out.fill(0));
            }),
            None => rpc.on(SCAN, |thread, request, cx| {
                thread.clock.spend(thread.scan);
                request.reply(cx, ANSWER, |out| out.fill(0));
            }),
        }
        Self { rpc, clock, jobs }
    }
}

/// The operations of a client.
pub(super) struct Caller {
    sessions: Vec<Session>,
    rng: Rng,
    /// When each operation began, and whether it is a scan.
    begun: Vec<(Nanos, bool)>,
    /// Times of gets.
    times: Vec<Nanos>,
    clock: SimClock,
    wrong: Option<String>,
}

pub(super) struct ClientNode {
    pub(super) rpc: SimEndpoint<Caller>,
}

impl ClientNode {
    pub(super) fn boot(net: &NetHandle, port: PortId, seed: u64) -> Self {
        let caller = Caller {
            sessions: Vec::new(),
            rng: Rng::new(seed),
            begun: Vec::new(),
            times: Vec::new(),
            clock: net.borrow().clock(port),
            wrong: None,
        };
        let mut rpc = SimTransport::endpoint(net, port, caller, options(), seed);
        rpc.on_completion(Caller::on_done);
        Self { rpc }
    }

    /// Adds a session with a thread of the server.
    pub(super) fn add(&mut self, session: Session) {
        self.rpc.app_mut().sessions.push(session);
    }

    /// Begins this number of operations. When one ends, the next one begins.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(super) fn begin(&mut self, operations: usize) -> anyhow::Result<()> {
        for place in 0..operations {
            let (request, response) = (self.rpc.buf(REQUEST)?, self.rpc.buf(ANSWER)?);
            let (caller, mut cx) = self.rpc.with();
            caller.begun.push((Nanos::ZERO, false));
            caller.issue(place, [request, response], &mut cx);
        }
        Ok(())
    }

    /// Forgets the times so far.
    pub(super) fn forget(&mut self) {
        self.rpc.app_mut().times.clear();
    }

    /// The times of all gets that have ended.
    ///
    /// # Errors
    /// An operation has failed.
    pub(super) fn take_times(&mut self) -> anyhow::Result<Vec<Nanos>> {
        let caller = self.rpc.app_mut();
        let wrong = caller.wrong.take();
        ensure!(wrong.is_none(), "an operation has failed: {wrong:?}");
        Ok(std::mem::take(&mut caller.times))
    }
}

impl Caller {
    fn on_done(&mut self, done: Done, cx: &mut dunlin_core::Cx<'_>) {
        if let Err(error) = done.result {
            self.wrong = Some(error.to_string());
            return;
        }
        let place = usize::try_from(done.tag.0).expect("it was a place");
        let (begun, is_scan) = self.begun[place];
        if !is_scan {
            self.times.push(self.clock.read().since(begun));
        }
        self.issue(place, [done.request, done.response], cx);
    }

    fn issue(
        &mut self,
        place: usize,
        [request, response]: [dunlin::MsgBuf; 2],
        cx: &mut dunlin_core::Cx<'_>,
    ) {
        let count = u32::try_from(self.sessions.len()).expect("a few");
        let session = self.sessions[self.rng.below(count) as usize];
        let is_scan = self.rng.below(SCAN_EVERY) == 0;
        self.begun[place] = (self.clock.read(), is_scan);
        let req_type = if is_scan { SCAN } else { GET };
        let called = cx.call(session, req_type, request, response, Tag(place as u64));
        if let Err(refused) = called {
            self.wrong = Some(refused.to_string());
        }
    }
}

impl Node for Process {
    fn run_once(&mut self) {
        match self {
            Self::Server(node) => {
                if let Some(jobs) = &node.jobs {
                    jobs.advance(node.clock.read());
                }
                node.rpc.run_once();
                take_reports(&mut node.rpc);
            }
            Self::Client(node) => {
                node.rpc.run_once();
                take_reports(&mut node.rpc);
            }
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(node) => {
                let jobs = node.jobs.as_ref();
                let job = jobs.map_or(Nanos::MAX, |jobs| jobs.advance(node.clock.read()));
                node.rpc.next_wakeup().min(job)
            }
            Self::Client(node) => node.rpc.next_wakeup(),
        }
    }
}

fn options() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 8 << 20,
        ..Config::default()
    }
}
