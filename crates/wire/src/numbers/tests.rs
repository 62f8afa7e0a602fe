//! Request numbers against a model that counts in 64 bits and so never wraps.

use std::format;

use proptest::prelude::*;

use super::{ReqNum, Token};

/// The number on the wire for request `count` of the session.
fn wire_number(count: u64) -> ReqNum {
    ReqNum(u32::try_from(count & u64::from(u32::MAX)).expect("masked"))
}

/// Counts, of which two thirds lie around the wrap at 2³² and around the sign bit.
fn counts() -> impl Strategy<Value = u64> {
    let wrap = 1_u64 << 32;
    prop_oneof![
        0..1_u64 << 40,
        wrap - 300..wrap + 300,
        (1_u64 << 31) - 300..(1_u64 << 31) + 300,
    ]
}

proptest! {
    #[test]
    fn numbers_have_the_order_of_their_counts(count in counts(), distance in 1_u64..1 << 31) {
        let (early, late) = (wire_number(count), wire_number(count + distance));
        prop_assert!(early.is_before(late));
        prop_assert!(!late.is_before(early));
        prop_assert!(!early.is_before(early));
    }

    #[test]
    fn steps_stay_in_their_slot(count in counts(), log2 in 0_u32..7, steps in 1_u64..200) {
        let window = 1_u32 << log2;
        let mut number = wire_number(count);
        for _ in 0..steps {
            let next = number.next(window);
            prop_assert_eq!(next.previous(window), number);
            prop_assert!(number.is_before(next));
            number = next;
        }
        prop_assert_eq!(number, wire_number(count + steps * u64::from(window)));
        prop_assert_eq!(u64::from(number.slot(window)), count % u64::from(window));
    }
}

#[test]
fn a_token_does_not_reach_a_log() {
    assert!(!format!("{:?}", Token(0xDEAD_BEEF)).contains("3735928559"));
    assert_eq!(format!("{:?}", Token(1)), format!("{:?}", Token(2)));
}
