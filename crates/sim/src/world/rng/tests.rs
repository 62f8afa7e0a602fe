//! Compares the generator with its published reference, and its draws with their bounds.

use super::{Ppm, Rng};

#[test]
fn the_state_is_seeded_by_the_reference() {
    // First outputs of splitmix64 for seed 0, as published with the generator.
    let [first, second, ..] = Rng::new(0).0;
    assert_eq!(first, 0xE220_A839_7B1D_CDAF);
    assert_eq!(second, 0x6E78_9E6A_A1B9_65F4);
}

#[test]
fn xoshiro_matches_the_reference() {
    // First outputs of xoshiro256** from the state 1, 2, 3, 4.
    let mut rng = Rng([1, 2, 3, 4]);
    let expected = [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240];
    assert_eq!(expected.map(|_| rng.next_u64()), expected);
}

#[test]
fn draws_stay_in_their_bounds_and_reach_them() {
    let mut rng = Rng::new(7);
    let mut seen = [false; 5];
    for _ in 0..1000 {
        let n = rng.between(3, 7);
        assert!((3..=7).contains(&n));
        seen[usize::try_from(n - 3).unwrap()] = true;
        assert!((10..=100_000).contains(&rng.log_between(10, 100_000)));
        assert!(rng.index(4) < 4);
    }
    assert_eq!(seen, [true; 5]);
    assert_eq!(rng.below(0), 0);
}

#[test]
fn chances_have_their_frequencies() {
    let mut rng = Rng::new(8);
    let hits = (0..100_000)
        .filter(|_| rng.chance(Ppm::percent(10)))
        .count();
    assert!((9_500..10_500).contains(&hits), "{hits} of 100000 at 10 %");
    assert!(!rng.chance(Ppm::NEVER));
    assert!(rng.chance(Ppm::ALWAYS));
}

#[test]
fn exponential_numbers_have_their_mean_and_their_tail() {
    let mut rng = Rng::new(9);
    let all: Vec<u64> = (0..100_000).map(|_| rng.exponential(1000)).collect();
    let mean = all.iter().sum::<u64>() / 100_000;
    assert!((985..1015).contains(&mean), "{mean}");
    // A share of e^-t of all draws exceeds t times the mean: 36.8 and 5.0 of 100.
    for (times, least, most) in [(1, 36_300, 37_300), (3, 4_750, 5_200)] {
        let beyond = all.iter().filter(|it| **it >= times * 1000).count();
        assert!((least..most).contains(&beyond), "{beyond} beyond {times}");
    }
}

#[test]
fn a_seed_determines_a_stream_and_forks_differ() {
    let (mut a, mut b) = (Rng::new(1), Rng::new(1));
    assert_eq!(a.next_u64(), b.next_u64());
    let mut fork = a.fork();
    assert_ne!(fork.next_u64(), b.next_u64());
}
