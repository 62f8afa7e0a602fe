//! Requests of 8 MB between two endpoints of `dpdk` over two devices of net_ring, in one thread and
//! with a clock that only counts. `cargo xtask budget` runs it under callgrind, and compares the
//! cost of a packet, with the endpoints' part and without the driver, with `budget.toml`. It needs
//! DPDK and `libdunlin_dpdk.so`.
//!
//! ```text
//! cargo run --release -p dunlin-dpdk --example dpdk_large -- \
//!     [IN_FLIGHT] [PACKETS]
//! ```
//!
//! The last printed line is the number of counted packets.

#[path = "dpdk_rpc/crossed.rs"]
mod crossed;
#[path = "dpdk_rpc/ends.rs"]
mod ends;

use dunlin_core::{Cx, Done, Endpoint, Request, Session, SessionOptions, Tag};
use dunlin_dpdk::Dpdk;
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::instructions::{Ticks, argument, counted, endpoint};
use dunlin_testkit::session::connect;
use dunlin_wire::ReqType;

const SINK: ReqType = ReqType(1);

/// Bytes of a request, and of its answer.
const SIZE: usize = 8 << 20;
const ANSWER: usize = 32;

/// Packets that may be under way, as in `dunlin bench bandwidth`.
const CREDITS: u32 = 256;

/// The most turns for a packet. Without this limit, the program would wait for a lost packet for
/// ever.
const TURNS: u64 = 10;

#[derive(Default)]
struct Client {
    issued: u64,
    completed: u64,
}

type ClientRpc = Endpoint<Dpdk, Ticks, Client>;
type ServerRpc = Endpoint<Dpdk, Ticks, ()>;

fn main() {
    let (in_flight, packets) = (argument(0, 1), argument(1, 6000));
    let ((near, to_server), (far, to_client)) = ends::ends(true);
    let data_size = near.limits.data_size;
    let mut client = endpoint(Client::default(), Ticks::default(), near, 1);
    let mut server = endpoint((), Ticks::default(), far, 2);
    server.on(SINK, answer);
    client.on_completion(complete);
    let options = SessionOptions::DEFAULT.with_credits(CREDITS);
    let peers = [to_server, to_client];
    let [session, _] = connect(&mut client, &mut server, peers, &options);
    for _ in 0..in_flight {
        let bufs = [SIZE, ANSWER].map(|len| client.buf(len).expect("there is memory"));
        let (app, mut cx) = client.with();
        call(app, session, bufs, &mut cx);
    }
    let each = (SIZE as u64).div_ceil(u64::from(data_size));
    exchange(&mut client, &mut server, in_flight, each);
    let messages = packets.div_ceil(each);
    let done = counted(|| exchange(&mut client, &mut server, messages, each));
    assert_eq!(client.counters().retransmissions, 0);
    println!("{}", done * each);
}

/// Lets each side take turns until `messages` more requests of `packets` packets are complete;
/// returns their number.
fn exchange(client: &mut ClientRpc, server: &mut ServerRpc, messages: u64, packets: u64) -> u64 {
    let begin = client.app().completed;
    for _ in 0..TURNS * messages * packets {
        client_turn(client);
        server_turn(server);
        let done = client.app().completed - begin;
        if done >= messages {
            return done;
        }
    }
    panic!("{messages} requests do not complete");
}

/// The client's work: takes the acknowledgements, sends more packets.
#[inline(never)]
fn client_turn(client: &mut ClientRpc) {
    client.run_once();
}

/// The server's work: takes packets, acknowledges them, and answers complete requests.
#[inline(never)]
fn server_turn(server: &mut ServerRpc) {
    server.run_once();
}

fn call(app: &mut Client, session: Session, bufs: [MsgBuf; 2], cx: &mut Cx<'_>) {
    let [mut request, response] = bufs;
    let tag = app.issued.to_le_bytes();
    request.data_mut()[..tag.len()].copy_from_slice(&tag);
    request.data_mut()[SIZE - tag.len()..].copy_from_slice(&tag);
    cx.call(session, SINK, request, response, Tag(app.issued))
        .expect("a slot is free");
    app.issued += 1;
}

fn complete(app: &mut Client, done: Done, cx: &mut Cx<'_>) {
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.response.data()[..8], done.tag.0.to_le_bytes());
    app.completed += 1;
    call(app, done.session, [done.request, done.response], cx);
}

fn answer(_: &mut (), request: Request<'_>, cx: &mut Cx<'_>) {
    let (tag, _) = request.data().split_first_chunk::<8>().expect("8 MB");
    assert_eq!(
        request.data().last_chunk(),
        Some(tag),
        "it ends as it begins"
    );
    let tag = *tag;
    request.reply(cx, ANSWER, |out| out[..8].copy_from_slice(&tag));
}
