//! Pauses stay within their bounds, and use the whole range.

use dunlin_core::Rng;
use proptest::prelude::*;

use super::*;

const REPEATS: Backoff = Backoff {
    least: Nanos::from_millis(1),
    first: Nanos::from_millis(10),
    factor: 10,
    most: Nanos::from_millis(100),
};

#[test]
fn a_factor_below_two_is_refused() {
    for (factor, grows) in [(0, false), (1, false), (2, true)] {
        assert_eq!(Backoff { factor, ..REPEATS }.grows(), grows);
    }
}

#[test]
#[should_panic(expected = "the factor of a pause is 1; set it to 2 or more")]
fn repeats_need_a_pause_that_grows() {
    let pause = Backoff {
        factor: 1,
        ..REPEATS
    };
    let _ = crate::Repeats::new(crate::Retry { attempts: 2, pause }, 7);
}

#[test]
fn pauses_fill_the_range_of_their_failure() {
    let mut rng = Rng::new(7);
    for (failures, most) in [(1, 10), (2, 100), (3, 100), (1000, 100)] {
        let mut pauses: Vec<Nanos> = (0..1000)
            .map(|_| REPEATS.pause(failures, &mut rng))
            .collect();
        pauses.sort();
        let (least, most) = (Nanos::from_millis(1), Nanos::from_millis(most));
        let tenth = Nanos(most.since(least).0 / 10);
        assert!(least <= pauses[0] && pauses[0] < least + tenth);
        assert!(pauses[999] <= most && pauses[999] + tenth > most);
        let middle = least + tenth.times(5);
        assert!(middle < pauses[600] && pauses[400] < middle);
    }
}

proptest! {
    #[test]
    fn pauses_keep_their_bounds(
        least in 0..1_000_000_u64, first in 0..1_000_000_u64, factor in 2..5_u32,
        most in 0..1_000_000_u64, failures in 0..u32::MAX, seed: u64,
    ) {
        let (least, first, most) = (Nanos(least), Nanos(first), Nanos(most));
        let backoff = Backoff { least, first, factor, most };
        let pause = backoff.pause(failures, &mut Rng::new(seed));
        prop_assert!(pause <= most);
        prop_assert!(pause >= least.min(most));
    }
}
