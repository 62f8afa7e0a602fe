//! RPCs of 32 bytes each way between two endpoints over shared memory, in one thread and with a
//! clock that only counts, so that every run executes the same instructions. `cargo xtask budget`
//! runs it under callgrind and holds it against `budget.toml`.
//!
//! ```text
//! cargo run --release -p dunlin-transport --example shm_rpc -- [one|batch] [RPCS]
//! ```
//!
//! `one` keeps one request in flight, `batch` 32 on four sessions. The client writes a fresh number
//! into each request, the server reads the whole request and answers a function of it, the client
//! checks each response.

use dunlin_core::transport::{Halves, PeerId};
use dunlin_core::{Clock, Config, Cx, Done, Nanos, Request, Rpc, Session, SessionOptions, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::shm::{Options, Shm, ShmRx, ShmTx};
use dunlin_wire::ReqType;

const SUM: ReqType = ReqType(1);
/// Bytes of a request and of a response.
const SIZE: usize = 32;
/// Numbers in one.
const WORDS: usize = SIZE / 8;
/// Requests in flight in the mode `batch`, and the sessions that share them.
const BATCH: usize = 32;
const SESSIONS: usize = 4;

/// Time goes on by this much whenever somebody asks.
const TICK: Nanos = Nanos(100);

struct Ticks(Nanos);

impl Clock for Ticks {
    #[inline]
    fn now(&mut self) -> Nanos {
        self.0 += TICK;
        self.0
    }
}

#[derive(Default)]
struct Client {
    /// Number in the next request.
    next: u64,
    completed: u64,
}

type End = (Halves<ShmRx, ShmTx>, PeerId);
type ClientRpc = Rpc<Shm, Ticks, Client>;
type ServerRpc = Rpc<Shm, Ticks, ()>;

fn main() {
    let mut args = std::env::args().skip(1);
    let in_flight = match args.next().as_deref() {
        None | Some("one") => 1,
        Some("batch") => BATCH,
        Some(other) => panic!("the mode is one or batch, not {other}"),
    };
    let rpcs = args
        .next()
        .map_or(100_000, |n| n.parse().expect("RPCS is a number"));
    let (mut client, mut server, sessions) = connected();
    for slot in 0..in_flight {
        let session = sessions[slot % sessions.len()];
        let bufs = [(); 2].map(|()| client.buf(SIZE).expect("there is memory"));
        let (app, mut cx) = client.with();
        call(app, session, bufs, &mut cx);
    }
    while client.app().completed < rpcs {
        client_turn(&mut client);
        server_turn(&mut server);
    }
    assert_eq!(client.counters().retransmissions, 0);
    println!("{rpcs} RPCs, {in_flight} in flight");
}

/// What the client does for the requests in flight: takes the responses, sends the next requests.
#[inline(never)]
fn client_turn(client: &mut ClientRpc) {
    client.run_once();
}

/// What the server does for them: takes the requests, sends the responses.
#[inline(never)]
fn server_turn(server: &mut ServerRpc) {
    server.run_once();
}

fn connected() -> (ClientRpc, ServerRpc, Vec<Session>) {
    let ((here, to_server), (there, to_client)) = ends();
    let config = Config {
        hugepages: false,
        ..Config::default()
    };
    let clock = || Ticks(Nanos::ZERO);
    let mut client = Rpc::new(Client::default(), clock(), here, config.clone(), 1, None)
        .expect("the options are in range");
    let mut server =
        Rpc::new((), clock(), there, config, 2, None).expect("the options are in range");
    server.on(SUM, answer);
    client.on_completion(complete);
    let open = |_| {
        let session = client
            .lifecycle()
            .open(&SessionOptions::default())
            .expect("there is room");
        let offer = client.lifecycle().offer_of(session).expect("it is opening");
        let (_, answer) = server
            .lifecycle()
            .accept(to_client, &offer)
            .expect("a good offer");
        client
            .lifecycle()
            .opened(session, to_server, &answer)
            .expect("a good answer");
        session
    };
    let sessions = (0..SESSIONS).map(open).collect();
    (client, server, sessions)
}

/// Two ends of a channel as two processes have them.
fn ends() -> (End, End) {
    let open = || Shm::open(Options::default()).expect("shared memory");
    let (mut a, mut b) = (open(), open());
    let info = |uid| PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host: true,
        same_process: false,
        local: None,
    };
    let (pending, offer) = Shm::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (to_a, answer) = Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("a good offer");
    let to_b = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("a good answer");
    ((a, to_b), (b, to_a))
}

fn call(app: &mut Client, session: Session, bufs: [MsgBuf; 2], cx: &mut Cx<'_>) {
    let [mut request, response] = bufs;
    let first = app.next;
    write([first, first + 1, first + 2, first + 3], request.data_mut());
    cx.call(session, SUM, request, response, Tag(app.next))
        .expect("a slot is free");
    app.next += 1;
}

fn complete(app: &mut Client, done: Done, cx: &mut Cx<'_>) {
    assert_eq!(done.result, Ok(()));
    let sum = 4 * done.tag.0 + 6;
    assert!(
        words(done.response.data()) == [sum; WORDS],
        "a response is wrong"
    );
    app.completed += 1;
    call(app, done.session, [done.request, done.response], cx);
}

fn answer(_: &mut (), request: Request<'_>, cx: &mut Cx<'_>) {
    let [a, b, c, d] = words(request.data());
    let sum = a.wrapping_add(b).wrapping_add(c).wrapping_add(d);
    request.reply(cx, SIZE, |out| write([sum; WORDS], out));
}

/// The message as numbers. It has no alignment.
#[inline]
fn words(bytes: &[u8]) -> [u64; WORDS] {
    let (words, _) = bytes
        .first_chunk::<SIZE>()
        .expect("messages have 32 bytes")
        .as_chunks();
    [0, 1, 2, 3].map(|at: usize| u64::from_le_bytes(words[at]))
}

#[inline]
fn write(words: [u64; WORDS], out: &mut [u8]) {
    let (chunks, _) = out.as_chunks_mut();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
}
