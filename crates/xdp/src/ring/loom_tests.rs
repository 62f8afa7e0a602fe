//! The rings under loom: every interleaving of a few steps of both sides.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p dunlin-xdp --lib loom
//! ```

use loom::thread;

use super::loom_rings::{COUNT, Shared};
use super::*;

/// An entry whose two words belong together.
fn entry(number: u32) -> Desc {
    Desc {
        addr: u64::from(number),
        len: number,
        options: 0,
    }
}

#[test]
fn entries_arrive_whole_and_in_order_and_are_not_overwritten() {
    loom::model(|| {
        let shared = Shared::new();
        let other = shared.clone();
        let sending = thread::spawn(move || {
            let mut producer = Producer::<Desc>::new(other.memory());
            let mut sent = 0;
            // More than the ring holds, so that places are used again.
            for number in 1..=3 {
                if !producer.push(entry(number)) {
                    break;
                }
                producer.publish();
                sent = number;
            }
            sent
        });
        let mut consumer = Consumer::<Desc>::new(shared.memory());
        let mut next = 1;
        for _ in 0..2 {
            consumer.available(1);
            while let Some(found) = consumer.pop() {
                assert_eq!(found, entry(next), "torn, or out of order");
                next += 1;
            }
            consumer.release();
        }
        let sent = sending.join().expect("a model that panics has failed");
        consumer.available(COUNT);
        while let Some(found) = consumer.pop() {
            assert_eq!(found, entry(next));
            next += 1;
        }
        assert_eq!(next, sent + 1, "all that was sent arrives, once");
        assert!(!consumer.is_broken());
    });
}

#[test]
fn a_consumer_that_falls_asleep_is_woken_or_has_seen_the_entry() {
    loom::model(|| {
        let shared = Shared::new();
        let other = shared.clone();
        let sending = thread::spawn(move || {
            let mut producer = Producer::<u64>::new(other.memory());
            assert!(producer.push(7));
            producer.publish();
            producer.wants_wakeup()
        });
        let mut consumer = Consumer::<u64>::new(shared.memory());
        consumer.ask_for_wakeup(true);
        let saw = consumer.available(1) == 1;
        let woken = sending.join().expect("a model that panics has failed");
        assert!(saw || woken, "the consumer sleeps, and an entry is there");
    });
}
