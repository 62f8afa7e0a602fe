//! The two processes of the experiment. One sends large requests, one after another, and perhaps
//! small ones at the same time; the other reads and answers them.
//!
//! Invariant: the first failure is kept. Called by `bulk` and by the world.

use dunlin_core::{CallOptions, Config, Cx, Done, Nanos, Request, Session, Tag};
use dunlin_wire::{ErrorCode, ReqType};

use super::Bulk;
use crate::scenario::{CHECK, session::Process};
use crate::world::net::{NetHandle, SimEndpoint, SimTransport};
use crate::world::{Cluster, Node, ProcessId};

const BULK: ReqType = ReqType(1);
const SMALL: ReqType = ReqType(2);
/// Tag of small requests; the tag of a large request is its name.
const SMALL_TAG: Tag = Tag(u64::MAX);
/// Bytes of a small request and of its response.
const SMALL_LEN: usize = 32;
/// Bytes of a stamp, and of the name of a request.
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
    rpc: SimEndpoint<App>,
}

pub(in crate::scenario) struct App {
    bulk: Bulk,
    session: Session,
    /// Requests begun and ended.
    begun: u32,
    ended: u32,
    last_end: Nanos,
    /// When the small request in flight was sent, and the round trips of the earlier ones.
    small_begun: Nanos,
    small_rtts: Vec<Nanos>,
    failure: Option<String>,
}

/// The result at the client.
pub(super) struct Ended {
    /// Large requests.
    pub(super) requests: u32,
    pub(super) last_end: Nanos,
    pub(super) small_rtt: [Nanos; 2],
    /// Packets sent again.
    pub(super) retransmissions: u64,
}

impl Cluster for Pair {
    type Node = Bulky;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Bulky {
        let app = App {
            bulk: self.0.clone(),
            session: Session::NONE,
            begun: 0,
            ended: 0,
            last_end: Nanos::ZERO,
            small_begun: Nanos::ZERO,
            small_rtts: Vec::new(),
            failure: None,
        };
        let seed = self.0.seed + process.port.0 as u64;
        let mut rpc = SimTransport::endpoint(net, process.port, app, config(), seed);
        rpc.on(BULK, on_bulk);
        rpc.on(SMALL, |_, req, cx| {
            let name = word(req.data()).unwrap_or(0);
            req.reply(cx, SMALL_LEN, |out| answer(name, out));
        });
        rpc.on_completion(on_completion);
        Bulky { rpc }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

/// Options with timeouts for a NIC instead of a kernel.
fn config() -> Config {
    Config {
        rto_floor: Nanos::from_micros(200),
        rto_initial: Nanos::from_millis(1),
        scan_interval: Nanos::from_micros(50),
        hugepages: false,
        readable_buffers: true,
        check: CHECK,
        ..Config::default()
    }
}

/// Reads the whole request and answers with a function of it.
fn on_bulk(app: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let Some(name) = word(req.data()).filter(|_| app.has_stamps(req.data())) else {
        app.fail("a request has other stamps than it was sent with");
        return req.reject(cx, ErrorCode::application(1));
    };
    let len = app.bulk.answer_bytes as usize;
    req.reply(cx, len, |out| answer(name, out));
}

fn on_completion(app: &mut App, done: Done, cx: &mut Cx<'_>) {
    let is_small = done.tag == SMALL_TAG;
    let (name, len) = match is_small {
        true => (app.small_rtts.len() as u64, SMALL_LEN),
        false => (done.tag.0, app.bulk.answer_bytes as usize),
    };
    if let Err(why) = done.result {
        app.fail(&format!("a request failed: {why:?}"));
    } else if done.response.len() != len || !is_answer(name, done.response.data()) {
        app.fail("a response belongs to another request");
    }
    cx.recycle([done.request, done.response]);
    app.last_end = cx.now();
    if is_small {
        app.small_rtts.push(cx.now().since(app.small_begun));
        app.send_small(cx);
    } else {
        app.ended += 1;
        app.send_next(cx);
    }
}

impl App {
    fn fail(&mut self, what: &str) {
        self.failure.get_or_insert_with(|| what.to_owned());
    }

    /// The number of small requests that have not ended.
    fn small_left(&self) -> u32 {
        let ended = u32::try_from(self.small_rtts.len()).unwrap_or(u32::MAX);
        self.bulk.small_requests.saturating_sub(ended)
    }

    /// Sends another small request, if one is left.
    fn send_small(&mut self, cx: &mut Cx<'_>) {
        if self.small_left() == 0 {
            return;
        }
        let (Ok(mut request), Ok(response)) = (cx.buf(SMALL_LEN), cx.buf(SMALL_LEN)) else {
            return self.fail("no memory");
        };
        put_word(request.data_mut(), self.small_rtts.len() as u64);
        self.small_begun = cx.now();
        if let Err(refused) = cx.call(self.session, SMALL, request, response, SMALL_TAG) {
            self.fail(&format!("a request is refused: {:?}", refused.kind));
        }
    }

    /// Sends another large request, if one is left. Also sends one while small ones are left,
    /// because small requests must never run without large ones.
    fn send_next(&mut self, cx: &mut Cx<'_>) {
        let alone = self.bulk.requests == 0 || self.small_left() == 0;
        if self.begun >= self.bulk.requests && alone {
            return;
        }
        let name = u64::from(self.begun);
        self.begun += 1;
        let (size, room) = (self.bulk.request_bytes, self.bulk.answer_bytes);
        let bufs = (cx.buf(size as usize), cx.buf(room as usize));
        let (Ok(mut request), Ok(response)) = bufs else {
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

    /// Whether every packet's data has its stamp. The first packet has the request's name instead.
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

fn is_answer(name: u64, bytes: &[u8]) -> bool {
    let is_right = |(at, chunk)| word(chunk).is_none_or(|word| word == !name ^ at as u64);
    bytes.chunks(WORD).enumerate().all(is_right)
}

impl Process for Bulky {
    type App = App;

    fn rpc(&mut self) -> &mut SimEndpoint<App> {
        &mut self.rpc
    }
}

impl Bulky {
    /// Sends the first requests.
    pub(super) fn begin(&mut self, session: Session, bulk: &Bulk) {
        let (app, mut cx) = self.rpc.with();
        app.session = session;
        for _ in 0..bulk.in_flight {
            app.send_next(&mut cx);
        }
        app.send_small(&mut cx);
    }

    /// The number of requests that have not ended.
    pub(super) fn left(&self) -> u32 {
        let app = self.rpc.app();
        app.bulk.requests.max(app.begun) - app.ended + app.small_left()
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.rpc.app().failure.clone()
    }

    pub(super) fn result(&self) -> Ended {
        let app = self.rpc.app();
        let mut rtts = app.small_rtts.clone();
        rtts.sort_unstable();
        let percentile = |percent| rtts.get(rtts.len() * percent / 100).copied();
        Ended {
            requests: app.ended,
            last_end: app.last_end,
            small_rtt: [50, 99].map(|percent| percentile(percent).unwrap_or_default()),
            retransmissions: self.rpc.counters().retransmissions,
        }
    }
}

impl Node for Bulky {
    fn run_once(&mut self) {
        self.rpc.run_once();
    }

    fn next_wakeup(&mut self) -> Nanos {
        self.rpc.next_wakeup()
    }
}
