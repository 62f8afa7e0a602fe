//! RPCs as futures between two endpoints over shared memory, in one thread and with a clock that
//! only counts, so that every run executes the same instructions. `cargo xtask budget` runs it
//! under callgrind. The messages are those of `shm_rpc`, which does the same on the poll API.
//!
//! ```text
//! cargo run --release -p dunlin-local --example async_rpc -- 32 [IN_FLIGHT] [SESSIONS] [COUNT]
//! ```
//!
//! Messages have 32 bytes each way. The client has a task for each request in flight, and the
//! server a future for each request. The last printed line is the number of counted RPCs.

#[path = "../../transport/examples/rpc/message.rs"]
mod message;

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;

use dunlin_core::{Clock, Config, Endpoint, EndpointNum, Nanos, Session, SessionOptions};
use dunlin_local::{Bare, Caller, Tasks};
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::shm::{Options, Shm};
use dunlin_wire::ReqType;

use message::{answer_with, ask, check, sum_of};

const SUM: ReqType = ReqType(1);

/// Bytes of a message.
const SIZE: usize = 32;

/// RPCs that are not counted, in which pools and rings fill.
const WARM_UP: u64 = 2000;

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

/// The amount of work.
struct Plan {
    in_flight: usize,
    sessions: usize,
    count: u64,
}

/// State that the futures of the client share.
#[derive(Default)]
struct Client {
    /// First number in the next request.
    next: Cell<u64>,
    completed: Cell<u64>,
}

type Face = Bare<Shm, Ticks>;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        let text = args.get(at);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    assert_eq!(number(0, 32), 32, "messages have 32 bytes");
    let plan = Plan {
        in_flight: usize::try_from(number(1, 32)).expect("few"),
        sessions: usize::try_from(number(2, 4)).expect("few"),
        count: number(3, 100_000),
    };
    let (mut client, mut server, sessions) = connected(&plan);
    server.serve(SUM, |request, _| async move {
        let sum = sum_of::<SIZE>(request.data());
        request.reply_with(SIZE, |out| answer_with::<SIZE>(out, sum))
    });
    let state = Rc::new(Client::default());
    for slot in 0..plan.in_flight {
        let session = sessions[slot % sessions.len()];
        let bufs = [(); 2].map(|()| client.endpoint().buf(SIZE).expect("there is memory"));
        let cx = client.caller();
        let calls = one_at_a_time(cx.clone(), session, bufs, Rc::clone(&state));
        cx.spawn(calls);
    }
    exchange(&mut client, &mut server, &state, WARM_UP);
    let done = counted(|| exchange(&mut client, &mut server, &state, plan.count));
    assert_eq!(client.endpoint().counters().retransmissions, 0);
    println!("{done}");
}

/// Runs the counted part.
#[inline(never)]
fn counted(work: impl FnOnce() -> u64) -> u64 {
    work()
}

/// Takes turns until at least `rpcs` more are complete; returns their number.
fn exchange(client: &mut Face, server: &mut Face, state: &Client, rpcs: u64) -> u64 {
    let begin = state.completed.get();
    // One RPC takes a turn or two. Without this limit, the program would wait for a lost call for
    // ever.
    for _ in 0..10 * (rpcs + WARM_UP) {
        client_turn(client);
        server_turn(server);
        let done = state.completed.get() - begin;
        if done >= rpcs {
            return done;
        }
    }
    panic!("{rpcs} RPCs do not complete");
}

/// The client's work for the requests in flight: takes the responses, sends the next requests.
#[inline(never)]
fn client_turn(client: &mut Face) {
    // The compiler merges functions that are alike, so the two differ, in a place that takes no
    // instruction.
    black_box(());
    client.turn();
}

/// The server's work for the requests in flight: takes the requests, sends the responses.
#[inline(never)]
fn server_turn(server: &mut Face) {
    server.turn();
}

/// Issues one request after another.
async fn one_at_a_time(
    cx: Caller,
    session: Session,
    [mut request, mut response]: [MsgBuf; 2],
    state: Rc<Client>,
) {
    loop {
        let first = state.next.get();
        state.next.set(first + 1);
        ask::<SIZE>(request.data_mut(), first);
        let called = cx.call(session, SUM, request).response(response).await;
        let reply = called.expect("the server answers");
        check::<SIZE>(reply.data(), first);
        state.completed.set(state.completed.get() + 1);
        (request, response) = reply.into_bufs();
    }
}

fn connected(plan: &Plan) -> (Face, Face, Vec<Session>) {
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
    let (to_client, answer) =
        Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("a good offer");
    let to_server = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("a good answer");
    let endpoint = |halves, seed| {
        let config = Config {
            hugepages: false,
            ..Config::default()
        };
        let number = EndpointNum::take().expect("they are the first");
        let clock = Ticks(Nanos::ZERO);
        Endpoint::new(Tasks::default(), clock, halves, config, seed, None, number)
            .expect("the options are in range")
    };
    let (mut client, mut server) = (endpoint(a, 1), endpoint(b, 2));
    // No call waits for a slot: each session has room for all of its calls.
    let room = u32::try_from(plan.in_flight / plan.sessions).expect("few");
    let window = SessionOptions::DEFAULT.window.max(room);
    let options = SessionOptions::DEFAULT.with_window(window);
    let peers = [to_server, to_client];
    let open = |_| connect(&mut client, &mut server, peers, &options)[0];
    let sessions = (0..plan.sessions).map(open).collect();
    (Bare::new(client), Bare::new(server), sessions)
}
