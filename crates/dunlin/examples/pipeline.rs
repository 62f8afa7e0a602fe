//! A client that keeps many requests in flight. One request at a time gives one answer per round
//! trip; a window full of them gives as many as the server can serve.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin::{Auto, CallErrorKind, Cx, Done, MsgBuf, Nexus, ReqType, Rpc, Session, Tag};

const ADD_ONE: ReqType = ReqType(1);
const REQUESTS: u64 = 20_000;

fn main() -> anyhow::Result<()> {
    let (server, client) = (Nexus::bind("127.0.0.1:0")?, Nexus::bind("127.0.0.1:0")?);
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
    rpc.on(ADD_ONE, |(), request, cx| {
        // The client chose the length, so the server checks it, like everything else that a client
        // sends.
        match <[u8; 8]>::try_from(request.data()) {
            Ok(bytes) => {
                let sum = u64::from_le_bytes(bytes).wrapping_add(1);
                request.reply_bytes(cx, &sum.to_le_bytes());
            }
            Err(_) => request.reject(cx, dunlin::ErrorCode::application(1)),
        }
    });
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    Ok(())
}

#[derive(Default)]
struct Client {
    session: Option<Session>,
    issued: u64,
    ended: u64,
    wrong: u64,
}

impl Client {
    /// Issues the next request in these buffers, if there is one.
    fn issue(&mut self, (mut request, response): (MsgBuf, MsgBuf), cx: &mut Cx<'_>) {
        let Some(session) = self.session.filter(|_| self.issued < REQUESTS) else {
            return cx.recycle([request, response]);
        };
        request
            .data_mut()
            .copy_from_slice(&self.issued.to_le_bytes());
        match cx.call(session, ADD_ONE, request, response, Tag(self.issued)) {
            Ok(_) => self.issued += 1,
            Err(refused) => {
                // The backlog has a bound. `Overloaded` means that it is full, so we go on at the
                // next completion. Any other error means that the session ended.
                if refused.kind != CallErrorKind::Overloaded {
                    self.session = None;
                }
                cx.recycle([refused.request, refused.response]);
            }
        }
    }

    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        self.ended += 1;
        let is_right =
            done.result.is_ok() && done.response.data() == (done.tag.0 + 1).to_le_bytes();
        self.wrong += u64::from(!is_right);
        // The buffers come back with the completion and carry the next request: after the first
        // few requests nothing is allocated any more.
        self.issue((done.request, done.response), cx);
    }
}

fn ask(nexus: &Nexus, server: SocketAddr) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Client> = nexus.endpoint(Client::default())?;
    rpc.on_completion(|client, done, cx| client.on_done(done, cx));
    let session = rpc.connect_blocking(server)?;
    for in_flight in [1, 8] {
        let took = run(&mut rpc, session, in_flight)?;
        let rate = REQUESTS as f64 / took.as_secs_f64();
        println!("{in_flight} in flight: {rate:.0} requests/s");
    }
    Ok(())
}

/// Issues all requests once, `in_flight` of them at a time.
fn run(rpc: &mut Rpc<Auto, Client>, session: Session, in_flight: u32) -> anyhow::Result<Duration> {
    *rpc.app_mut() = Client {
        session: Some(session),
        ..Client::default()
    };
    let begin = Instant::now();
    for _ in 0..in_flight {
        let bufs = (rpc.buf(8)?, rpc.buf(8)?);
        let (client, mut cx) = rpc.with();
        client.issue(bufs, &mut cx);
    }
    rpc.run_until(|rpc| rpc.app().ended == REQUESTS || rpc.session_info(session).is_err());
    anyhow::ensure!(rpc.app().ended == REQUESTS, "the session ended");
    anyhow::ensure!(rpc.app().wrong == 0, "an answer was wrong");
    Ok(begin.elapsed())
}
