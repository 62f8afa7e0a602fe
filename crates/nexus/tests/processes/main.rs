//! The nexus over real sockets, with real processes that are killed and stopped.
//!
//! A test that needs another process starts this program again with `DUNLIN_TEST_CHILD` set; in
//! that process, the test `child` is its program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bell;
mod child;
mod crowds;
mod failure;
mod floods;
mod forger;
mod forked;
mod hostile;
mod idle;
mod insight;
mod liar;
mod network;
mod proofs;
mod reflector;
mod relay;
mod sessions;
mod slow;
mod stranger;
mod traced;
mod unmapped;

use std::time::{Duration, Instant};

use dunlin_core::{CallErrorKind, Done, RpcError, Session, SessionEvent, Tag};
use dunlin_nexus::{Nexus, Open, Rpc};
use dunlin_wire::ReqType;

/// Answers with the request's bytes in reverse order.
const REVERSE: ReqType = ReqType(1);
/// Answers in the same way, but in a worker thread.
const BACKGROUND: ReqType = ReqType(2);
/// Answers only after its client has given up.
const NEVER: ReqType = ReqType(3);

/// Occupies the endpoint's own thread for as many milliseconds as the request says, and answers
/// with as many bytes as it says.
const SLOW: ReqType = ReqType(4);

/// Watches the request for some time, and reports whether it changed meanwhile.
const LOOK: ReqType = ReqType(5);
/// How long [`LOOK`] watches its request.
const LOOKING: Duration = Duration::from_millis(400);

/// The state of the endpoints of these tests.
#[derive(Default)]
struct App {
    events: Vec<SessionEvent>,
    done: Vec<Done>,
    held: Vec<dunlin_core::DeferredRequest>,
}

/// An endpoint that serves all request types above and keeps its events.
fn endpoint<T: Open>(nexus: &Nexus) -> Rpc<T, App> {
    let mut rpc = nexus.endpoint(App::default()).unwrap();
    serve_all(&mut rpc);
    rpc
}

fn serve_all<T: Open>(rpc: &mut Rpc<T, App>) {
    rpc.on(REVERSE, |_, request, cx| {
        let data = request.data();
        request.reply(cx, data.len(), |out| {
            out.copy_from_slice(data);
            out.reverse();
        });
    });
    rpc.on_background(BACKGROUND, 64, |request| {
        let length = request.data().len();
        let _ = request.reply(length, |data, out| {
            out.copy_from_slice(data);
            out.reverse();
        });
    });
    rpc.on(NEVER, |app: &mut App, request, cx| {
        app.held.push(request.defer(cx))
    });
    rpc.on(SLOW, |_, request, cx| {
        let says = std::str::from_utf8(request.data()).unwrap();
        let (millis, len) = says.split_once(' ').unwrap();
        let (millis, len) = (millis.parse().unwrap(), len.parse().unwrap());
        std::thread::sleep(Duration::from_millis(millis));
        request.reply(cx, len, |out| out.fill(7));
    });
    rpc.on(LOOK, |_, request, cx| {
        let data = request.data();
        let before = data.to_vec();
        child::say(&format!("looking {}", data.len()));
        std::thread::sleep(LOOKING);
        let is_same = std::hint::black_box(data) == before;
        child::say(["looked changed", "looked the same"][usize::from(is_same)]);
        request.reply(cx, 0, |_| {});
    });
    rpc.on_completion(|app, done, _| app.done.push(done));
    rpc.on_session(|app, event, _| app.events.push(event));
}

fn issue<T: Open>(rpc: &mut Rpc<T, App>, session: Session, kind: ReqType, text: &[u8]) {
    let mut request = rpc.buf(text.len()).unwrap();
    request.data_mut().copy_from_slice(text);
    let response = rpc.buf(64).unwrap();
    if let Err(error) = rpc.call(session, kind, request, response, Tag(0)) {
        assert_eq!(error.kind, CallErrorKind::NoSession);
        panic!("the session is closed");
    }
}

/// Runs until `done` returns true; panics if that takes longer than `limit`.
fn run_within<T: Open>(
    rpc: &mut Rpc<T, App>,
    limit: Duration,
    what: &str,
    mut done: impl FnMut(&mut Rpc<T, App>) -> bool,
) -> Duration {
    let start = Instant::now();
    while !done(rpc) {
        rpc.run_once();
        assert!(start.elapsed() < limit, "{what} took longer than {limit:?}");
    }
    start.elapsed()
}

/// Makes one RPC; panics if it does not succeed.
fn exchange<T: Open>(rpc: &mut Rpc<T, App>, session: Session, kind: ReqType) {
    issue(rpc, session, kind, b"stressed");
    let done = finish(rpc, Duration::from_secs(5));
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.response.data(), b"desserts");
}

/// Waits for the end of the only outstanding call.
fn finish<T: Open>(rpc: &mut Rpc<T, App>, limit: Duration) -> Done {
    run_within(rpc, limit, "an RPC", |rpc| !rpc.app().done.is_empty());
    rpc.app_mut().done.pop().unwrap()
}

fn ended_by_failure(result: Result<(), RpcError>) -> bool {
    matches!(result, Err(RpcError::PeerFailed(_)))
}

#[test]
fn child() {
    child::main_if_asked();
}
