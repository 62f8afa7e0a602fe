//! RPCs as futures between two endpoints over shared memory, in one thread and with a clock that
//! only counts, so that every run executes the same instructions. `cargo xtask budget` runs it
//! under callgrind. The messages are the same as in `shm_rpc`, which uses the poll API.
//!
//! ```text
//! cargo run --release -p dunlin-local --example async_rpc -- \
//!     32 [IN_FLIGHT] [SESSIONS] [COUNT] [joined]
//! ```
//!
//! Messages have 32 bytes each way. The client has a task for each request in flight, or with
//! `joined` one task for all, in which `join_all` polls a future for each. The server has a future
//! for each request. The last printed line is the number of counted RPCs.

#[path = "../../transport/examples/rpc/message.rs"]
mod message;

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;

use dunlin_core::{Session, SessionOptions};
use dunlin_local::{Bare, Caller, Tasks};
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::instructions::{Ticks, argument, count, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options, Shm};
use dunlin_wire::ReqType;
use futures::FutureExt;
use futures::future::join_all;

use message::{answer_with, ask, check, sum_of};

const SUM: ReqType = ReqType(1);

/// Bytes of a message.
const SIZE: usize = 32;

/// RPCs that are not counted, in which pools and rings fill.
const WARM_UP: u64 = 2000;

/// State that the futures of the client share.
#[derive(Default)]
struct Client {
    /// First number in the next request.
    next: Cell<u64>,
    completed: Cell<u64>,
}

type Face = Bare<Shm, Ticks>;

fn main() {
    assert_eq!(argument(0, 32), 32, "messages have 32 bytes");
    let in_flight = usize::try_from(argument(1, 32)).expect("few");
    let sessions = usize::try_from(argument(2, 4)).expect("few");
    let (mut client, mut server, sessions) = connected(in_flight, sessions);
    server.serve(SUM, |request, _| async move {
        let sum = sum_of::<SIZE>(request.data());
        request.reply_with(SIZE, |out| answer_with::<SIZE>(out, sum))
    });
    let state = Rc::new(Client::default());
    let cx = client.caller();
    let calls = (0..in_flight).map(|slot| {
        let session = sessions[slot % sessions.len()];
        let bufs = [(); 2].map(|()| client.endpoint().buf(SIZE).expect("there is memory"));
        one_at_a_time(cx.clone(), session, bufs, Rc::clone(&state))
    });
    match std::env::args().any(|argument| argument == "joined") {
        true => cx.spawn(join_all(calls.collect::<Vec<_>>()).map(drop)),
        false => calls.for_each(|calls| cx.spawn(calls)),
    }
    let done = count(WARM_UP, argument(3, 100_000), || {
        client_turn(&mut client);
        server_turn(&mut server);
        state.completed.get()
    });
    assert_eq!(client.endpoint().counters().retransmissions, 0);
    println!("{done}");
}

/// The client's work for the requests in flight: takes the responses, sends the next requests.
#[inline(never)]
fn client_turn(client: &mut Face) {
    // The compiler merges functions that are alike. This call makes the two different, and compiles
    // to no instruction.
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

fn connected(in_flight: usize, sessions: usize) -> (Face, Face, Vec<Session>) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(Options::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    let tasks = |halves, seed| endpoint(Tasks::default(), Ticks::default(), halves, seed);
    let (mut client, mut server) = (tasks(near, 1), tasks(far, 2));
    // No call waits for a slot: each session has room for all of its calls.
    let room = u32::try_from(in_flight / sessions).expect("few");
    let window = SessionOptions::DEFAULT.window.max(room);
    let options = SessionOptions::DEFAULT.with_window(window);
    let peers = [to_far, to_near];
    let open = |_| connect(&mut client, &mut server, peers, &options)[0];
    let sessions = (0..sessions).map(open).collect();
    (Bare::new(client), Bare::new(server), sessions)
}
