//! Handlers as futures.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin::{AsyncError, Caller, ErrorCode, Local, OwnedRequest, Ran, RpcError, Session, Shm};
use futures::future::Either;

use crate::local::{ECHO, FORGET, NESTED, NEVER, PANIC, beside, client, echo};

#[test]
fn a_handler_calls_others_before_it_answers() {
    beside(
        echo,
        |storage| {
            beside(
                |front| {
                    let storage = front.connect(storage).unwrap();
                    front.serve(NESTED, move |mut request, cx| async move {
                        let first = cx.call(storage, ECHO, request.take_buf()?).await?;
                        cx.sleep(Duration::from_micros(100)).await;
                        let second = cx.call(storage, ECHO, first.into_response()).await?;
                        request.reply(&second)
                    });
                },
                |front| {
                    let (mut local, session) = client(front);
                    for _ in 0..10 {
                        let reply = local.block_on(|cx| async move {
                            cx.call(session, NESTED, cx.copy(b"through").unwrap()).await
                        });
                        assert_eq!(reply.unwrap().data(), b"through");
                    }
                },
                |_| (),
            );
        },
        |_| (),
    );
}

#[test]
fn a_panic_ends_one_request() {
    let ((), panics) = beside(
        |local| {
            echo(local);
            local.serve(PANIC, |request, cx| async move {
                cx.sleep(Duration::from_micros(1)).await;
                if request.data() == b"panic" {
                    std::panic::resume_unwind(Box::new("as asked"));
                }
                request.reply([])
            });
            local.serve(FORGET, |request, _| {
                if request.data() == b"panic" {
                    std::panic::resume_unwind(Box::new("before there is a future"));
                }
                async move {
                    drop(request);
                    Ok(())
                }
            });
        },
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let failed = AsyncError::Rpc(RpcError::rejected(ErrorCode::HANDLER_FAILED, true));
                for _ in 0..3 {
                    for (req_type, word) in [(PANIC, "panic"), (FORGET, "panic"), (FORGET, "drop")]
                    {
                        let request = cx.copy(word.as_bytes()).unwrap();
                        let error = cx.call(session, req_type, request).await.unwrap_err().error;
                        assert_eq!(error, failed);
                    }
                    cx.call(session, PANIC, cx.copy(b"well").unwrap())
                        .await
                        .unwrap();
                    cx.call(session, ECHO, cx.copy(b"x").unwrap())
                        .await
                        .unwrap();
                }
            });
        },
        |local| local.panics(),
    );
    assert_eq!(panics, 6);
}

/// A future that still has its request after it has panicked; an `async` block would have dropped
/// it.
struct Bomb {
    request: OwnedRequest,
    polls: usize,
}

impl Future for Bomb {
    type Output = Result<(), AsyncError>;

    /// Panics after as many polls as the request has bytes.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == self.request.data().len() {
            std::panic::resume_unwind(Box::new("as asked"));
        }
        self.polls += 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[test]
fn a_future_that_panics_is_dropped_with_what_it_holds() {
    let ((), panics) = beside(
        |local| local.serve(PANIC, |request, _| Bomb { request, polls: 0 }),
        |address| {
            let (mut local, session) = client(address);
            for body in ["", "x"] {
                let call = local.block_on(|cx| async move {
                    let call = cx.call(session, PANIC, cx.copy(body.as_bytes()).unwrap());
                    call.deadline(Duration::from_secs(5)).await
                });
                let failed = AsyncError::Rpc(RpcError::rejected(ErrorCode::HANDLER_FAILED, true));
                assert_eq!(call.unwrap_err().error, failed);
            }
        },
        |local| local.panics(),
    );
    assert_eq!(panics, 2);
}

/// Counts when it is dropped.
struct Noted(Rc<Cell<u32>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A server whose `NEVER` waits forever, and whose `ECHO` answers how many such futures were
/// dropped.
fn count_dropped(local: &mut Local<Shm>) {
    let dropped = Rc::new(Cell::new(0));
    let told = Rc::clone(&dropped);
    local.serve(NEVER, move |request, _| {
        let noted = Noted(Rc::clone(&dropped));
        async move {
            std::future::pending::<()>().await;
            drop(noted);
            request.reply([])
        }
    });
    local.serve(ECHO, move |request, _| {
        let dropped = told.get();
        async move { request.reply(dropped.to_le_bytes()) }
    });
}

/// Waits until the server reports that `count` futures were dropped.
async fn wait_for_dropped(cx: &Caller, session: Session, count: u32) {
    for _ in 0..2000 {
        let asked = cx.call(session, ECHO, cx.copy(b"?").unwrap());
        if asked.await.unwrap().data() == count.to_le_bytes() {
            return;
        }
        cx.sleep(Duration::from_millis(1)).await;
    }
    panic!("the handlers' futures were not dropped");
}

#[test]
fn the_future_of_a_handler_is_dropped_when_its_client_gives_up() {
    let ((), counters) = beside(
        count_dropped,
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let call = cx.call(session, NEVER, cx.copy(b"x").unwrap());
                let late = call.deadline(Duration::from_millis(1)).await.unwrap_err();
                assert_eq!(
                    late.error,
                    AsyncError::Rpc(RpcError::DeadlinePassed(Ran::Unknown))
                );
                wait_for_dropped(&cx, session, 1).await;
                let call = cx.call(session, NEVER, cx.copy(b"x").unwrap());
                let nap = cx.sleep(Duration::from_millis(1));
                drop(futures::future::select(call, nap).await);
                wait_for_dropped(&cx, session, 2).await;
            });
            // The end of a session drops the futures as well.
            let other = local.connect(address).unwrap();
            local.block_on(|cx| async move {
                cx.connected(other).await.unwrap();
                let call = cx.call(other, NEVER, cx.copy(b"x").unwrap());
                let nap = cx.sleep(Duration::from_millis(5));
                let Either::Right(((), call)) = futures::future::select(call, nap).await else {
                    panic!("a call to NEVER got an answer");
                };
                cx.disconnect(other).unwrap();
                assert!(call.await.unwrap_err().error.is_closed());
                wait_for_dropped(&cx, session, 3).await;
            });
        },
        Local::counters,
    );
    assert_eq!(counters.unanswered, 0);
}

#[test]
fn calls_of_a_dropped_handler_are_cancelled_too() {
    beside(
        count_dropped,
        |storage| {
            beside(
                |front| {
                    let storage = front.connect(storage).unwrap();
                    front.serve(NESTED, move |mut request, cx| async move {
                        let reply = cx.call(storage, NEVER, request.take_buf()?).await?;
                        request.reply(&reply)
                    });
                },
                |front| {
                    let (mut local, session) = client(front);
                    let storage = local.connect(storage).unwrap();
                    local.block_on(|cx| async move {
                        let call = cx.call(session, NESTED, cx.copy(b"x").unwrap());
                        // On a busy machine, the front server takes its time to call the storage.
                        let patience = Duration::from_millis(200);
                        call.deadline(patience).await.unwrap_err();
                        wait_for_dropped(&cx, storage, 1).await;
                    });
                },
                |_| (),
            );
        },
        |_| (),
    );
}

#[test]
fn futures_that_a_handler_has_spawned_run_to_their_end() {
    beside(
        |local| {
            let done = Rc::new(Cell::new(false));
            let told = Rc::clone(&done);
            local.serve(NEVER, move |request, cx| {
                let done = Rc::clone(&done);
                async move {
                    let clock = cx.clone();
                    cx.spawn(async move {
                        while !request.is_cancelled() {
                            clock.sleep(Duration::from_micros(100)).await;
                        }
                        done.set(true);
                    });
                    std::future::pending().await
                }
            });
            local.serve(ECHO, move |request, _| {
                let seen = u32::from(told.get());
                async move { request.reply(seen.to_le_bytes()) }
            });
        },
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let call = cx.call(session, NEVER, cx.copy(b"x").unwrap());
                call.deadline(Duration::from_millis(1)).await.unwrap_err();
                wait_for_dropped(&cx, session, 1).await;
            });
        },
        |_| (),
    );
}

#[test]
fn a_handler_that_closes_its_own_session_is_dropped_where_it_waits() {
    let dropped = Rc::new(Cell::new(0));
    let nexus = dunlin::Nexus::bind("127.0.0.1:0").unwrap();
    // An endpoint that calls itself.
    let mut local = crate::local::local(&nexus);
    let noted = Rc::clone(&dropped);
    local.serve(NEVER, move |request, cx| {
        let noted = Noted(Rc::clone(&noted));
        async move {
            assert!(cx.disconnect(request.session()).is_ok());
            std::future::pending::<()>().await;
            drop(noted);
            request.reply([])
        }
    });
    let session = local.connect(nexus.address()).unwrap();
    local.block_on(|cx| async move {
        let call = cx.call(session, NEVER, cx.copy(b"x").unwrap());
        assert!(call.await.unwrap_err().error.is_closed());
        for _ in 0..1000 {
            if dropped.get() == 1 {
                return;
            }
            cx.sleep(Duration::from_millis(1)).await;
        }
        panic!("the handler's future waits forever");
    });
    assert_eq!(local.panics(), 0);
}

#[test]
fn an_operation_within_an_operation_is_refused() {
    beside(
        |local| {
            local.serve(ECHO, |request, cx| async move {
                let mut refused = false;
                request.reply_with(1, |out| {
                    refused = cx.buf(1).err() == Some(AsyncError::Unavailable);
                    out[0] = u8::from(refused);
                })?;
                // After the refusal, the endpoint can be used again.
                cx.buf(1).map(drop)
            });
        },
        |address| {
            let (mut local, session) = client(address);
            for _ in 0..3 {
                let reply = local.block_on(|cx| async move {
                    cx.call(session, ECHO, cx.copy(b"x").unwrap()).await
                });
                assert_eq!(reply.unwrap().data(), [1]);
            }
        },
        |_| (),
    );
}

#[test]
fn a_request_that_is_dropped_while_another_is_answered_fails() {
    beside(
        |local| {
            let held = Rc::new(Cell::new(None::<OwnedRequest>));
            local.serve(ECHO, move |request, _| {
                let held = Rc::clone(&held);
                async move {
                    let Some(earlier) = held.take() else {
                        held.set(Some(request));
                        return Ok(());
                    };
                    earlier.reply_with(1, |out| {
                        // The endpoint is in use now.
                        drop(request);
                        out[0] = 7;
                    })
                }
            });
        },
        |address| {
            let (mut local, session) = client(address);
            for _ in 0..3 {
                let [first, second] = local.block_on(|cx| async move {
                    let calls = [b"a", b"b"].map(|word| cx.copy(word).unwrap());
                    let [first, second] = calls.map(|word| cx.call(session, ECHO, word));
                    let (first, second) = futures::join!(first, second);
                    [first, second]
                });
                let failed = AsyncError::Rpc(RpcError::rejected(ErrorCode::HANDLER_FAILED, true));
                assert_eq!(first.unwrap().data(), [7]);
                assert_eq!(second.unwrap_err().error, failed);
            }
        },
        |_| (),
    );
}
