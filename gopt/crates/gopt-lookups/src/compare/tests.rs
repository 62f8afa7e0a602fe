//! The two implementations compared with each other, and with a few known masks.

use super::*;
use crate::random::Random;

#[test]
fn both_ways_give_the_same_masks() {
    let mut random = Random::new(3);
    for _ in 0..10_000 {
        // Few different values, so that many are equal.
        let keys = std::array::from_fn(|_| u32::try_from(random.below(3)).unwrap());
        assert_eq!(equal_u32(&keys, 1), scalar::equal_u32(&keys, 1));
        let words: [u64; 4] = std::array::from_fn(|_| random.below(3) << 48 | random.below(3));
        let word = 1 << 48 | 2;
        let expected = scalar::equal_u64_from::<48>(&words, word);
        assert_eq!(equal_u64_from::<48>(&words, word), expected);
        let expected = scalar::equal_u64_from::<0>(&words, word);
        assert_eq!(equal_u64_from::<0>(&words, word), expected);
    }
}

#[test]
fn bits_are_in_the_order_of_the_slots() {
    assert_eq!(equal_u32(&[7, 0, 0, 7, 0, 0, 0, 7], 7), 0b1000_1001);
    let words = [1 << 48, 2, 3 << 48, 1 << 48 | 9, 0, 0, 0, 1 << 48];
    assert_eq!(equal_u64_from::<48>(&words, 1 << 48 | 5), 0b1000_1001);
    assert_eq!(equal_u64_from::<0>(&words, 1 << 48 | 9), 0b0000_1000);
}
