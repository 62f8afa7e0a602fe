//! Futures that panic within an iteration of the endpoint, where the endpoint's own guard is the
//! only one.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin::{AsyncError, Call, Caller, ErrorCode, Nexus, OwnedRequest, RpcError};
use futures::FutureExt;

use crate::local::{ECHO, NESTED, PANIC, PATIENCE, beside, client, echo, local};

fn handler_failed() -> AsyncError {
    AsyncError::Rpc(RpcError::rejected(ErrorCode::HANDLER_FAILED, true))
}

#[test]
fn a_panic_after_a_response_ends_one_future() {
    beside(
        echo,
        |storage| {
            let ((), (panics, used)) = beside(
                |front| {
                    let storage = front.connect(storage).unwrap();
                    front.serve(NESTED, move |mut request, cx| async move {
                        let reply = cx.call(storage, ECHO, request.take_buf()?).await?;
                        if reply.data() == b"panic" {
                            resume_unwind(Box::new("as asked"));
                        }
                        request.reply(&reply)
                    });
                },
                |front| {
                    let (mut local, session) = client(front);
                    local.block_on(|cx| async move {
                        for _ in 0..3 {
                            let panic = cx.call(session, NESTED, cx.copy(b"panic").unwrap());
                            let well = cx.call(session, NESTED, cx.copy(b"well").unwrap());
                            let (panic, well) = futures::join!(panic, well);
                            assert_eq!(panic.unwrap_err().error, handler_failed());
                            assert_eq!(well.unwrap().data(), b"well");
                        }
                    });
                },
                |front| (front.panics(), front.pool_use().1),
            );
            assert_eq!(panics, 3);
            // The memory of at most two requests keeps a msgbuf each.
            assert!(used <= 2, "{used} msgbufs are still out");
        },
        |_| (),
    );
}

/// The code to which a handler has given its request answers it, although the handler panics.
#[test]
fn a_request_that_was_passed_on_survives_the_panic_of_its_handler() {
    let ((), panics) = beside(
        |local| {
            local.serve(PANIC, |request, cx| async move {
                let clock = cx.clone();
                cx.spawn(async move {
                    clock.sleep(Duration::from_micros(100)).await;
                    let _ = request.reply(b"passed on");
                });
                resume_unwind(Box::new("as asked"));
            });
        },
        |address| {
            let (mut local, session) = client(address);
            let reply = local.block_on(|cx| async move {
                cx.call(session, PANIC, cx.copy(b"x").unwrap()).await
            });
            assert_eq!(reply.unwrap().data(), b"passed on");
        },
        |local| local.panics(),
    );
    assert_eq!(panics, 1);
}

/// Issues `call` in the task of this future, and panics when the response comes.
async fn issue_and_panic(call: Rc<RefCell<Option<Call>>>) {
    let mut is_issued = false;
    std::future::poll_fn(|context| -> Poll<()> {
        if is_issued {
            resume_unwind(Box::new("as asked"));
        }
        is_issued = true;
        let mut call = call.borrow_mut();
        assert!(call.as_mut().unwrap().poll_unpin(context).is_pending());
        Poll::Pending
    })
    .await;
}

/// The response was offered to a future that has panicked, and waits for the call's owner.
#[test]
fn a_response_survives_the_panic_of_the_future_that_it_wakes() {
    beside(
        echo,
        |address| {
            let (mut local, session) = client(address);
            let cx: Caller = local.caller();
            for word in [b"one", b"two"] {
                let call = cx.call(session, ECHO, cx.copy(word).unwrap());
                let call = Rc::new(RefCell::new(Some(call)));
                cx.spawn(issue_and_panic(Rc::clone(&call)));
                let panics = local.panics();
                while local.panics() == panics {
                    local.turn();
                }
                // Another response comes first.
                let other = local
                    .block_on(|cx| async move {
                        cx.call(session, ECHO, cx.copy(b"other").unwrap()).await
                    })
                    .unwrap();
                assert_eq!(other.data(), b"other");
                let call = call.take().unwrap();
                let ended = local.block_on(|cx| async move { cx.within(PATIENCE, call).await });
                assert_eq!(ended.unwrap().unwrap().data(), word);
            }
        },
        |_| (),
    );
}

/// A future that panics when it is dropped.
struct PanicsAtEnd<F>(Pin<Box<F>>);

impl<F: Future> Future for PanicsAtEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<F> Drop for PanicsAtEnd<F> {
    fn drop(&mut self) {
        resume_unwind(Box::new("as asked"));
    }
}

#[test]
fn the_place_of_a_future_that_panics_at_its_end_is_used_again() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local = local(&nexus);
    let waits = |request: OwnedRequest, cx: Caller| async move {
        cx.sleep(Duration::from_nanos(1)).await;
        request.reply(b"waited")
    };
    local.serve(PANIC, move |request, cx| {
        PanicsAtEnd(Box::pin(waits(request, cx)))
    });
    local.serve(ECHO, |request, _| {
        PanicsAtEnd(Box::pin(async move { request.reply(b"at once") }))
    });
    let session = local.connect(nexus.address()).unwrap();
    local.block_on(|cx| async move {
        for _ in 0..5 {
            let call = |kind| cx.call(session, kind, cx.copy(b"x").unwrap());
            assert_eq!(call(PANIC).await.unwrap().data(), b"waited");
            assert_eq!(call(ECHO).await.unwrap().data(), b"at once");
        }
    });
    assert_eq!(local.panics(), 10);
    // One for `block_on`, one for ECHO, and two for PANIC: one is free while the other is in use.
    let tasks = local.inspect(|endpoint| format!("{:?}", endpoint.app()));
    assert_eq!(tasks, "Tasks { tasks: 4, .. }");
}
