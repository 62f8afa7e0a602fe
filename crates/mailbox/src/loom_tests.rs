//! The mailbox under loom: every interleaving of a few steps, and planted bugs that it finds.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p dunlin-mailbox --lib loom
//! ```

use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::fence;
use loom::thread;

use super::*;
use crate::sync::AtomicU32 as Count;

/// The bell of an endpoint's thread (`crates/nexus/src/doorbell.rs`), with a count in place of its
/// descriptor. Loom treats `SeqCst` fences as sequentially consistent, but not `SeqCst` loads and
/// stores.
struct Door {
    rung: AtomicBool,
    asleep: AtomicBool,
    signals: Count,
}

impl Door {
    fn new() -> Self {
        Self {
            rung: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            signals: Count::new(0),
        }
    }

    fn take(&self) -> bool {
        self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::SeqCst)
    }

    fn sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        !self.rung.load(Ordering::SeqCst)
    }
}

impl Bell for Door {
    fn ring(&self) {
        let was_rung = self.rung.swap(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !was_rung && self.asleep.load(Ordering::SeqCst) {
            self.signals.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[derive(Default)]
struct Call {
    request: u32,
    end: Option<u32>,
}

const CLOSED: u32 = 99;

impl Letter for Call {
    fn on_closed(&mut self) {
        self.end = Some(CLOSED);
    }
}

type Box = Mailbox<Call, Door>;

fn mailbox(flaw: Flaw) -> Arc<Box> {
    let mut mailbox = Mailbox::new(Door::new(), 4);
    mailbox.flaw = flaw;
    Arc::new(mailbox)
}

fn post(mailbox: &Box, request: u32) -> Slot {
    let slot = mailbox.hold().expect("there are four");
    mailbox.with(slot, |call| *call = Call { request, end: None });
    mailbox.post(slot, &Context::from_waker(Waker::noop()));
    slot
}

/// Takes the owner's steps before it blocks. Returns true if it may block.
fn falls_asleep(mailbox: &Box, looks: bool) -> bool {
    mailbox.bell.take();
    let is_idle = !looks || mailbox.is_empty();
    is_idle && mailbox.bell.sleep()
}

fn sleeps_and_wakes(flaw: Flaw, looks: bool) {
    loom::model(move || {
        let mailbox = mailbox(flaw);
        let caller = mailbox.clone();
        let calling = thread::spawn(move || post(&caller, 1));
        let sleeps = falls_asleep(&mailbox, looks);
        calling.join().expect("a model that panics has failed");
        let is_woken = mailbox.bell.signals.load(Ordering::SeqCst) == 1;
        assert!(!sleeps || is_woken, "a wake-up was lost");
    });
}

#[test]
fn no_wakeup_is_lost_between_mailbox_and_park() {
    sleeps_and_wakes(Flaw::None, true);
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn a_bell_that_rings_too_early_is_found() {
    sleeps_and_wakes(Flaw::RingsFirst, true);
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn an_owner_that_does_not_look_again_is_found() {
    sleeps_and_wakes(Flaw::None, false);
}

#[test]
fn a_burst_wakes_once() {
    loom::model(|| {
        let mailbox = mailbox(Flaw::None);
        assert!(falls_asleep(&mailbox, true));
        let caller = mailbox.clone();
        let calling = thread::spawn(move || post(&caller, 1));
        post(&mailbox, 2);
        calling.join().expect("a model that panics has failed");
        assert_eq!(mailbox.bell.signals.load(Ordering::SeqCst), 1);
        let mut taken = 0;
        mailbox.take(|_| taken += 1);
        assert_eq!(taken, 2);
    });
}

/// The owner's table of calls.
#[derive(Default)]
struct Owner {
    running: Vec<(Slot, u32)>,
    dropped: u32,
}

impl Owner {
    fn take(&mut self, mailbox: &Box) {
        mailbox.take(|news| match news {
            News::Posted(slot) => {
                let request = mailbox.with(slot, |call| call.request);
                self.running.push((slot, request));
            }
            News::Dropped(slot) => {
                self.running.retain(|(running, _)| *running != slot);
                self.dropped += 1;
                mailbox.release(slot);
            }
        });
    }

    /// Ends the oldest call with its own request as the response.
    fn end(&mut self, mailbox: &Box) {
        if !self.running.is_empty() {
            let (slot, request) = self.running.remove(0);
            mailbox.with(slot, |call| call.end = Some(request));
            mailbox.end(slot);
        }
    }
}

/// Asserts that the second call has its own response if it has ended. Returns whether it has.
fn assert_own_end(mailbox: &Box, second: Slot) -> bool {
    let context = &Context::from_waker(Waker::noop());
    let has_ended = mailbox.poll_end(second, context).is_ready();
    if has_ended {
        let end = mailbox.with(second, |call| call.end);
        assert_eq!(
            end,
            Some(2),
            "a call got the response of one that was dropped"
        );
    }
    has_ended
}

/// The caller drops a call at any moment and makes another one.
fn drops_and_calls(flaw: Flaw) {
    loom::model(move || {
        let mailbox = mailbox(flaw);
        let ours = mailbox.clone();
        let owning = thread::spawn(move || {
            let mut owner = Owner::default();
            owner.take(&ours);
            owner.take(&ours);
            owner.end(&ours);
            owner
        });
        let first = post(&mailbox, 1);
        mailbox.give_up(first);
        let second = post(&mailbox, 2);
        assert_own_end(&mailbox, second);
        let mut owner = owning.join().expect("a model that panics has failed");
        assert_own_end(&mailbox, second);
        for _ in 0..2 {
            owner.take(&mailbox);
            owner.end(&mailbox);
        }
        owner.take(&mailbox);
        assert!(assert_own_end(&mailbox, second), "a call never ends");
        assert_eq!(owner.dropped, 1, "a drop was lost");
    });
}

#[test]
fn a_dropped_call_is_seen_and_never_answered() {
    drops_and_calls(Flaw::None);
}

#[test]
#[should_panic(expected = "a drop was lost")]
fn a_slot_that_is_used_again_at_once_is_found() {
    drops_and_calls(Flaw::ReleasesTaken);
}

struct Woken(Count);

impl Wake for Woken {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_task_that_waits_is_woken_by_the_end() {
    loom::model(|| {
        let mailbox = mailbox(Flaw::None);
        let slot = post(&mailbox, 1);
        mailbox.take(|_| ());
        let owner = mailbox.clone();
        let ending = thread::spawn(move || {
            owner.with(slot, |call| call.end = Some(1));
            owner.end(slot)
        });
        let woken = StdArc::new(Woken(Count::new(0)));
        let waker = Waker::from(woken.clone());
        let context = Context::from_waker(&waker);
        let polled = [(); 2].map(|()| mailbox.poll_end(slot, &context));
        assert!(ending.join().expect("a model that panics has failed"));
        let is_woken = woken.0.load(Ordering::SeqCst) > 0;
        assert!(
            polled[1] != Poll::Pending || is_woken,
            "a task sleeps for ever"
        );
    });
}

#[test]
fn a_call_that_meets_the_end_of_its_owner_ends() {
    loom::model(|| {
        let mailbox = mailbox(Flaw::None);
        let caller = mailbox.clone();
        let calling = thread::spawn(move || post(&caller, 1));
        mailbox.close();
        let slot = calling.join().expect("a model that panics has failed");
        let context = &Context::from_waker(Waker::noop());
        assert!(mailbox.poll_end(slot, context).is_ready());
        assert_eq!(mailbox.with(slot, |call| call.end), Some(CLOSED));
    });
}

/// A caller posts a call while the owner stops. If `looks`, the caller then checks whether the
/// owner has stopped, and if so ends the posted calls.
fn posts_while_the_owner_stops(looks: bool) {
    loom::model(move || {
        let mailbox = mailbox(Flaw::None);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (caller, seen) = (mailbox.clone(), is_stopped.clone());
        let calling = thread::spawn(move || {
            let slot = post(&caller, 1);
            if looks && seen.load(Ordering::Relaxed) {
                caller.end_posted();
            }
            slot
        });
        is_stopped.store(true, Ordering::Relaxed);
        mailbox.end_posted();
        let slot = calling.join().expect("a model that panics has failed");
        let context = &Context::from_waker(Waker::noop());
        let has_ended = mailbox.poll_end(slot, context).is_ready();
        assert!(has_ended, "a call waits for an owner that has stopped");
    });
}

#[test]
fn a_call_that_meets_an_owner_that_stops_ends() {
    posts_while_the_owner_stops(true);
}

#[test]
#[should_panic(expected = "a call waits for an owner")]
fn a_caller_that_does_not_look_again_is_found() {
    posts_while_the_owner_stops(false);
}

/// Wakes nothing, and counts.
struct Alarm(Count);

impl Wake for Alarm {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// One task waits for a place while another thread frees one: the task gets the place, or is woken.
#[test]
fn a_task_never_misses_a_place_that_becomes_free() {
    loom::model(|| {
        let places = Places::new(1);
        let place = places.take();
        let frees = thread::spawn(move || drop(place));
        let alarm = StdArc::new(Alarm(Count::new(0)));
        let waker = Waker::from(StdArc::clone(&alarm));
        let mut waiter = Waiter::default();
        let taken = places.poll_reserve(&mut waiter, &Context::from_waker(&waker));
        frees.join().unwrap();
        assert!(taken.is_ready() || alarm.0.load(Ordering::SeqCst) > 0);
    });
}

/// Two tasks wait, and the first goes away while a place becomes free: the second is woken.
#[test]
fn a_waiter_that_is_dropped_uses_up_no_wake_up() {
    loom::model(|| {
        let places = Places::new(1);
        let place = places.take();
        let alarms = [0, 1].map(|_| StdArc::new(Alarm(Count::new(0))));
        let [mut first, mut second] = [Waiter::default(), Waiter::default()];
        for (waiter, alarm) in [(&mut first, &alarms[0]), (&mut second, &alarms[1])] {
            let waker = Waker::from(StdArc::clone(alarm));
            assert!(
                places
                    .poll_reserve(waiter, &Context::from_waker(&waker))
                    .is_pending()
            );
        }
        let frees = thread::spawn(move || drop(place));
        drop(first);
        frees.join().unwrap();
        assert!(alarms[1].0.load(Ordering::SeqCst) > 0);
        drop(second);
    });
}

/// Two tasks wait for calls that the owner ends together. The first task polls again while the
/// owner wakes, so it may find its end before it is woken. `looks`: the owner looks again, until
/// all are woken.
fn ends_a_burst(looks: bool) {
    loom::model(move || {
        let mailbox = mailbox(Flaw::None);
        let slots = [post(&mailbox, 1), post(&mailbox, 2)];
        mailbox.take(|_| ());
        let woken = [0, 1].map(|_| StdArc::new(Woken(Count::new(0))));
        let wakers = woken.each_ref().map(|it| Waker::from(StdArc::clone(it)));
        for (slot, waker) in slots.iter().zip(&wakers) {
            let polled = mailbox.poll_end(*slot, &Context::from_waker(waker));
            assert!(polled.is_pending());
        }
        let caller = mailbox.clone();
        let first = wakers[0].clone();
        let polling = thread::spawn(move || {
            let _ = caller.poll_end(slots[0], &Context::from_waker(&first));
        });
        for slot in slots {
            assert!(mailbox.end_later(slot));
        }
        mailbox.wake_first();
        while looks && !mailbox.all_are_woken() {
            mailbox.wake_all();
            thread::yield_now();
        }
        polling.join().expect("a model that panics has failed");
        let is_woken = woken[1].0.load(Ordering::SeqCst) > 0;
        assert!(is_woken, "a task sleeps for ever");
    });
}

#[test]
fn no_task_of_a_burst_is_forgotten() {
    ends_a_burst(true);
}

#[test]
#[should_panic(expected = "a task sleeps for ever")]
fn an_owner_that_wakes_only_the_first_task_is_found() {
    ends_a_burst(false);
}
