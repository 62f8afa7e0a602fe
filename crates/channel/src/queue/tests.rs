//! Compares the queue with a `Vec`.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn calls_wait_in_order(steps in proptest::collection::vec((any::<bool>(), 0..16_u32), 1..200)) {
        let mut queue = Queue::new();
        let mut model: Vec<u32> = Vec::new();
        // Pairs of calls have the same age; of a pair, the call that was pushed first comes first.
        let age = |at: u32| at / 2;
        for (is_push, at) in steps {
            if is_push {
                queue.push(at, |other| age(other) > age(at));
                if !model.contains(&at) {
                    let later = model.iter().rev().take_while(|other| age(**other) > age(at));
                    model.insert(model.len() - later.count(), at);
                }
            } else {
                queue.remove(at);
                model.retain(|other| *other != at);
            }
            let mut seen = Vec::new();
            let mut next = queue.first();
            while let Some(at) = next {
                seen.push(at);
                next = queue.after(at);
            }
            prop_assert_eq!(&seen, &model);
        }
    }
}
