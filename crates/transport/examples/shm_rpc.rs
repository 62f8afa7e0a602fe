//! RPCs between two endpoints over shared memory, in one thread and with a clock that only counts,
//! so that every run executes the same instructions. `cargo xtask budget` runs it under callgrind
//! and compares it with `budget.toml`; `xtask/outside` builds it as a program outside the
//! workspace.
//!
//! ```text
//! cargo run --release -p dunlin-transport --example shm_rpc -- \
//!     [SIZE] [IN_FLIGHT] [SESSIONS] [COUNT] [deadline]
//! ```
//!
//! `SIZE` is 8, 32, 56, 200 or 1000 bytes each way, or 32 with a deadline on every call. If
//! `IN_FLIGHT` is 0, the program counts `COUNT` idle iterations of each endpoint; otherwise `COUNT`
//! RPCs. The counted part is [`counted`]: the client's part in [`client_turn`], the server's in
//! [`server_turn`]. The last printed line is the number of counted RPCs or iterations.
//!
//! The client writes fresh numbers to the beginning of each request, and one to its end if it is
//! longer; the server reads them and writes their sum to the same places of the response, where the
//! client checks it. The program itself therefore does the same work for 32 bytes and for 1000.

use dunlin_core::transport::{Halves, PeerId};
use dunlin_core::{
    CallOptions, Clock, Config, Cx, Done, Endpoint, EndpointNum, Nanos, Request, Session,
    SessionOptions, Tag,
};
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::shm::{Options, Shm, ShmRx, ShmTx};
use dunlin_wire::ReqType;

const SUM: ReqType = ReqType(1);

/// Numbers at the beginning of a message that the program writes and reads.
const FIRST: usize = 4;

/// RPCs that are not counted, in which pools and rings fill.
const WARM_UP: u64 = 2000;

/// A deadline far beyond the end of the run.
const AFTER: Nanos = Nanos::from_secs(10);

/// Each reading of the clock advances it by this much.
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
    /// First number in the next request.
    next: u64,
    completed: u64,
}

type End = (Halves<ShmRx, ShmTx>, PeerId);
type ClientRpc = Endpoint<Shm, Ticks, Client>;
type ServerRpc = Endpoint<Shm, Ticks, ()>;

struct Plan {
    in_flight: usize,
    sessions: usize,
    count: u64,
}

pub(crate) fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        let text = args.get(at);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let plan = Plan {
        in_flight: usize::try_from(number(1, 1)).expect("few"),
        sessions: usize::try_from(number(2, 4)).expect("few"),
        count: number(3, 100_000),
    };
    let counted = match (number(0, 32), args.get(4).map(String::as_str)) {
        (8, None) => run::<8, false>(&plan),
        (32, None) => run::<32, false>(&plan),
        (32, Some("deadline")) => run::<32, true>(&plan),
        (56, None) => run::<56, false>(&plan),
        (200, None) => run::<200, false>(&plan),
        (1000, None) => run::<1000, false>(&plan),
        other => panic!("{other:?}: not one of the lengths 8, 32, 56, 200 and 1000"),
    };
    println!("{counted}");
}

/// Runs with messages of `SIZE` bytes; returns the number of counted RPCs or iterations.
fn run<const SIZE: usize, const DEADLINE: bool>(plan: &Plan) -> u64 {
    let (mut client, mut server, sessions) = connected::<SIZE, DEADLINE>(plan);
    for slot in 0..plan.in_flight.max(1) {
        let session = sessions[slot % sessions.len()];
        let bufs = [(); 2].map(|()| client.buf(SIZE).expect("there is memory"));
        let (app, mut cx) = client.with();
        call::<SIZE, DEADLINE>(app, session, bufs, &mut cx);
    }
    exchange(&mut client, &mut server, WARM_UP);
    if plan.in_flight == 0 {
        client.on_completion(|app, _, _| app.completed += 1);
        exchange(&mut client, &mut server, 1);
        idle(&mut client, &mut server, WARM_UP);
        return counted(|| idle(&mut client, &mut server, plan.count));
    }
    let done = counted(|| exchange(&mut client, &mut server, plan.count));
    assert_eq!(client.counters().retransmissions, 0);
    done
}

/// Runs the counted part.
#[inline(never)]
fn counted(work: impl FnOnce() -> u64) -> u64 {
    work()
}

/// Takes turns until at least `rpcs` more are complete; returns their number.
fn exchange(client: &mut ClientRpc, server: &mut ServerRpc, rpcs: u64) -> u64 {
    let begin = client.app().completed;
    // One RPC takes a turn or two. Without this limit, the program would wait for a lost call for
    // ever.
    for _ in 0..10 * (rpcs + WARM_UP) {
        client_turn(client);
        server_turn(server);
        let done = client.app().completed - begin;
        if done >= rpcs {
            return done;
        }
    }
    panic!("{rpcs} RPCs do not complete");
}

/// Takes turns in which no packet comes; returns their number.
fn idle(client: &mut ClientRpc, server: &mut ServerRpc, turns: u64) -> u64 {
    for _ in 0..turns {
        client_turn(client);
        server_turn(server);
    }
    turns
}

/// The client's work for the requests in flight: takes the responses, sends the next requests.
#[inline(never)]
fn client_turn(client: &mut ClientRpc) {
    client.run_once();
}

/// The server's work for the requests in flight: takes the requests, sends the responses.
#[inline(never)]
fn server_turn(server: &mut ServerRpc) {
    server.run_once();
}

fn connected<const SIZE: usize, const DEADLINE: bool>(
    plan: &Plan,
) -> (ClientRpc, ServerRpc, Vec<Session>) {
    let ((here, to_server), (there, to_client)) = ends();
    let config = Config {
        hugepages: false,
        ..Config::default()
    };
    let clock = || Ticks(Nanos::ZERO);
    let number = || EndpointNum::take().expect("they are the first");
    let app = Client::default();
    let mut client = Endpoint::new(app, clock(), here, config.clone(), 1, None, number())
        .expect("the options are in range");
    let mut server = Endpoint::new((), clock(), there, config, 2, None, number())
        .expect("the options are in range");
    server.on(SUM, answer::<SIZE>);
    client.on_completion(complete::<SIZE, DEADLINE>);
    // No call waits for a slot: each session has room for all of its calls.
    let room = u32::try_from(plan.in_flight / plan.sessions).expect("few");
    let options = SessionOptions {
        window: SessionOptions::DEFAULT.window.max(room),
        ..SessionOptions::DEFAULT
    };
    let peers = [to_server, to_client];
    let open = |_| connect(&mut client, &mut server, peers, &options)[0];
    let sessions = (0..plan.sessions).map(open).collect();
    (client, server, sessions)
}

/// Two ends of a channel, like those of two processes.
fn ends() -> (End, End) {
    let open = || Shm::open(Options::default()).expect("shared memory");
    let (mut a, mut b) = (open(), open());
    let info = |uid| PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host: true,
        same_process: false,
        proves: true,
        local: None,
        remote: None,
    };
    let (pending, offer) = Shm::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (to_a, answer) = Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("a good offer");
    let to_b = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("a good answer");
    ((a, to_b), (b, to_a))
}

fn call<const SIZE: usize, const DEADLINE: bool>(
    app: &mut Client,
    session: Session,
    bufs: [MsgBuf; 2],
    cx: &mut Cx<'_>,
) {
    let [mut request, response] = bufs;
    let first = app.next;
    write::<SIZE>(request.data_mut(), |place| first + place);
    let options = CallOptions {
        deadline: DEADLINE.then_some(AFTER),
    };
    cx.call_with(session, SUM, request, response, Tag(first), options)
        .expect("a slot is free");
    app.next += 1;
}

fn complete<const SIZE: usize, const DEADLINE: bool>(
    app: &mut Client,
    done: Done,
    cx: &mut Cx<'_>,
) {
    assert_eq!(done.result, Ok(()));
    let first = done.tag.0;
    let sum: u64 = numbers::<SIZE>(|place| first + place).into_iter().sum();
    // Compares word by word, because on some processors a comparison of arrays calls `memcmp`.
    let answers = read::<SIZE>(done.response.data()).into_iter();
    let pairs = answers.zip(numbers::<SIZE>(|_| sum));
    let difference = pairs.fold(0, |all, (answer, right)| all | (answer ^ right));
    assert_eq!(difference, 0, "a response is wrong");
    app.completed += 1;
    call::<SIZE, DEADLINE>(app, done.session, [done.request, done.response], cx);
}

fn answer<const SIZE: usize>(_: &mut (), request: Request<'_>, cx: &mut Cx<'_>) {
    let sum = read::<SIZE>(request.data())
        .into_iter()
        .fold(0, u64::wrapping_add);
    request.reply(cx, SIZE, |out| write::<SIZE>(out, |_| sum));
}

/// A number for each place that the program writes and reads; 0 where a message of `SIZE` bytes has
/// none. Places are counted from 0; the last one is `FIRST`.
#[inline]
fn numbers<const SIZE: usize>(of: impl Fn(u64) -> u64) -> [u64; FIRST + 1] {
    let has = |place: usize| {
        if place < FIRST {
            SIZE / 8 > place
        } else {
            SIZE / 8 > FIRST
        }
    };
    std::array::from_fn(|place| if has(place) { of(place as u64) } else { 0 })
}

/// Reads the numbers of a message, which need not be aligned.
#[inline]
fn read<const SIZE: usize>(bytes: &[u8]) -> [u64; FIRST + 1] {
    let bytes = bytes
        .first_chunk::<SIZE>()
        .expect("messages have this length");
    let (words, _) = bytes.as_chunks();
    numbers::<SIZE>(|place| u64::from_le_bytes(words[at::<SIZE>(place)]))
}

#[inline]
fn write<const SIZE: usize>(out: &mut [u8], of: impl Fn(u64) -> u64) {
    let out = out
        .first_chunk_mut::<SIZE>()
        .expect("messages have this length");
    let (words, _) = out.as_chunks_mut();
    for place in 0..(FIRST as u64 + 1).min(SIZE as u64 / 8) {
        words[at::<SIZE>(place)] = of(place).to_le_bytes();
    }
}

/// The index of a place's number in a message of `SIZE` bytes, in words.
#[inline]
fn at<const SIZE: usize>(place: u64) -> usize {
    match usize::try_from(place) {
        Ok(place) if place < FIRST => place,
        _ => SIZE / 8 - 1,
    }
}
