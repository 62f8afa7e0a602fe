//! What the endpoint itself costs: two endpoints in one thread over two buffers in memory.
//!
//! ```sh
//! cargo run --release -p dunlin-core --example loopback            # nanoseconds per RPC
//! valgrind --tool=callgrind target/release/examples/loopback 10000 # instructions
//! ```
//! The difference between two runs of different length is free of set-up.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use dunlin_core::transport::{
    Frame, Halves, Limits, PeerId, RX_BURST, Rx, Transport, Tx, TxItem, TxSeq,
};
use dunlin_core::{Clock, Config, Nanos, Rpc, Session, SessionOptions, Tag};
use dunlin_wire::ReqType;

const ECHO: ReqType = ReqType(1);
const FRAME: usize = 64;

/// Frames of at most 64 bytes, in the order in which they were written.
#[derive(Default)]
struct Buffer {
    frames: Vec<([u8; FRAME], usize)>,
}

type Shared = Rc<RefCell<Buffer>>;

struct Memory;

impl Transport for Memory {
    type Rx = MemoryRx;
    type Tx = MemoryTx;
}

struct MemoryRx {
    from: Shared,
    burst: Vec<([u8; FRAME], usize)>,
}

impl Rx for MemoryRx {
    fn burst(&mut self) -> usize {
        let mut from = self.from.borrow_mut();
        let count = from.frames.len().min(RX_BURST);
        self.burst.clear();
        self.burst.extend(from.frames.drain(..count));
        count
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let (bytes, len) = &self.burst[index];
        Frame {
            bytes: &bytes[..*len],
            congestion: false,
        }
    }
}

struct MemoryTx {
    to: Shared,
    sent: u64,
    scratch: Vec<u8>,
}

impl Tx for MemoryTx {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        let mut to = self.to.borrow_mut();
        for item in items {
            self.scratch.clear();
            self.scratch
                .extend_from_slice(&item.inline[..item.inline_len as usize]);
            dunlin_msgbuf::regions::read(item.data, &mut self.scratch).expect("it is lent");
            let mut frame = [0; FRAME];
            frame[..self.scratch.len()].copy_from_slice(&self.scratch);
            to.frames.push((frame, self.scratch.len()));
        }
        self.sent += items.len() as u64;
        TxSeq(self.sent)
    }

    fn done(&mut self) -> TxSeq {
        TxSeq(self.sent)
    }

    fn flush(&mut self) {}
}

/// A clock that costs nothing, so that what is counted is the endpoint.
struct Steps(u64);

impl Clock for Steps {
    fn now(&mut self) -> Nanos {
        self.0 += 50;
        Nanos(self.0)
    }
}

#[derive(Default)]
struct App {
    next: Option<Session>,
    left: u64,
    sum: u64,
}

type Endpoint = Rpc<Memory, Steps, App>;

fn endpoint(from: &Shared, to: &Shared, seed: u64) -> Endpoint {
    let halves = Halves {
        rx: MemoryRx {
            from: Rc::clone(from),
            burst: Vec::with_capacity(RX_BURST),
        },
        tx: MemoryTx {
            to: Rc::clone(to),
            sent: 0,
            scratch: Vec::with_capacity(FRAME),
        },
        limits: Limits {
            data_size: 1024,
            rx_queue: 4096,
            line_rate: 1 << 33,
        },
    };
    let config = Config {
        readable_buffers: true,
        ..Config::default()
    };
    let mut rpc: Endpoint = Rpc::new(App::default(), Steps(0), halves, config, seed, None)
        .expect("the default configuration is valid");
    rpc.on(ECHO, |app, req, cx| {
        let data = req.data();
        app.sum = app.sum.wrapping_add(u64::from(data[0]));
        req.reply(cx, data.len(), |out| out.copy_from_slice(data));
    });
    rpc.on_completion(|app, mut done, cx| {
        app.sum = app.sum.wrapping_add(u64::from(done.response.data()[0]));
        if app.left == 0 {
            return cx.recycle([done.request, done.response]);
        }
        app.left -= 1;
        done.request.data_mut()[0] = app.left.to_le_bytes()[0];
        let session = app.next.expect("set before the first call");
        cx.call(session, ECHO, done.request, done.response, Tag(app.left))
            .expect("a completion has freed a slot");
    });
    rpc
}

fn main() {
    let count: u64 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000_000);
    let in_flight: u64 = std::env::args()
        .nth(2)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    let (there, back) = (Shared::default(), Shared::default());
    let mut client = endpoint(&back, &there, 1);
    let mut server = endpoint(&there, &back, 2);
    let session = client
        .open(&SessionOptions::default())
        .expect("there is room for one");
    let offer = client.offer_of(session).expect("it was just opened");
    let (_, answer) = server
        .accept(PeerId(0), &offer)
        .expect("the offer is valid");
    client
        .opened(session, PeerId(0), &answer)
        .expect("the answer fits");
    client.app_mut().next = Some(session);
    client.app_mut().left = count;
    for tag in 0..in_flight {
        let request = client.buf(32).expect("a new pool has room");
        let response = client.buf(32).expect("a new pool has room");
        client
            .call(session, ECHO, request, response, Tag(tag))
            .expect("a new session has slots");
    }
    let start = Instant::now();
    while client.counters().completions < count {
        client.run_once();
        server.run_once();
    }
    let ns = start.elapsed().as_secs_f64() * 1e9 / count as f64;
    println!("{count} RPCs of 32 bytes, {in_flight} in flight: {ns:.0} ns for both sides");
}
