//! The two processes of the experiment: one sends large requests, one after the other, the other
//! one reads them and answers.
//!
//! Invariant: the first failure is kept. Called by `bulk` and by the world.

use dunlin_core::transport::PeerId;
use dunlin_core::{
    CallOptions, Config, Cx, Done, Nanos, Request, Rpc, Session, SessionOffer, SessionOptions, Tag,
};
use dunlin_wire::{ErrorCode, ReqType};

use super::Bulk;
use crate::clock::SimClock;
use crate::net::{NetHandle, SimTransport};
use crate::world::{Cluster, Node, ProcessId, StreamEvent, StreamRequest};

const BULK: ReqType = ReqType(1);
/// Bytes of a response.
const RESPONSE: usize = 32;
/// A stamp is this long, and so is the name of a request.
const WORD: usize = 8;

/// Makes the processes.
pub(super) struct Pair(Bulk);

impl Pair {
    pub(super) fn new(bulk: &Bulk) -> Self {
        Self(bulk.clone())
    }
}

/// A process.
pub(super) struct Bulky {
    rpc: Rpc<SimTransport, SimClock, App>,
}

struct App {
    bulk: Bulk,
    session: Session,
    /// Requests begun and ended.
    begun: u32,
    ended: u32,
    last_end: Nanos,
    failure: Option<String>,
}

impl Cluster for Pair {
    type Node = Bulky;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Bulky {
        let halves = SimTransport::open(net, process.port);
        let clock = net.borrow().clock(process.port);
        let app = App {
            bulk: self.0.clone(),
            session: Session::NONE,
            begun: 0,
            ended: 0,
            last_end: Nanos::ZERO,
            failure: None,
        };
        let seed = self.0.seed + process.port.0 as u64;
        let mut rpc = Rpc::new(app, clock, halves, config(), seed, None)
            .expect("the configuration is within its ranges");
        rpc.on(BULK, on_bulk);
        rpc.on_completion(on_completion);
        Bulky { rpc }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

/// Timeouts for a NIC instead of a kernel.
fn config() -> Config {
    Config {
        rto_floor: Nanos::from_micros(200),
        rto_initial: Nanos::from_millis(1),
        scan_interval: Nanos::from_micros(50),
        hugepages: false,
        readable_buffers: true,
        ..Config::default()
    }
}

/// Reads the whole request and answers a function of it.
fn on_bulk(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some(name) = word(req.data()).filter(|_| app.has_stamps(req.data())) else {
        app.fail("a request has other stamps than it was sent with");
        return req.reject(cx, ErrorCode::application(1));
    };
    req.reply(cx, RESPONSE, |out| answer(name, out));
}

fn on_completion(app: &mut App, done: Done, cx: &mut Cx<'_>) {
    let mut expected = [0; RESPONSE];
    answer(done.tag.0, &mut expected);
    if let Err(why) = done.result {
        app.fail(&format!("a request failed: {why:?}"));
    } else if done.response.data() != expected {
        app.fail("a response belongs to another request");
    }
    cx.recycle([done.request, done.response]);
    app.ended += 1;
    app.last_end = cx.now();
    app.send_next(cx);
}

impl App {
    fn fail(&mut self, what: &str) {
        self.failure.get_or_insert_with(|| what.to_owned());
    }

    /// Sends another request, if there are any left.
    fn send_next(&mut self, cx: &mut Cx<'_>) {
        if self.begun == self.bulk.requests {
            return;
        }
        let name = u64::from(self.begun);
        self.begun += 1;
        let size = self.bulk.request_bytes as usize;
        let (Ok(mut request), Ok(response)) = (cx.buf(size), cx.buf(RESPONSE)) else {
            return self.fail("no memory");
        };
        let packets = request.data_mut().chunks_mut(self.bulk.data_size as usize);
        for (packet, stamp) in packets.zip(self.bulk.stamps(name)) {
            put_word(packet, stamp);
        }
        put_word(request.data_mut(), name);
        let (tag, options) = (Tag(name), CallOptions::default());
        if let Err(refused) = cx.call_with(self.session, BULK, request, response, tag, options) {
            self.fail(&format!("a request is refused: {:?}", refused.kind));
        }
    }

    /// The first packet has the name in place of its stamp.
    fn has_stamps(&self, data: &[u8]) -> bool {
        let Some(name) = word(data) else {
            return false;
        };
        let packets = data.chunks(self.bulk.data_size as usize);
        let mut stamped = packets.zip(self.bulk.stamps(name)).skip(1);
        data.len() == self.bulk.request_bytes as usize
            && stamped.all(|(packet, stamp)| packet.len() < WORD || word(packet) == Some(stamp))
    }
}

fn word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn put_word(bytes: &mut [u8], word: u64) {
    if let Some(place) = bytes.first_chunk_mut() {
        *place = word.to_le_bytes();
    }
}

fn answer(name: u64, out: &mut [u8]) {
    for (at, chunk) in out.chunks_mut(WORD).enumerate() {
        put_word(chunk, !name ^ at as u64);
    }
}

impl Bulky {
    pub(super) fn open(&mut self, options: &SessionOptions) -> Option<(Session, SessionOffer)> {
        let session = self.rpc.open(options).ok()?;
        self.rpc.app_mut().session = session;
        Some((session, self.rpc.offer_of(session)?))
    }

    pub(super) fn accept(&mut self, peer: PeerId, offer: &SessionOffer) -> Option<SessionOffer> {
        Some(self.rpc.accept(peer, offer).ok()?.1)
    }

    pub(super) fn opened(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
    ) -> Option<()> {
        self.rpc.opened(session, peer, answer).ok()
    }

    /// Sends the first requests.
    pub(super) fn begin(&mut self, bulk: &Bulk) {
        let (app, mut cx) = self.rpc.with();
        for _ in 0..bulk.in_flight {
            app.send_next(&mut cx);
        }
    }

    /// Requests that have not ended.
    pub(super) fn left(&self) -> u32 {
        let app = self.rpc.app();
        app.bulk.requests - app.ended
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.rpc.app().failure.clone()
    }

    /// When the last request ended, and packets sent again.
    pub(super) fn result(&self) -> (Nanos, u64) {
        (self.rpc.app().last_end, self.rpc.counters().retransmissions)
    }
}

impl Node for Bulky {
    fn run_once(&mut self) {
        self.rpc.run_once();
    }

    fn next_wakeup(&mut self) -> Nanos {
        self.rpc.next_wakeup()
    }

    fn on_tick(&mut self) {}

    fn next_tick(&mut self) -> Nanos {
        Nanos::MAX
    }

    fn on_incoming(&mut self) -> Option<u64> {
        None
    }

    fn on_stream(&mut self, _event: StreamEvent) {}

    fn on_exit(&mut self) {}

    fn take_requests(&mut self, _out: &mut Vec<StreamRequest>) {}
}
