//! The window, against a set of open numbers.

use std::collections::BTreeSet;

use dunlin_core::Rng;

use super::*;

#[test]
fn the_window_begins_with_the_first_write_that_has_not_ended() {
    let mut rng = Rng::new(9);
    let (mut numbers, mut open, mut next) = (Numbers::new(), BTreeSet::new(), 1);
    for _ in 0..100_000 {
        let first = open.first().copied().unwrap_or(next);
        assert_eq!(numbers.first(), first);
        if rng.below(2) == 0 {
            let given = (next < first + WINDOW).then_some(next);
            assert_eq!(numbers.take(), given);
            open.extend(given);
            next += u64::from(given.is_some());
        } else if !open.is_empty() {
            let place = rng.below(u32::try_from(open.len()).unwrap()) as usize;
            let number = *open.iter().nth(place).unwrap();
            open.remove(&number);
            numbers.end(number);
        }
    }
}

#[test]
fn a_full_window_gives_no_number_before_the_oldest_write_has_ended() {
    let mut numbers = Numbers::new();
    for number in 1..=WINDOW {
        assert_eq!(numbers.take(), Some(number));
    }
    numbers.end(2);
    assert_eq!(numbers.take(), None);
    assert_eq!(numbers.first(), 1);
    numbers.end(1);
    assert_eq!(numbers.first(), 3);
    assert_eq!(numbers.take(), Some(WINDOW + 1));
}
