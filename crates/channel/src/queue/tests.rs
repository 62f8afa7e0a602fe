//! Compares the queue with a `Vec`.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn calls_wait_in_order(steps in proptest::collection::vec((any::<bool>(), 0..16_u32), 1..200)) {
        let mut queue = Queue::new();
        let mut model: Vec<u32> = Vec::new();
        for (is_push, at) in steps {
            if is_push {
                queue.push(at);
                if !model.contains(&at) {
                    model.push(at);
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
