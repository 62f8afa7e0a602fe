//! Leases under loom: a worker ends a call while the caller drops it.

use std::sync::Arc as StdArc;
use std::task::Wake;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::{Bell, Letter, Mailbox, News};

struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

#[derive(Default)]
struct Number(u32);

impl Letter for Number {
    fn on_closed(&mut self) {}
}

/// The behaviour of an owner when its caller has dropped a call: the right one asks the lease
/// whether to free the slot, the hasty one frees it at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Right,
    Hasty,
}

fn drops_while_a_worker_ends(owner: Owner) {
    loom::model(move || {
        let mailbox = Arc::new(Mailbox::<Number, NoBell>::new(NoBell, 4));
        let slot = mailbox.hold().expect("there are four");
        mailbox.post(slot, &Context::from_waker(Waker::noop()));
        mailbox.take(|_| ());
        let lease = Arc::new(Lease::default());
        let (at_worker, of_worker) = (mailbox.clone(), lease.clone());
        let worker = thread::spawn(move || {
            at_worker.with(slot, |it| it.0 = 1);
            at_worker.end(slot);
            let is_last = of_worker.leave();
            if is_last {
                at_worker.release(slot);
            }
            u32::from(is_last)
        });
        let at_caller = mailbox.clone();
        let caller = thread::spawn(move || {
            at_caller.give_up(slot);
            // If the slot is free already, this takes the same slot.
            let next = at_caller.hold().expect("there are four");
            at_caller.with(next, |it| it.0 = 2);
            at_caller.with(next, |it| {
                assert_eq!(it.0, 2, "the worker wrote into another call")
            });
        });
        let mut freed = 0;
        let mut owns = || {
            mailbox.take(|news| {
                assert_eq!(news, News::Dropped(slot));
                if lease.give_up() || owner == Owner::Hasty {
                    mailbox.release(slot);
                    freed += 1;
                }
            });
        };
        owns();
        caller.join().unwrap();
        owns();
        freed += worker.join().unwrap();
        assert_eq!(freed, 1, "a slot is freed once");
    });
}

#[test]
fn a_slot_is_freed_once_and_after_its_worker_has_left() {
    drops_while_a_worker_ends(Owner::Right);
}

#[test]
#[should_panic]
fn an_owner_that_frees_a_slot_under_its_worker_is_found() {
    drops_while_a_worker_ends(Owner::Hasty);
}

struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: StdArc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_worker_that_waits_is_woken() {
    loom::model(|| {
        let lease = Arc::new(Lease::default());
        let owners = lease.clone();
        let owner = thread::spawn(move || owners.give_up());
        let woken = StdArc::new(Woken(AtomicU32::new(0)));
        let waker = Waker::from(woken.clone());
        let polled = lease.poll_given_up(&Context::from_waker(&waker));
        assert!(!owner.join().unwrap());
        let is_woken = woken.0.load(Ordering::SeqCst) > 0;
        assert!(polled.is_ready() || is_woken, "a task sleeps for ever");
    });
}
