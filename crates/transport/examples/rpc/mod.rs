//! The work of the programs whose instructions `cargo xtask budget` counts: a client and a server,
//! over the transport that the program chooses.
//!
//! The client's part is in [`client_turn`], the server's in [`server_turn`].

#[path = "message.rs"]
mod message;

use dunlin_core::transport::{Halves, PeerId, Transport};
use dunlin_core::{CallOptions, Cx, Done, Endpoint, Nanos, Request, Session, SessionOptions, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::instructions::{Ticks, count, counted, endpoint, exchange};
use dunlin_testkit::session::connect;
use dunlin_wire::ReqType;

use message::{answer_with, ask, check, sum_of};

const SUM: ReqType = ReqType(1);

/// RPCs before counting begins, in which pools and rings fill.
const WARM_UP: u64 = 2000;

/// A deadline far beyond the end of the run.
const AFTER: Nanos = Nanos::from_secs(10);

#[derive(Default)]
struct Client {
    /// First number in the next request.
    next: u64,
    completed: u64,
}

/// Both halves of an endpoint's transport, and the [`PeerId`] under which it knows the other side.
pub(crate) type End<T> = (Halves<<T as Transport>::Rx, <T as Transport>::Tx>, PeerId);
type ClientRpc<T> = Endpoint<T, Ticks, Client>;
type ServerRpc<T> = Endpoint<T, Ticks, ()>;

/// The amount of work.
pub(crate) struct Plan {
    pub(crate) in_flight: usize,
    pub(crate) sessions: usize,
    pub(crate) count: u64,
}

/// Runs a client and a server at these ends with messages of `SIZE` bytes; returns the number of
/// counted RPCs or iterations.
pub(crate) fn run<A, B, const SIZE: usize, const DEADLINE: bool>(
    plan: &Plan,
    ends: (End<A>, End<B>),
) -> u64
where
    A: Transport,
    B: Transport,
{
    let (mut client, mut server, sessions) = connected::<A, B, SIZE, DEADLINE>(plan, ends);
    for slot in 0..plan.in_flight.max(1) {
        let session = sessions[slot % sessions.len()];
        let bufs = [(); 2].map(|()| client.buf(SIZE).expect("there is memory"));
        let (app, mut cx) = client.with();
        call::<SIZE, DEADLINE>(app, session, bufs, &mut cx);
    }
    if plan.in_flight == 0 {
        let begin = exchange(0, WARM_UP, || turns(&mut client, &mut server));
        client.on_completion(|app, _, _| app.completed += 1);
        exchange(begin, 1, || turns(&mut client, &mut server));
        idle(&mut client, &mut server, WARM_UP);
        return counted(|| idle(&mut client, &mut server, plan.count));
    }
    let done = count(WARM_UP, plan.count, || turns(&mut client, &mut server));
    assert_eq!(client.counters().retransmissions, 0);
    done
}

/// Lets each side take a turn; returns the number of complete RPCs.
fn turns<A: Transport, B: Transport>(client: &mut ClientRpc<A>, server: &mut ServerRpc<B>) -> u64 {
    client_turn(client);
    server_turn(server);
    client.app().completed
}

/// Takes turns in which no packet comes; returns their number.
fn idle<A: Transport, B: Transport>(
    client: &mut ClientRpc<A>,
    server: &mut ServerRpc<B>,
    turns: u64,
) -> u64 {
    for _ in 0..turns {
        client_turn(client);
        server_turn(server);
    }
    turns
}

/// The client's work for the requests in flight: takes the responses, sends the next requests.
#[inline(never)]
fn client_turn<T: Transport>(client: &mut ClientRpc<T>) {
    client.run_once();
}

/// The server's work for the requests in flight: takes the requests, sends the responses.
#[inline(never)]
fn server_turn<T: Transport>(server: &mut ServerRpc<T>) {
    server.run_once();
}

fn connected<A: Transport, B: Transport, const SIZE: usize, const DEADLINE: bool>(
    plan: &Plan,
    ((here, to_server), (there, to_client)): (End<A>, End<B>),
) -> (ClientRpc<A>, ServerRpc<B>, Vec<Session>) {
    let mut client = endpoint(Client::default(), Ticks::default(), here, 1);
    let mut server = endpoint((), Ticks::default(), there, 2);
    server.on(SUM, answer::<SIZE>);
    client.on_completion(complete::<SIZE, DEADLINE>);
    // No call waits for a slot: each session has room for all of its calls.
    let room = u32::try_from(plan.in_flight / plan.sessions).expect("few");
    let window = SessionOptions::DEFAULT.window.max(room);
    let options = SessionOptions::DEFAULT.with_window(window);
    let peers = [to_server, to_client];
    let open = |_| connect(&mut client, &mut server, peers, &options)[0];
    let sessions = (0..plan.sessions).map(open).collect();
    (client, server, sessions)
}

fn call<const SIZE: usize, const DEADLINE: bool>(
    app: &mut Client,
    session: Session,
    bufs: [MsgBuf; 2],
    cx: &mut Cx<'_>,
) {
    let [mut request, response] = bufs;
    let first = app.next;
    ask::<SIZE>(request.data_mut(), first);
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
    check::<SIZE>(done.response.data(), first);
    app.completed += 1;
    call::<SIZE, DEADLINE>(app, done.session, [done.request, done.response], cx);
}

fn answer<const SIZE: usize>(_: &mut (), request: Request<'_>, cx: &mut Cx<'_>) {
    let sum = sum_of::<SIZE>(request.data());
    request.reply(cx, SIZE, |out| answer_with::<SIZE>(out, sum));
}
