//! Threads of a hub that panic, and tasks whose wakers panic.

use std::pin::Pin;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use dunlin_channel::State;
use dunlin_testkit::wait::block_on;
use dunlin_wire::{Ran, ReqType};

use super::*;
use crate::channel::{Channel, ChannelBuilder};
use crate::error::ChannelError;

/// An address at which no server listens.
const NOWHERE: &str = "127.0.0.1:1";

/// A timeout that only a failing test reaches.
const LONG: Duration = Duration::from_secs(20);

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a planted panic");
    }
}

/// Polls a future once, with a waker that panics.
fn poll_once<F: Future>(future: Pin<&mut F>) {
    let waker = Waker::from(Arc::new(Panics));
    let poll = future.poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
}

fn hub() -> Hub {
    Hub::builder().listen("127.0.0.1:0").start().expect("a hub")
}

fn open(builder: ChannelBuilder) -> Channel {
    let channel = builder.address(NOWHERE).patience(LONG).open();
    channel.expect("a channel")
}

fn is_closed<T>(end: Result<T, ChannelError>) -> bool {
    matches!(end, Err(ChannelError::Closed))
}

#[test]
fn after_a_thread_panics_all_calls_and_waits_end_and_later_ones_are_refused() {
    let hub = hub();
    let channel = open(hub.channel());
    let (waiting, watched, called) = (channel.clone(), channel.watch(), channel.clone());
    let ready = std::thread::spawn(move || block_on(waiting.ready()));
    let call = std::thread::spawn(move || block_on(called.call(ReqType(1), b"")));
    let mut watched = watched;
    while block_on(watched.changed()).expect("it is alive").state != State::Gone {}
    for running in &hub.inner.threads {
        running.post.orders.send(Order::Panic);
    }
    assert!(is_closed(ready.join().expect("no panic")));
    let end = call.join().expect("no panic").map(drop);
    assert!(end.as_ref().is_err(), "{end:?}");
    assert_eq!(block_on(watched.changed()), None);
    assert!(is_closed(block_on(channel.call(ReqType(1), b""))));
    let later = open(hub.channel());
    assert!(is_closed(block_on(later.ready())));
    assert!(is_closed(block_on(later.call(ReqType(1), b""))));
}

#[test]
fn a_dead_hub_of_the_process_is_replaced() {
    let first = Hub::of_process().expect("a hub");
    assert!(Arc::ptr_eq(
        &first.inner,
        &Hub::of_process().expect("a hub").inner
    ));
    let channel = open(first.channel());
    first.inner.threads[0].post.orders.send(Order::Panic);
    assert!(is_closed(block_on(channel.ready())));
    let second = Hub::of_process().expect("a hub");
    assert!(!Arc::ptr_eq(&first.inner, &second.inner));
    assert!(!second.inner.threads[0].has_ended());
}

#[test]
fn wakers_that_panic_end_no_other_call() {
    let hub = hub();
    let short = hub.channel().address(NOWHERE);
    let short = short.patience(Duration::from_millis(50)).open();
    let short = short.expect("a channel");
    let mut call = Box::pin(short.call(ReqType(1), b""));
    poll_once(call.as_mut());
    let mut ready = Box::pin(short.ready());
    poll_once(ready.as_mut());
    for _ in 0..2 {
        let end = block_on(short.call(ReqType(1), b"")).map(drop);
        assert!(matches!(end, Err(ChannelError::NoServer(_))), "{end:?}");
        let end = block_on(short.ready());
        assert!(matches!(end, Err(ChannelError::NoServer(_))), "{end:?}");
    }
    let end = block_on(call).map(drop);
    assert_eq!(end.map_err(|error| error.ran()), Err(Ran::No));
    assert!(matches!(block_on(ready), Err(ChannelError::NoServer(_))));
}
