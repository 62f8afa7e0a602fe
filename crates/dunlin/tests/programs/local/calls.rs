//! Calls as futures.

use std::time::{Duration, Instant};

use dunlin::{
    AsyncError, CallErrorKind, ConnectFailure, ConnectOptions, ErrorCode, Local, Nexus,
    NotConnected, Ran, ReqType, RpcError, Session, Shm,
};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Either, join_all, select};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::local::{ECHO, NEVER, PATIENCE, beside, client, echo, local};

#[test]
fn a_call_gives_the_response_and_both_msgbufs() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let reply = cx
                    .call(session, ECHO, cx.copy(b"word").unwrap())
                    .await
                    .unwrap();
                assert_eq!(reply.data(), b"word");
                let (request, response) = reply.into_bufs();
                assert_eq!(
                    (request.data(), response.data()),
                    (&b"word"[..], &b"word"[..])
                );
                let again = cx
                    .call(session, ECHO, request)
                    .response(response)
                    .await
                    .unwrap();
                assert_eq!(again.data(), b"word");
            });
        },
        |_| (),
    );
}

#[test]
fn calls_of_one_future_run_together() {
    let counted = beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let calls = (0..100_u64).map(|number| {
                    let cx = cx.clone();
                    async move {
                        let request = cx.copy(&number.to_le_bytes()).unwrap();
                        let reply = cx.call(session, ECHO, request).await.unwrap();
                        assert_eq!(reply.data(), number.to_le_bytes());
                    }
                });
                join_all(calls).await;
                // One task polls both calls.
                let calls = [b"a", b"b"].map(|word| cx.call(session, ECHO, cx.copy(word).unwrap()));
                let [first, second] = calls;
                let (first, second) = futures::join!(first, second);
                assert_eq!(
                    (first.unwrap().data(), second.unwrap().data()),
                    (&b"a"[..], &b"b"[..])
                );
            });
        },
        |local| local.counters().requests_received,
    );
    assert_eq!(counted.1, 102);
}

#[test]
fn a_deadline_ends_a_call_and_gives_its_msgbufs_back() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let call = cx.call(session, NEVER, cx.copy(b"late").unwrap());
                let failed = call.deadline(Duration::from_millis(20)).await.unwrap_err();
                assert_eq!(
                    failed.error,
                    AsyncError::Rpc(RpcError::DeadlinePassed(Ran::Unknown))
                );
                assert_eq!(failed.request.data(), b"late");
                assert!(failed.response.is_some());
            });
        },
        |_| (),
    );
}

#[test]
fn dropping_a_call_cancels_it_and_its_msgbufs_return() {
    let ((), cancelled) = beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            for _ in 0..100 {
                local.block_on(|cx| async move {
                    let never = cx.call(session, NEVER, cx.copy(b"x").unwrap());
                    let echo = cx.call(session, ECHO, cx.copy(b"y").unwrap());
                    match select(never, echo).await {
                        Either::Left(_) => panic!("a call to NEVER got an answer"),
                        Either::Right((reply, _never)) => assert_eq!(reply.unwrap().data(), b"y"),
                    }
                });
            }
            assert!(local.counters().cancels >= 100);
            // A call that is not awaited is not issued.
            local
                .block_on(|cx| async move { drop(cx.call(session, ECHO, cx.copy(b"z").unwrap())) });
            local
                .block_on(|cx| async move { cx.call(session, ECHO, cx.copy(b"z").unwrap()).await })
                .unwrap();
            let (_, msgbufs) = local.pool_use();
            assert!(msgbufs <= 1, "{msgbufs} msgbufs are still out");
        },
        |local| local.counters().requests_received,
    );
    assert_eq!(cancelled, 201);
}

/// A collection polls each of its futures with a waker of its own.
#[test]
fn calls_in_a_collection_of_futures_end_in_every_way() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            let in_use = local.pool_use().1;
            local.block_on(|cx| async move {
                let call = |kind, word: &[u8]| cx.call(session, kind, cx.copy(word).unwrap());
                for round in 0..3_u8 {
                    let late = call(NEVER, b"late").deadline(Duration::from_millis(1));
                    let mut late = FuturesUnordered::from_iter([late]);
                    let failed = late.next().await.unwrap().unwrap_err();
                    let passed = AsyncError::Rpc(RpcError::DeadlinePassed(Ran::Unknown));
                    assert_eq!(
                        (failed.error, failed.request.data()),
                        (passed, &b"late"[..])
                    );
                    let refused = cx.call(Session::NONE, ECHO, cx.copy(b"refused").unwrap());
                    let mut refused = FuturesUnordered::from_iter([refused]);
                    let failed = refused.next().await.unwrap().unwrap_err();
                    assert_eq!(failed.error, AsyncError::Refused(CallErrorKind::NoSession));
                    let mut dropped = FuturesUnordered::from_iter([call(NEVER, b"dropped")]);
                    assert!(futures::poll!(dropped.next()).is_pending());
                    drop(dropped);
                    let words: [_; 40] =
                        std::array::from_fn(|at| [round, u8::try_from(at).unwrap()]);
                    let calls = words.map(|word| call(ECHO, &word));
                    let calls: Vec<_> = FuturesUnordered::from_iter(calls).collect().await;
                    let answers = calls.into_iter().map(|reply| reply.unwrap());
                    let mut answers: Vec<_> = answers.map(|it| it.data().to_vec()).collect();
                    answers.sort_unstable();
                    assert_eq!(answers, words);
                }
            });
            wait_for_msgbufs(&mut local, in_use);
        },
        |_| (),
    );
}

#[test]
fn refused_calls_give_their_msgbufs_back() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let reject = cx
                    .call(session, ReqType(99), cx.copy(b"?").unwrap())
                    .await
                    .unwrap_err();
                let unknown = AsyncError::Rpc(RpcError::rejected(ErrorCode::UNKNOWN_TYPE, true));
                assert_eq!(reject.error, unknown);
                assert_eq!(reject.request.data(), b"?");
                let small = cx.call(session, ECHO, cx.copy(&[7; 100]).unwrap()).room(10);
                let failed = small.await.unwrap_err();
                let too_large = RpcError::ResponseTooLarge { size: 100 };
                assert_eq!(failed.error, AsyncError::Rpc(too_large));
                assert!(cx.disconnect(session).is_ok());
                let refused = cx.call(session, ECHO, failed.request).await.unwrap_err();
                assert_eq!(refused.error, AsyncError::Refused(CallErrorKind::NoSession));
                assert_eq!(refused.request.len(), 100);
                assert_eq!(connected(&cx, session).await, Err(AsyncError::NoSession));
                let error = cx.connected(session).await.unwrap_err();
                assert!(matches!(error, NotConnected::Gone(AsyncError::NoSession)));
            });
        },
        |_| (),
    );
}

async fn connected(cx: &dunlin::Caller, session: Session) -> Result<(), AsyncError> {
    Ok(cx.connected(session).await?)
}

/// A future learns the reason, whether it begins to wait before the failure or after it.
#[test]
fn a_session_that_cannot_be_made_gives_its_reason_and_address() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let mut local = local(&Nexus::bind("127.0.0.1:0").unwrap());
    let options = ConnectOptions {
        patience: Duration::from_millis(100),
        ..ConnectOptions::default()
    };
    let session = local.connect_with(address, &options).unwrap();
    for _ in 0..2 {
        let error = local.block_on(|cx| async move { cx.connected(session).await });
        let error = error.unwrap_err();
        let NotConnected::Failed(failed) = error else {
            panic!("{error}");
        };
        assert_eq!(failed.failure, ConnectFailure::Unreachable);
        assert_eq!(failed.address, Some(address));
        assert!(
            error
                .to_string()
                .starts_with(&format!("{address}: no server"))
        );
    }
}

#[test]
fn a_session_that_closes_ends_its_calls() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let call = cx.call(session, NEVER, cx.copy(b"x").unwrap());
                let hang_up = async {
                    cx.sleep(Duration::from_millis(1)).await;
                    assert!(cx.disconnect(session).is_ok());
                };
                let (failed, ()) = futures::join!(call, hang_up);
                let failed = failed.unwrap_err();
                assert!(failed.error.is_closed(), "{}", failed.error);
                assert_eq!(failed.request.data(), b"x");
            });
        },
        |_| (),
    );
}

#[test]
fn a_call_may_move_to_another_task_once_it_is_issued() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let (sender, receiver) = oneshot::channel();
                let issuer = cx.clone();
                cx.spawn(async move {
                    let request = issuer.copy(b"moved").unwrap();
                    let mut call = issuer.call(session, ECHO, request);
                    assert!(futures::poll!(&mut call).is_pending());
                    let _ = sender.send(call);
                    std::future::pending::<()>().await;
                });
                let (done, ended) = oneshot::channel();
                cx.spawn(async move {
                    let reply = receiver.await.unwrap().await.unwrap();
                    let _ = done.send(reply.data().to_vec());
                });
                assert_eq!(ended.await.unwrap(), b"moved");
            });
        },
        |_| (),
    );
}

#[test]
fn a_response_waits_until_its_future_is_polled() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let (done, ended) = oneshot::channel();
                let own = cx.clone();
                cx.spawn(async move {
                    let call = |word: &[u8]| own.call(session, ECHO, own.copy(word).unwrap());
                    let (mut early, late) = (call(b"early"), call(b"late"));
                    assert!(futures::poll!(&mut early).is_pending());
                    let late = late.await.unwrap();
                    own.sleep(Duration::from_millis(5)).await;
                    let early = early.await.unwrap();
                    let _ = done.send([early.data().to_vec(), late.data().to_vec()]);
                });
                assert_eq!(ended.await.unwrap(), [&b"early"[..], b"late"]);
            });
        },
        |_| (),
    );
}

#[test]
fn a_call_that_is_dropped_when_its_response_is_there_gives_its_msgbufs_back() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            let in_use = local.pool_use().1;
            local.block_on(|cx| async move {
                let (done, ended) = oneshot::channel();
                let own = cx.clone();
                cx.spawn(async move {
                    let call = |word: &[u8]| own.call(session, ECHO, own.copy(word).unwrap());
                    let (mut offered, mut kept) = (Some(call(b"offered")), call(b"kept"));
                    // The poll that the response causes drops the call without looking at the
                    // response.
                    let mut is_first = true;
                    std::future::poll_fn(|context| {
                        if std::mem::take(&mut is_first) {
                            let offered = offered.as_mut().unwrap().poll_unpin(context);
                            return match kept.poll_unpin(context).is_pending() {
                                true => offered.map(drop),
                                false => panic!("no response has come yet"),
                            };
                        }
                        drop(offered.take());
                        std::task::Poll::Ready(())
                    })
                    .await;
                    own.sleep(Duration::from_millis(20)).await;
                    drop(kept);
                    let _ = done.send(());
                });
                ended.await.unwrap();
            });
            // If the response had not come by then, the call was cancelled, and its end gives the
            // msgbufs back.
            wait_for_msgbufs(&mut local, in_use);
        },
        |_| (),
    );
}

/// Runs the endpoint until no more than `in_use` msgbufs are out.
fn wait_for_msgbufs(local: &mut Local<Shm>, in_use: usize) {
    let deadline = Instant::now() + PATIENCE;
    while local.pool_use().1 > in_use {
        assert!(Instant::now() < deadline, "{:?}", local.pool_use());
        local.turn();
    }
}

#[test]
fn changing_a_call_that_is_issued_has_no_effect() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            let reply = local.block_on(|cx| async move {
                let mut call = cx.call(session, ECHO, cx.copy(b"word").unwrap());
                assert!((&mut call).now_or_never().is_none());
                let call = call.room(1).deadline(Duration::from_nanos(1));
                call.response(cx.buf(1).unwrap()).await
            });
            assert_eq!(reply.unwrap().data(), b"word");
        },
        |_| (),
    );
}
