//! After the first calls over a channel, no thread allocates: the caller's, the hub's or the
//! server's (design §11). This also holds with layers on both sides that add nothing. The control
//! plane's threads send heartbeats and are not counted.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use dunlin::service::Fixed;
use dunlin::{Auto, Channel, ChannelBuilder, Hub, Nexus, ReqType, Rpc, Server, service};
use dunlin_testkit::counting::{allocations_of_watched_threads_in, watch_this_thread};
use tower::Service;
use zerocopy::little_endian::U64;

const ECHO: ReqType = ReqType(1);

/// The number of calls in a span, and the most spans. After a few spans, the tables of all threads
/// have grown to their final size; how many spans it takes depends on the load of the machine.
const CALLS: usize = 5_000;
const SPANS: usize = 20;

/// One test at a time counts.
static ALONE: Mutex<()> = Mutex::new(());

/// A thread that waits for its call, and whether the hub's thread is watched.
struct Unpark(Thread, AtomicBool);

impl Unpark {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::thread::current(), AtomicBool::new(false)))
    }
}

impl Wake for Unpark {
    /// Runs in the hub's thread when it wakes the caller, and starts to watch that thread.
    fn wake(self: Arc<Self>) {
        watch_this_thread();
        self.1.store(true, Ordering::Relaxed);
        self.0.unpark();
    }
}

/// Waits for the end of a call.
fn ended<F: Future>(call: F, context: &mut Context<'_>) -> F::Output {
    let mut call = pin!(call);
    loop {
        match call.as_mut().poll(context) {
            Poll::Ready(end) => return end,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs `calls` until a span of them allocates nothing, on this thread, the hub's or others that
/// are watched.
fn prove(mut calls: impl FnMut(&mut Context<'_>)) {
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    watch_this_thread();
    let mut span = || allocations_of_watched_threads_in(|| calls(&mut context));
    let mut counts = vec![span()];
    while counts.last() != Some(&0) && counts.len() < SPANS {
        counts.push(span());
    }
    // Checks that the proof can fail.
    let seen = allocations_of_watched_threads_in(|| {
        drop(std::hint::black_box(Box::new(1)));
    });
    assert_eq!(counts.last(), Some(&0), "{counts:?}");
    assert_eq!(seen, 1);
    assert!(unpark.1.load(Ordering::Relaxed));
}

fn channel() -> ChannelBuilder {
    let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
    hub.channel()
}

fn calls(channel: &Channel, context: &mut Context<'_>) {
    for number in 0..CALLS {
        let body = number.to_le_bytes();
        let answer = ended(channel.call(ECHO, &body), context).unwrap();
        assert_eq!(answer.data(), body);
        // Drops one more call while it is in flight.
        let mut dropped = pin!(channel.call(ECHO, b"unwanted"));
        // The call may have its answer already, if the kernel stopped this thread in the middle of
        // the poll.
        drop(dropped.as_mut().poll(context));
    }
}

#[test]
fn calls_allocate_nothing_on_any_thread() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
        // A proof that fails must not leave the server running.
        let _stop = Stop(&stopped);
        let channel = channel().address(nexus.address().to_string());
        let channel = channel.open().unwrap();
        prove(|context| calls(&channel, context));
    });
}

/// Stops a server when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[service(codec = Fixed)]
trait Doubles {
    #[method(2)]
    fn twice(number: U64) -> U64;
}

struct Doubler;

impl Doubles for Doubler {
    async fn twice(&self, number: &U64, _: dunlin::service::Context<'_>) -> U64 {
        U64::new(2 * number.get())
    }
}

/// A layer that passes everything on.
#[derive(Clone)]
struct Empty<S>(S);

impl<S: Service<R>, R> Service<R> for Empty<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}

#[test]
fn layers_on_both_sides_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::builder().service(|_| DoublesServer(Doubler));
    // This closure runs in the thread of the server.
    let server = server.layer(|handlers| {
        watch_this_thread();
        Empty(handlers)
    });
    let server = server.start("127.0.0.1:0").unwrap();
    let channel = channel().address(server.address().to_string());
    let channel = channel.open().unwrap();
    let doubles = DoublesClient::over(channel.through(Empty(channel.clone())));
    prove(|context| {
        for number in (0..).map(U64::new).take(CALLS) {
            let doubled = ended(doubles.twice(&number), context);
            assert_eq!(doubled.unwrap().get(), 2 * number.get());
        }
    });
}
