//! The numbers follow from the seed, not from other numbers.

use std::collections::BTreeSet;

use dunlin_core::Rng;

use super::Secrets;

#[test]
fn the_seed_alone_determines_the_numbers() {
    let numbers = |seed| -> BTreeSet<u64> {
        let mut secrets = Secrets::new(seed);
        (0..1000).map(|_| secrets.next()).collect()
    };
    assert_eq!(numbers(7), numbers(7));
    assert_eq!(numbers(7).len(), 1000, "no number comes twice");
    assert!(numbers(7).is_disjoint(&numbers(8)));
}

/// Inverts SplitMix64: returns the state that gave this number.
fn state_before(mut number: u64) -> u64 {
    let undo = |z: u64, shift: u32| z ^ (z >> shift) ^ (z >> (2 * shift));
    let inverse = |odd: u64| {
        (0..6).fold(odd, |x, _| {
            x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)))
        })
    };
    for (shift, factor) in [(31, 0x94D0_49BB_1331_11EB), (27, 0xBF58_476D_1CE4_E5B9)] {
        number = undo(number, shift).wrapping_mul(inverse(factor));
    }
    undo(number, 30)
}

#[test]
fn a_number_does_not_show_the_next_one() {
    // A peer computes the next number from one number of the other generator.
    let mut rng = Rng::new(7);
    let mut guessed = Rng::new(state_before(rng.next_u64()));
    assert_eq!(
        guessed.next_u64(),
        rng.next_u64(),
        "the guess works for the other generator"
    );
    let mut secrets = Secrets::new(7);
    let mut guessed = Rng::new(state_before(secrets.next()));
    assert_ne!(guessed.next_u64(), secrets.next());
}
