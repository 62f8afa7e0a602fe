//! Compares the heap with a sorted set.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Set(u32, Option<u64>),
    Due(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..24_u32, proptest::option::of(0..50_u64)).prop_map(|(i, at)| Step::Set(i, at)),
        1 => (0..50_u64).prop_map(Step::Due),
    ]
}

proptest! {
    #[test]
    fn times_come_in_order(steps in proptest::collection::vec(step(), 1..300)) {
        let mut timers = Timers::new();
        let mut model: BTreeSet<(Nanos, u32)> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Set(index, at) => {
                    timers.set(index, at.map(Nanos));
                    model.retain(|(_, other)| *other != index);
                    model.extend(at.map(|at| (Nanos(at), index)));
                }
                Step::Due(now) => {
                    let due = model.first().copied().filter(|(at, _)| *at <= Nanos(now));
                    model.retain(|entry| Some(*entry) != due);
                    prop_assert_eq!(timers.due(Nanos(now)), due.map(|(_, index)| index));
                }
            }
            prop_assert_eq!(timers.next(), model.first().map(|(at, _)| *at));
        }
    }
}
