//! A slow handler next to a fast one. A handler that takes milliseconds must not run in the thread
//! that moves packets, because every other request would wait for it; worker threads run it
//! instead.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin::{Auto, Done, MsgBuf, Nexus, ReqType, Rpc, Session, Tag};

/// Runs in the dispatch thread, where a handler should take well under a microsecond.
const ECHO: ReqType = ReqType(1);
/// Runs in a worker thread.
const GRIND: ReqType = ReqType(2);

const SLOW: Tag = Tag(0);
const FAST: Tag = Tag(1);

/// How long the slow handler takes.
const WORK: Duration = Duration::from_millis(20);

fn main() -> anyhow::Result<()> {
    // The workers belong to the nexus; all of its endpoints share them.
    let server = Nexus::builder().workers(1).bind("127.0.0.1:0")?;
    let client = Nexus::bind("127.0.0.1:0")?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server, &stop));
        let asked = ask(&client, server.address());
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("the server does not panic")?;
        asked
    })
}

fn serve(nexus: &Nexus, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, ()> = nexus.endpoint(())?;
    rpc.on(ECHO, |(), request, cx| {
        let data = request.data();
        request.reply_bytes(cx, data);
    });
    // A worker has no access to the endpoint's state, which belongs to another thread; it gets a
    // copy of the request, and a response buffer of the requested size.
    rpc.on_background(GRIND, 8, |request| {
        let end = Instant::now() + WORK;
        let mut rounds = 0_u64;
        while Instant::now() < end {
            rounds += 1;
        }
        // `reply` fails only if the response exceeds those 8 bytes; then the client gets an error.
        let _ = request.reply(8, |_, out| out.copy_from_slice(&rounds.to_le_bytes()));
    });
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    Ok(())
}

#[derive(Default)]
struct Client {
    slow: Option<Done>,
    fast: Option<Done>,
}

fn ask(nexus: &Nexus, server: SocketAddr) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Client> = nexus.endpoint(Client::default())?;
    rpc.on_completion(|client, done, _| match done.tag {
        SLOW => client.slow = Some(done),
        _ => client.fast = Some(done),
    });
    let session = rpc.connect_blocking(server)?;
    let (request, response) = (rpc.buf(0)?, rpc.buf(8)?);
    rpc.call(session, GRIND, request, response, SLOW)?;
    let mut bufs = (rpc.buf(32)?, rpc.buf(32)?);
    let mut beside = 0_u32;
    let slow = loop {
        bufs = echo(&mut rpc, session, bufs)?;
        match rpc.app_mut().slow.take() {
            Some(done) => break done,
            None => beside += 1,
        }
    };
    slow.result?;
    let rounds = u64::from_le_bytes(slow.response.data().try_into()?);
    println!("while a worker did {rounds} rounds, {beside} fast requests were answered");
    // The server acknowledged the slow request after 50 µs, so it was not sent again.
    println!("retransmissions: {}", rpc.counters().retransmissions);
    anyhow::ensure!(beside > 0, "the slow handler held up the fast one");
    Ok(())
}

/// Makes one fast request; its msgbufs come back and carry the next one.
fn echo(
    rpc: &mut Rpc<Auto, Client>,
    session: Session,
    (request, response): (MsgBuf, MsgBuf),
) -> anyhow::Result<(MsgBuf, MsgBuf)> {
    rpc.call(session, ECHO, request, response, FAST)?;
    rpc.run_until(|rpc| rpc.app().fast.is_some());
    let done = rpc.app_mut().fast.take().expect("the loop waited for it");
    done.result?;
    Ok((done.request, done.response))
}
