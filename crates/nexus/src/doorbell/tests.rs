//! Each ring is taken once, and none is lost between a ringer and a sleeper.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::*;
use crate::ffi::{Epoll, Events, Interest};

#[test]
fn rings_are_taken_once() {
    let bell = Doorbell::new().unwrap();
    assert!(!bell.take());
    bell.ring();
    bell.ring();
    assert!(bell.is_rung());
    assert!(bell.take());
    assert!(!bell.take());
}

#[test]
fn a_thread_that_was_rung_does_not_go_to_sleep() {
    let bell = Doorbell::new().unwrap();
    bell.ring();
    assert!(!bell.sleep());
    bell.wake(false);
    assert!(bell.take());
    assert!(bell.sleep());
    bell.wake(false);
}

#[test]
fn no_ring_is_lost_between_a_ringer_and_a_sleeper() {
    const RINGS: u64 = 20_000;
    let bell = Arc::new(Doorbell::new().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let ringer = {
        let (bell, sent) = (Arc::clone(&bell), Arc::clone(&sent));
        std::thread::spawn(move || {
            for i in 0..RINGS {
                sent.fetch_add(1, Ordering::Relaxed);
                bell.ring();
                if i % 7 == 0 {
                    std::thread::yield_now();
                }
            }
        })
    };
    let epoll = Epoll::new().unwrap();
    epoll.add(bell.as_raw_fd(), 0, Interest::Read).unwrap();
    let mut events = Events::new();
    let mut seen = 0;
    while seen < RINGS {
        if bell.take() {
            seen = sent.load(Ordering::Relaxed);
            continue;
        }
        let mut signalled = false;
        if bell.sleep() {
            // A lost wake-up would wait for all of this time.
            epoll
                .wait(&mut events, Some(Duration::from_secs(10)))
                .unwrap();
            signalled = events.iter().count() > 0;
            assert!(signalled, "no ring reached the sleeper");
        }
        bell.wake(signalled);
    }
    ringer.join().unwrap();
}
