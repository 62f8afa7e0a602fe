//! No allocation per call after set-up, on either side (design §11).

use std::time::Duration;

use dunlin::{Caller, Session};

use crate::local::{ECHO, local};
use dunlin_testkit::counting::{allocations_in, first_allocation};

const WARM_UP: usize = 2_000;
const CALLS: usize = 10_000;

async fn calls(cx: Caller, session: Session, count: usize) {
    for _ in 0..count {
        let request = cx.copy(b"twenty bytes, or so").unwrap();
        let call = cx.call(session, ECHO, request).room(64);
        let nap = cx.sleep(Duration::from_secs(10));
        let both = futures::future::select(call, nap).await;
        let futures::future::Either::Left((reply, _)) = both else {
            panic!("ten seconds passed");
        };
        assert_eq!(reply.unwrap().data(), b"twenty bytes, or so");
        // One more call, by itself, with a deadline.
        let request = cx.copy(b"x").unwrap();
        let call = cx
            .call(session, ECHO, request)
            .room(64)
            .deadline(Duration::from_secs(10));
        call.await.unwrap();
    }
}

/// An endpoint that calls itself, so that one thread does what both sides do.
#[test]
fn calls_and_handlers_allocate_nothing() {
    let nexus = dunlin::Nexus::bind("127.0.0.1:0").unwrap();
    let mut local = local(&nexus);
    local.serve(ECHO, |request, cx| async move {
        cx.sleep(Duration::from_nanos(1)).await;
        let body = request.to_buf()?;
        request.reply(body.data())
    });
    let session = local.connect(nexus.address()).unwrap();
    local.block_on(|cx| calls(cx, session, WARM_UP));
    let count = allocations_in(|| local.block_on(|cx| calls(cx, session, CALLS)));
    assert_eq!(count, 0, "first: {}", first_allocation());
}

/// Nothing is left of an `Events` that was dropped, even if no session opens or closes.
#[test]
fn watching_sessions_needs_no_memory_afterwards() {
    let nexus = dunlin::Nexus::bind("127.0.0.1:0").unwrap();
    local(&nexus).block_on(|cx| async move {
        drop(cx.events());
        let count = allocations_in(|| (0..CALLS).for_each(|_| drop(cx.events())));
        // Each allocates its queue, and the list of all queues does not grow.
        assert_eq!(count, CALLS as u64);
        let _ = first_allocation();
    });
}

/// The proof above can fail.
#[test]
fn an_allocation_is_seen() {
    let count = allocations_in(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(count, 1);
    let _ = first_allocation();
}
