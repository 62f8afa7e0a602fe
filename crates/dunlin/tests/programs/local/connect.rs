//! Sessions that futures make, watch, and make again.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use dunlin::{
    Caller, CloseReason, ConnectFailure, ConnectOptions, Local, Nexus, NotConnected, Session,
    SessionEvent, Shm,
};
use dunlin_testkit::address::free_port;
use futures::channel::oneshot;

use crate::local::{ECHO, PATIENCE, beside, echo, local};

fn client() -> Local<Shm> {
    local(&Nexus::bind("127.0.0.1:0").unwrap())
}

async fn call(cx: &Caller, session: Session) {
    let reply = cx.call(session, ECHO, cx.copy(b"word").unwrap());
    assert_eq!(reply.await.unwrap().data(), b"word");
}

#[test]
fn a_future_connects_by_address_by_name_and_by_resolver() {
    beside(
        echo,
        |address| {
            client().block_on(|cx| async move {
                let by_address = cx.connect(address).await.unwrap();
                let name = format!("localhost:{}", address.port());
                let by_name = cx.connect(name).await.unwrap();
                let resolver = move || -> io::Result<Vec<SocketAddr>> { Ok(vec![address]) };
                let by_resolver = cx.connect(resolver).await.unwrap();
                for session in [by_address, by_name, by_resolver] {
                    call(&cx, session).await;
                }
            });
        },
        |_| (),
    );
}

#[test]
fn a_future_that_cannot_connect_gets_reason_and_address() {
    let nowhere = free_port();
    let options = ConnectOptions {
        patience: Duration::from_millis(50),
        ..ConnectOptions::default()
    };
    client().block_on(|cx| async move {
        let error = cx.connect_with(nowhere.clone(), options).await.unwrap_err();
        let NotConnected::Failed(failed) = error else {
            panic!("{error}");
        };
        assert_eq!(failed.failure, ConnectFailure::Unreachable);
        assert_eq!(failed.address, Some(nowhere.parse().unwrap()));
        let fails = || -> io::Result<Vec<SocketAddr>> { Err(io::Error::other("planted")) };
        let none = || -> io::Result<Vec<SocketAddr>> { Ok(Vec::new()) };
        let panics = || -> io::Result<Vec<SocketAddr>> { panic!("a planted panic") };
        let errors = [
            cx.connect(fails).await.unwrap_err(),
            cx.connect(none).await.unwrap_err(),
            cx.connect(panics).await.unwrap_err(),
        ];
        for (error, why) in errors.iter().zip(["planted", "no address", "panicked"]) {
            assert!(matches!(error, NotConnected::Address(_)), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
    });
}

/// Serves at an address until the sender is dropped.
fn serve(address: &str) -> (oneshot::Sender<()>, thread::JoinHandle<()>) {
    let nexus = Nexus::bind(address).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::spawn(move || {
        let mut local = local(&nexus);
        echo(&mut local);
        let _ = local.block_on(|_| stopped);
    });
    (stop, thread)
}

#[test]
fn a_future_sees_the_end_of_its_session_and_connects_again() {
    let at = free_port();
    let mut local = client();
    for _ in 0..2 {
        let (stop, server) = serve(&at);
        let at = at.clone();
        let reason = local.block_on(|cx| async move {
            let session = cx.connect(at).await.unwrap();
            call(&cx, session).await;
            drop(stop);
            let reason = cx.closed(session).await;
            assert_eq!(cx.closed(session).await, None, "it has ended already");
            reason
        });
        assert!(
            matches!(reason, Some(CloseReason::Disconnected)),
            "{reason:?}"
        );
        server.join().unwrap();
    }
}

#[test]
fn a_future_that_is_dropped_makes_no_session() {
    let nowhere = free_port();
    let mut local = client();
    local.block_on(|cx| async move {
        let wait = Duration::from_millis(5);
        assert!(cx.within(wait, cx.connect(nowhere)).await.is_none());
    });
    local.turn();
    assert_eq!(local.inspect(|rpc| rpc.sessions().count()), 0);
}

#[test]
fn a_look_up_that_hangs_holds_up_no_other_future() {
    beside(
        echo,
        |address| {
            let (end, ended) = mpsc::channel::<()>();
            let ended = std::sync::Mutex::new(ended);
            let hangs = move || -> io::Result<Vec<SocketAddr>> {
                // Until the test drops the sender.
                let _ = ended.lock().unwrap().recv();
                Ok(vec![address])
            };
            client().block_on(|cx| async move {
                let (opened, open) = oneshot::channel();
                let late = cx.clone();
                cx.spawn(async move {
                    let session = late.connect(hangs).await.unwrap();
                    opened.send(session).unwrap();
                });
                let session = cx.connect(address).await.unwrap();
                for _ in 0..100 {
                    call(&cx, session).await;
                }
                drop(end);
                call(&cx, open.await.unwrap()).await;
            });
        },
        |_| (),
    );
}

#[test]
fn a_future_sees_the_sessions_that_peers_make() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let address = nexus.address();
    let mut server = local(&nexus);
    echo(&mut server);
    let client = thread::spawn(move || {
        client().block_on(|cx| async move {
            let session = cx.connect(address).await.unwrap();
            call(&cx, session).await;
            cx.disconnect(session).unwrap();
        });
    });
    server.block_on(|cx| async move {
        let mut events = cx.events();
        let Some(SessionEvent::Accepted(session)) = events.next().await else {
            panic!("the first event is another one");
        };
        let closed = cx.within(PATIENCE, events.next()).await;
        assert!(
            matches!(closed, Some(Some(SessionEvent::Closed { session: it, .. })) if it == session),
            "{closed:?}"
        );
        assert_eq!(events.missed(), 0);
    });
    client.join().unwrap();
}
