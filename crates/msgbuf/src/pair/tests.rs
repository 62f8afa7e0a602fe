//! Pairs at several places of longer arrays.

use super::*;

#[test]
fn a_pair_has_both_words_in_order_at_any_alignment() {
    let from: [u8; 40] = std::array::from_fn(|at| u8::try_from(at).unwrap());
    let mut to = [0; PAIR];
    Pair::load::<0, 40>(&from).store(&mut to);
    assert_eq!(to, from[..16]);
    Pair::load::<13, 40>(&from).store(&mut to);
    assert_eq!(to, from[13..29]);
    Pair::load::<24, 40>(&from).store(&mut to);
    assert_eq!(to, from[24..]);
}
