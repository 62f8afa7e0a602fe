//! Compares the bucket with sums over the whole time, in whole numbers of 10⁻⁹ repeats.

use proptest::prelude::*;

use super::*;

#[test]
fn it_starts_full() {
    let mut budget = Budget::full(Nanos::ZERO);
    let taken = (0..200).filter(|_| budget.take(Nanos::ZERO)).count();
    assert_eq!(taken, 100);
}

#[test]
fn ten_calls_or_a_tenth_of_a_second_earn_one_repeat() {
    let mut budget = Budget::full(Nanos::ZERO);
    while budget.take(Nanos::ZERO) {}
    (0..9).for_each(|_| budget.on_call());
    assert!(!budget.take(Nanos::ZERO));
    budget.on_call();
    assert!(budget.take(Nanos::ZERO));
    assert!(!budget.take(Nanos(99_999_999)));
    assert!(budget.take(Nanos(100_000_000)));
    assert!(!budget.take(Nanos(100_000_000)));
    // However long the pause, the bucket holds only that much.
    let taken = (0..200).filter(|_| budget.take(Nanos::from_secs(3600)));
    assert_eq!(taken.count(), 100);
}

proptest! {
    #[test]
    fn no_more_repeats_are_taken_than_were_added(
        steps in proptest::collection::vec((0..3_u8, 0..200_000_000_u64), 1..400),
    ) {
        let mut budget = Budget::full(Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let (mut calls, mut taken, mut refused) = (0_u64, 0_u64, 0_u64);
        for (what, span) in steps {
            match what {
                0 => now += Nanos(span),
                1 => {
                    calls += 1;
                    budget.on_call();
                }
                _ if budget.take(now) => taken += 1,
                _ => refused += 1,
            }
            // In tenths of a repeat, rounded up.
            prop_assert!(taken * 10 <= 1000 + calls + now.0.div_ceil(10_000_000));
        }
        prop_assert!(refused == 0 || taken >= 100);
    }
}
