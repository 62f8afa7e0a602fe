//! After the first calls over a channel no thread allocates: neither the caller's, nor the hub's,
//! nor the server's (design §11). The control plane's threads send heartbeats and are not counted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use dunlin::{Auto, Channel, Hub, Nexus, ReqType, Rpc};
use dunlin_testkit::counting::{Counting, allocations_of_watched_threads_in, watch_this_thread};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ECHO: ReqType = ReqType(1);

/// The number of calls in a span, and the most spans. After a few spans, the tables of all threads
/// have grown to their final size; how many spans it takes depends on the load of the machine.
const CALLS: usize = 5_000;
const SPANS: usize = 20;

/// Whether the hub's thread is watched.
static HUB: AtomicBool = AtomicBool::new(false);

struct Unpark(Thread);

impl Wake for Unpark {
    /// Runs in the hub's thread when it wakes the caller, and starts to watch that thread.
    fn wake(self: Arc<Self>) {
        watch_this_thread();
        HUB.store(true, Ordering::Relaxed);
        self.0.unpark();
    }
}

fn calls(channel: &Channel, waker: &Waker, count: usize) {
    let mut context = Context::from_waker(waker);
    for number in 0..count {
        let body = number.to_le_bytes();
        let mut call = pin!(channel.call(ECHO, &body));
        let answer = loop {
            match call.as_mut().poll(&mut context) {
                Poll::Ready(answer) => break answer.unwrap(),
                Poll::Pending => std::thread::park(),
            }
        };
        assert_eq!(answer.data(), body);
        // Drops one more call while it is under way.
        let mut dropped = pin!(channel.call(ECHO, b"unwanted"));
        // The call may have its answer already, if the kernel stopped this thread in the middle of
        // the poll.
        drop(dropped.as_mut().poll(&mut context));
    }
}

#[test]
fn calls_allocate_nothing_on_any_thread() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            watch_this_thread();
            let mut rpc: Rpc<Auto, ()> = nexus.endpoint(()).unwrap();
            rpc.on(ECHO, |(), request, cx| {
                let mut body = [0; 8];
                body.copy_from_slice(&request.data()[..8]);
                request.reply_bytes(cx, &body);
            });
            rpc.run_until(|_| stopped.load(Ordering::Relaxed));
        });
        let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
        let channel = hub.channel().address(nexus.address().to_string());
        let channel = channel.open().unwrap();
        watch_this_thread();
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let span = || allocations_of_watched_threads_in(|| calls(&channel, &waker, CALLS));
        let mut counts = vec![span()];
        while counts.last() != Some(&0) && counts.len() < SPANS {
            counts.push(span());
        }
        // Checks that the proof can fail.
        let seen = allocations_of_watched_threads_in(|| {
            drop(std::hint::black_box(Box::new(1)));
        });
        stopped.store(true, Ordering::Relaxed);
        assert_eq!(counts.last(), Some(&0), "{counts:?}");
        assert_eq!(seen, 1);
        assert!(HUB.load(Ordering::Relaxed));
    });
}
