//! The mailbox in one thread: order, limits, and slots that are used again.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use super::*;

#[derive(Default)]
struct Rings(Cell<u32>);

impl Bell for Rings {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
    }
}

#[derive(Default)]
struct Call(u32);

impl Letter for Call {
    fn on_closed(&mut self) {
        self.0 = 99;
    }
}

fn mailbox(limit: u32) -> Mailbox<Call, Rings> {
    Mailbox::new(Rings::default(), limit)
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn post(mailbox: &Mailbox<Call, Rings>, number: u32) -> Slot {
    let slot = mailbox.hold().expect("there is room");
    mailbox.with(slot, |call| call.0 = number);
    mailbox.post(slot, &context());
    slot
}

fn taken(mailbox: &Mailbox<Call, Rings>) -> Vec<News> {
    let mut taken = Vec::new();
    mailbox.take(|news| taken.push(news));
    taken
}

#[test]
fn calls_come_in_their_order_over_several_blocks() {
    let mailbox = mailbox(1000);
    let slots: Vec<Slot> = (0..500).map(|number| post(&mailbox, number)).collect();
    let expected: Vec<News> = slots.iter().copied().map(News::Posted).collect();
    assert_eq!(taken(&mailbox), expected);
    let numbers = slots.iter().map(|slot| mailbox.with(*slot, |call| call.0));
    assert!(numbers.eq(0..500));
    assert!(mailbox.is_empty());
}

#[test]
fn there_are_as_many_slots_as_the_limit_and_free_ones_are_used_again() {
    let mailbox = mailbox(100);
    let slots: Vec<Slot> = (0..100).filter_map(|_| mailbox.hold()).collect();
    assert_eq!(slots.len(), 100);
    assert_eq!(mailbox.hold(), None);
    mailbox.release(slots[7]);
    assert_eq!(mailbox.hold(), Some(slots[7]));
    assert_eq!(mailbox.hold(), None);
}

#[test]
fn a_call_is_dropped_at_each_stage() {
    let mailbox = mailbox(4);
    // Dropped before it is taken: the owner finds it once, as dropped.
    let slot = post(&mailbox, 1);
    mailbox.give_up(slot);
    assert_eq!(taken(&mailbox), [News::Dropped(slot)]);
    mailbox.release(slot);
    // Dropped while it runs: its end is not delivered.
    let slot = post(&mailbox, 2);
    assert_eq!(taken(&mailbox), [News::Posted(slot)]);
    mailbox.give_up(slot);
    assert!(!mailbox.end(slot));
    assert_eq!(taken(&mailbox), [News::Dropped(slot)]);
    mailbox.release(slot);
    // Dropped after its end: the owner gets the slot's content.
    let slot = post(&mailbox, 3);
    taken(&mailbox);
    assert!(mailbox.poll_end(slot, &context()).is_pending());
    assert!(mailbox.end(slot));
    assert!(mailbox.poll_end(slot, &context()).is_ready());
    mailbox.give_up(slot);
    assert_eq!(taken(&mailbox), [News::Dropped(slot)]);
    assert_eq!(
        mailbox.bell.0.get(),
        5,
        "three calls, and two drops of what was not listed"
    );
}

#[test]
fn a_closed_mailbox_ends_every_call() {
    let mailbox = mailbox(4);
    let before = post(&mailbox, 1);
    mailbox.close();
    let after = post(&mailbox, 2);
    for slot in [before, after] {
        assert!(mailbox.poll_end(slot, &context()).is_ready());
        assert_eq!(mailbox.with(slot, |call| call.0), 99);
    }
}

#[test]
fn a_panic_of_the_owner_leaves_no_call_without_an_end() {
    let mailbox = mailbox(100);
    let slots: Vec<Slot> = (0..80).map(|number| post(&mailbox, number)).collect();
    let mut seen = 0;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        mailbox.take(|_| {
            seen += 1;
            assert!(seen < 70, "a planted panic");
        });
    }));
    assert!(panicked.is_err());
    let has_ended = |slot: &&Slot| mailbox.poll_end(**slot, &context()).is_ready();
    let ended = || slots.iter().filter(has_ended).count();
    assert_eq!(ended(), 10, "those that the owner has not seen");
    mailbox.end_taken(|call| call.0 = 77);
    assert_eq!(ended(), 80);
    let ends = slots.iter().map(|slot| mailbox.with(*slot, |call| call.0));
    let expected = (0..80).map(|number| if number < 70 { 77 } else { 99 });
    assert!(ends.eq(expected));
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a planted panic");
    }
}

#[test]
fn a_waker_that_panics_does_not_harm_the_owner() {
    let mailbox = mailbox(4);
    let slot = mailbox.hold().expect("there is room");
    mailbox.post(slot, &Context::from_waker(&Waker::from(Arc::new(Panics))));
    assert_eq!(taken(&mailbox), [News::Posted(slot)]);
    assert!(mailbox.end(slot));
    assert!(mailbox.poll_end(slot, &context()).is_ready());
}

/// Notes its number when it is woken.
struct Task(u32, Arc<Mutex<Vec<u32>>>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.1.lock().expect("no test panics with it").push(self.0);
    }
}

/// Calls of tasks with the numbers 0, 1, 2; the owner has ended them, and wakes their tasks later.
fn ended_burst(mailbox: &Mailbox<Call, Rings>) -> (Vec<Slot>, Arc<Mutex<Vec<u32>>>) {
    let woken = Arc::new(Mutex::new(Vec::new()));
    let call = |number| {
        let slot = post(mailbox, number);
        let task = Waker::from(Arc::new(Task(number, Arc::clone(&woken))));
        let polled = mailbox.poll_end(slot, &Context::from_waker(&task));
        assert!(polled.is_pending());
        slot
    };
    let slots: Vec<Slot> = (0..3).map(call).collect();
    assert_eq!(taken(mailbox).len(), 3);
    assert!(mailbox.all_are_woken());
    assert!(slots.iter().all(|slot| mailbox.end_later(*slot)));
    (slots, woken)
}

#[test]
fn the_first_task_of_a_burst_wakes_the_others() {
    let mailbox = mailbox(8);
    let (slots, woken) = ended_burst(&mailbox);
    let woken = || woken.lock().expect("no test panics with it").clone();
    assert!(woken().is_empty() && mailbox.has_new_burst());
    mailbox.wake_first();
    assert_eq!(woken(), [0]);
    assert!(!mailbox.has_new_burst() && !mailbox.all_are_woken());
    assert!(mailbox.poll_end(slots[0], &context()).is_ready());
    assert_eq!(woken(), [0, 1, 2]);
    assert!(mailbox.all_are_woken());
}

#[test]
fn the_owner_wakes_tasks_that_the_first_one_does_not() {
    let mailbox = mailbox(8);
    let (slots, woken) = ended_burst(&mailbox);
    mailbox.wake_first();
    // The first task goes away before it looks at its call.
    mailbox.give_up(slots[0]);
    mailbox.wake_all();
    assert_eq!(*woken.lock().expect("no test panics with it"), [0, 1, 2]);
    assert!(mailbox.all_are_woken());
}

#[test]
fn an_owner_that_closes_wakes_all_tasks() {
    let mailbox = mailbox(8);
    let (_, woken) = ended_burst(&mailbox);
    mailbox.close();
    assert_eq!(*woken.lock().expect("no test panics with it"), [0, 1, 2]);
}

#[test]
fn a_call_that_was_dropped_has_no_task_to_wake() {
    let mailbox = mailbox(8);
    let slot = post(&mailbox, 1);
    assert_eq!(taken(&mailbox).len(), 1);
    mailbox.give_up(slot);
    assert!(!mailbox.end_later(slot));
    assert!(mailbox.all_are_woken() && !mailbox.has_new_burst());
}
