//! When a burst of requests wakes the dispatcher, with a waker that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};

use dunlin_mailbox::Slot;

use super::*;
use crate::desk::Owner;

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The endpoint's side of a desk, and a dispatcher that only counts how often it is woken.
struct World {
    desk: Arc<Desk>,
    dispatcher: Arc<Owner>,
    wakes: Arc<Count>,
    bursts: Bursts,
}

impl World {
    fn new() -> Self {
        let desk = Desk::new(16);
        let this = Self {
            dispatcher: Owner::new(&desk),
            desk,
            wakes: Arc::default(),
            bursts: Bursts::default(),
        };
        this.listen();
        this
    }

    fn listen(&self) {
        self.dispatcher
            .listen(&Waker::from(Arc::clone(&self.wakes)));
    }

    fn post(&self, now: Nanos) -> Option<Leader<'_>> {
        let mailbox = self.desk.mailbox();
        let slot: Slot = mailbox.hold().expect("there are sixteen");
        mailbox.post_quietly(slot, &Context::from_waker(Waker::noop()));
        self.bursts.on_post(&self.desk, || now)
    }

    /// The dispatcher takes all requests, and waits for further ones.
    fn take(&self) -> usize {
        self.listen();
        let mut taken = 0;
        self.desk.mailbox().take(|_| taken += 1);
        taken
    }

    fn wakes(&self) -> u32 {
        self.wakes.0.load(Ordering::Relaxed)
    }
}

const START: Nanos = Nanos::from_millis(1);

#[test]
fn a_burst_wakes_the_dispatcher_once_after_an_iteration_without_a_request() {
    let world = World::new();
    let mut leader = world.post(START).expect("it is the first");
    assert!(world.post(START).is_none());
    assert!(leader.act(START), "more may come");
    assert!(world.post(START).is_none());
    assert!(leader.act(START), "more may come");
    assert_eq!(world.wakes(), 0);
    assert!(leader.act(START), "the dispatcher has not run");
    assert_eq!(world.wakes(), 1);
    assert_eq!(world.take(), 3);
    assert!(!leader.act(START));
    drop(leader);
    assert_eq!(world.wakes(), 1);
}

#[test]
fn a_burst_that_does_not_end_wakes_the_dispatcher_after_the_longest_time() {
    let world = World::new();
    let mut leader = world.post(START).expect("it is the first");
    for at in 0..10 {
        leader.act(START + Nanos(at));
        world.post(START);
    }
    assert_eq!(world.wakes(), 0);
    leader.act(START + LONGEST);
    assert_eq!(world.wakes(), 1);
}

#[test]
fn a_request_that_comes_after_the_wake_up_begins_a_burst() {
    let world = World::new();
    let mut first = world.post(START).expect("it is the first");
    while world.wakes() == 0 {
        first.act(START);
    }
    assert_eq!(world.take(), 1);
    let mut second = world.post(START).expect("the burst before is over");
    while world.wakes() == 1 {
        second.act(START);
    }
    assert_eq!(world.take(), 1);
}

/// The request of the leader may end early, because its client gives it up.
#[test]
fn a_leader_that_is_dropped_wakes_the_dispatcher_for_the_others() {
    let world = World::new();
    let leader = world.post(START).expect("it is the first");
    assert!(world.post(START).is_none());
    drop(leader);
    assert_eq!(world.wakes(), 1);
    assert_eq!(world.take(), 2);
    assert!(world.post(START).is_some());
}

/// The endpoint gives way again if the dispatcher is late, and only once.
#[test]
fn a_leader_waits_a_little_for_the_dispatcher() {
    let world = World::new();
    let mut leader = world.post(START).expect("it is the first");
    assert!(leader.act(START));
    assert!(leader.act(START), "the dispatcher has not run");
    assert!(leader.act(START + Nanos(PAUSE.0 - 1)));
    assert!(!leader.act(START + PAUSE));
    assert_eq!(world.wakes(), 1);
}
