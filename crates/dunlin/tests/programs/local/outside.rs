//! Futures that another executor polls, and an endpoint that another loop drives.

use std::future::pending;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use dunlin::{AsyncError, CallErrorKind, Caller, NotConnected};
use futures::task::noop_waker;

use crate::local::{ECHO, NEVER, PATIENCE, beside, client, echo};

#[test]
fn other_executors_may_poll_a_call_while_the_endpoint_runs() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            let cx = local.caller();
            let mut call = pin!(cx.call(session, ECHO, cx.copy(b"word").unwrap()));
            let waker = noop_waker();
            let begin = Instant::now();
            let reply = loop {
                if let Poll::Ready(reply) = call.as_mut().poll(&mut Context::from_waker(&waker)) {
                    break reply.unwrap();
                }
                local.turn();
                assert!(begin.elapsed() < PATIENCE);
            };
            assert_eq!(reply.data(), b"word");
        },
        |_| (),
    );
}

#[test]
fn a_future_that_outlives_its_endpoint_ends() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            let cx = local.caller();
            let mut call = pin!(cx.call(session, NEVER, cx.copy(b"x").unwrap()));
            let mut sleep = pin!(cx.sleep(Duration::from_secs(3600)));
            let mut opens = pin!(cx.connect("127.0.0.1:1"));
            let mut closed = pin!(cx.closed(session));
            let waker = noop_waker();
            let mut context = Context::from_waker(&waker);
            assert!(opens.as_mut().poll(&mut context).is_pending());
            assert!(closed.as_mut().poll(&mut context).is_pending());
            assert!(call.as_mut().poll(&mut context).is_pending());
            assert!(sleep.as_mut().poll(&mut context).is_pending());
            local.turn();
            drop(local);
            let Poll::Ready(Err(failed)) = call.as_mut().poll(&mut context) else {
                panic!("the call goes on without its endpoint");
            };
            assert!(failed.error.is_closed(), "{}", failed.error);
            assert_eq!(failed.request.data(), b"x");
            assert!(sleep.as_mut().poll(&mut context).is_ready());
            assert!(opens.as_mut().poll(&mut context).is_ready());
            assert!(closed.as_mut().poll(&mut context).is_ready());
            without_endpoint(&cx, failed.request, session);
        },
        |_| (),
    );
}

/// Every operation that needs the endpoint fails, because the endpoint is gone.
fn without_endpoint(cx: &Caller, request: dunlin::MsgBuf, session: dunlin::Session) {
    assert!(cx.buf(10).is_err() && cx.copy(b"x").is_err());
    let waker = noop_waker();
    let mut context = Context::from_waker(&waker);
    let Poll::Ready(Err(failed)) = pin!(cx.call(session, ECHO, request)).poll(&mut context) else {
        panic!("a call without an endpoint");
    };
    assert!(failed.error.is_closed());
    assert!(
        pin!(cx.sleep(Duration::from_secs(1)))
            .poll(&mut context)
            .is_ready()
    );
    assert!(cx.disconnect(session).is_err() && cx.session_info(session).is_err());
    let mut opens = pin!(cx.connect("127.0.0.1:1"));
    assert!(matches!(
        opens.as_mut().poll(&mut context),
        Poll::Ready(Err(NotConnected::Gone(_)))
    ));
    let mut events = cx.events();
    assert_eq!(pin!(events.next()).poll(&mut context), Poll::Ready(None));
    cx.spawn(pending());
    cx.recycle([failed.request]);
}

/// A `Local` does not accept the session of another one.
#[test]
fn a_session_works_only_at_its_endpoint() {
    beside(
        echo,
        |address| {
            let ((mut local, ours), (mut other, theirs)) = (client(address), client(address));
            let wrong = AsyncError::Refused(CallErrorKind::WrongEndpoint);
            local.block_on(|cx| async move {
                let refused = cx.call(theirs, ECHO, cx.copy(b"word").unwrap()).await;
                let refused = refused.unwrap_err();
                assert_eq!(
                    (refused.error, refused.request.data()),
                    (wrong, &b"word"[..])
                );
                let refused = cx.notify(theirs, ECHO, refused.request).unwrap_err();
                assert_eq!(
                    (refused.error, refused.request.data()),
                    (wrong, &b"word"[..])
                );
                let wrong = AsyncError::WrongEndpoint;
                let error = cx.connected(theirs).await.unwrap_err();
                assert!(matches!(error, NotConnected::Gone(error) if error == wrong));
                assert_eq!(cx.disconnect(theirs), Err(wrong));
                assert_eq!(cx.session_info(theirs).err(), Some(wrong));
                cx.call(ours, ECHO, refused.request).await.unwrap();
            });
            other
                .block_on(|cx| async move { cx.call(theirs, ECHO, cx.copy(b"x").unwrap()).await })
                .unwrap();
        },
        |_| (),
    );
}
