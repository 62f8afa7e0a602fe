//! Handlers as futures.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use dunlin::{AsyncError, ErrorCode, RpcError};

use crate::{ECHO, FORGET, NESTED, NEVER, PANIC, beside, client, echo};

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
                let failed = AsyncError::Rpc(RpcError::Rejected(ErrorCode::HANDLER_FAILED));
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

#[test]
fn a_handler_learns_that_its_client_has_cancelled() {
    let seen = beside(
        |local| {
            let seen = Rc::new(Cell::new(false));
            let told = Rc::clone(&seen);
            local.serve(NEVER, move |request, cx| {
                let seen = Rc::clone(&seen);
                async move {
                    while !request.is_cancelled() {
                        cx.sleep(Duration::from_micros(100)).await;
                    }
                    seen.set(true);
                    request.reject(ErrorCode::application(1))
                }
            });
            local.serve(ECHO, move |request, _| {
                let seen = u8::from(told.get());
                async move { request.reply([seen]) }
            });
        },
        |address| {
            let (mut local, session) = client(address);
            local.block_on(|cx| async move {
                let call = cx.call(session, NEVER, cx.copy(b"x").unwrap());
                call.deadline(Duration::from_millis(1)).await.unwrap_err();
                for _ in 0..1000 {
                    let reply = cx
                        .call(session, ECHO, cx.copy(b"?").unwrap())
                        .await
                        .unwrap();
                    if reply.data() == [1] {
                        return true;
                    }
                    cx.sleep(Duration::from_millis(1)).await;
                }
                false
            })
        },
        |_| (),
    );
    assert!(seen.0, "the handler was not told");
}
