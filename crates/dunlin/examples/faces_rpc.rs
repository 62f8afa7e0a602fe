//! RPCs of 32 bytes each way between two endpoints over shared memory, in one thread, by the poll
//! API or as futures. It measures the cost of each face on both sides together; no packet moves
//! between cores.
//!
//! ```text
//! cargo run --release -p dunlin --example faces_rpc -- [poll|async] [RPCS]
//! ```
//!
//! To count instructions, run it under `valgrind --tool=callgrind --fair-sched=yes` with
//! `--toggle-collect=*client_turn*` or `*server_turn*`, once for each of two numbers of RPCs. The
//! difference of the counts excludes the set-up.
//!
//! 32 requests are in flight on four sessions. Both faces do the same work: the client writes a
//! fresh number into each request, the server reads the whole request and answers with a value
//! computed from it, and the client checks each response.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;

use dunlin::{
    Caller, Cx, Done, EndpointBuilder, Local, MsgBuf, Nexus, ReqType, Rpc, Session, Shm, Tag, Tasks,
};

const SUM: ReqType = ReqType(1);
/// Bytes of a request and of a response.
const SIZE: usize = 32;
/// Numbers in a request or a response.
const WORDS: usize = SIZE / 8;
const IN_FLIGHT: usize = 32;
const SESSIONS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let face = args.next();
    let rpcs = args.next().map_or(Ok(100_000), |number| number.parse())?;
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let server = || nexus.endpoint_builder::<Shm>().index(0);
    let client = || nexus.endpoint_builder::<Shm>().index(1);
    match face.as_deref() {
        None | Some("poll") => poll(&nexus, server(), client(), rpcs),
        Some("async") => futures(&nexus, server(), client(), rpcs),
        Some(other) => panic!("the face is poll or async, not {other}"),
    }?;
    println!("{rpcs} RPCs");
    Ok(())
}

/// The client's work for the requests in flight.
#[inline(never)]
fn client_turn(mut turn: impl FnMut()) {
    black_box("client");
    turn();
}

/// The server's work for the requests in flight.
#[inline(never)]
fn server_turn(mut turn: impl FnMut()) {
    // Without this, the compiler could merge this function with `client_turn` where both sides run
    // the same code.
    black_box("server");
    turn();
}

/// The client of the poll API.
#[derive(Default)]
struct Client {
    /// Number in the next request.
    next: u64,
    completed: u64,
}

fn poll(
    nexus: &Nexus,
    server: EndpointBuilder<Shm>,
    client: EndpointBuilder<Shm>,
    rpcs: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut server: Rpc<Shm, ()> = server.build(())?;
    server.on(SUM, |(), request, cx| {
        let sum = sum(request.data());
        request.reply(cx, SIZE, |out| write([sum; WORDS], out));
    });
    let mut client: Rpc<Shm, Client> = client.build(Client::default())?;
    client.on_completion(complete);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let session = client.connect(nexus.address())?;
        while !client.session_info(session)?.open {
            client.run_once();
            server.run_once();
        }
        sessions.push(session);
    }
    for slot in 0..IN_FLIGHT {
        let bufs = [client.buf(SIZE)?, client.buf(SIZE)?];
        let (app, mut cx) = client.with();
        call(app, sessions[slot % SESSIONS], bufs, &mut cx);
    }
    while client.app().completed < rpcs {
        client_turn(|| {
            client.run_once();
        });
        server_turn(|| {
            server.run_once();
        });
    }
    Ok(())
}

fn call(app: &mut Client, session: Session, bufs: [MsgBuf; 2], cx: &mut Cx<'_>) {
    let [mut request, response] = bufs;
    let first = app.next;
    write([first, first + 1, first + 2, first + 3], request.data_mut());
    cx.call(session, SUM, request, response, Tag(first))
        .expect("a slot is free");
    app.next += 1;
}

fn complete(app: &mut Client, done: Done, cx: &mut Cx<'_>) {
    assert_eq!(done.result, Ok(()));
    check(done.response.data(), done.tag.0);
    app.completed += 1;
    call(app, done.session, [done.request, done.response], cx);
}

fn futures(
    nexus: &Nexus,
    server: EndpointBuilder<Shm>,
    client: EndpointBuilder<Shm>,
    rpcs: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut server: Local<Shm> = Local::new(server.build(Tasks::default())?);
    server.serve(SUM, |request, _| async move {
        let sum = sum(request.data());
        request.reply_with(SIZE, |out| write([sum; WORDS], out))
    });
    let mut client: Local<Shm> = Local::new(client.build(Tasks::default())?);
    let cx = client.caller();
    let (next, completed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let session = client.connect(nexus.address())?;
        while !cx.session_info(session)?.open {
            client.turn();
            server.turn();
        }
        sessions.push(session);
    }
    for slot in 0..IN_FLIGHT {
        let bufs = [cx.buf(SIZE)?, cx.buf(SIZE)?];
        let counts = [Rc::clone(&next), Rc::clone(&completed)];
        cx.spawn(one_at_a_time(
            cx.clone(),
            sessions[slot % SESSIONS],
            bufs,
            counts,
        ));
    }
    while completed.get() < rpcs {
        assert_eq!(client.panics(), 0, "a future has found something wrong");
        client_turn(|| {
            client.turn();
        });
        server_turn(|| {
            server.turn();
        });
    }
    Ok(())
}

async fn one_at_a_time(
    cx: Caller,
    session: Session,
    [mut request, mut response]: [MsgBuf; 2],
    [next, completed]: [Rc<Cell<u64>>; 2],
) {
    loop {
        let first = next.get();
        next.set(first + 1);
        write([first, first + 1, first + 2, first + 3], request.data_mut());
        let called = cx.call(session, SUM, request).response(response).await;
        let reply = called.expect("the server answers");
        check(reply.data(), first);
        completed.set(completed.get() + 1);
        (request, response) = reply.into_bufs();
    }
}

fn check(response: &[u8], first: u64) {
    let mut words = words(response);
    assert!(words.all(|word| word == 4 * first + 6), "a wrong response");
}

fn sum(request: &[u8]) -> u64 {
    words(request).fold(0, u64::wrapping_add)
}

/// The message as numbers. It has no alignment.
fn words(message: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = message.as_chunks();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

fn write(words: [u64; WORDS], message: &mut [u8]) {
    for (place, word) in message.chunks_exact_mut(size_of::<u64>()).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
