//! The ticks for which an election clock is stopped.

use super::*;

/// The ticks for which the clock is stopped in a term without a leader, once its promise is on the
/// disk.
fn stood(patience: &mut Patience, term: u64) -> usize {
    patience.on_term(term, 0);
    (0..).take_while(|_| patience.on_tick(true)).count()
}

#[test]
fn the_clock_is_stopped_while_a_promise_is_written() {
    let mut patience = Patience::new(3);
    assert!(!patience.on_tick(true), "the term had a leader");
    patience.on_term(4, 0);
    assert!((0..1000).all(|_| patience.on_tick(false)));
    assert_eq!(stood(&mut patience, 4), 0, "writes take no tick here");
}

#[test]
fn the_clock_is_stopped_for_two_writes_and_longer_in_each_term_without_a_leader() {
    const TICKS: usize = Options::ELECTION_TICKS;
    let mut patience = Patience::new(3);
    patience.on_saved(40);
    assert_eq!(stood(&mut patience, 3), 0, "the term had a leader");
    assert_eq!(stood(&mut patience, 4), 80);
    assert_eq!(stood(&mut patience, 5), 2 * (TICKS + 80) - TICKS);
    assert_eq!(stood(&mut patience, 6), 4 * (TICKS + 80) - TICKS);
    // A leader ends the sequence of lost terms, and in its own term the clock runs.
    patience.on_term(6, 1);
    assert_eq!(stood(&mut patience, 6), 0);
    patience.on_granted(7);
    assert_eq!(stood(&mut patience, 6), 80);
    assert_eq!(stood(&mut patience, 7), 80);
}

#[test]
fn the_time_of_a_slow_write_is_capped_and_decays_with_shorter_writes() {
    let mut patience = Patience::new(1);
    patience.on_saved(usize::MAX);
    for term in 2..100 {
        assert_eq!(stood(&mut patience, term), MOST);
    }
    for _ in 0..100 {
        patience.on_saved(0);
    }
    patience.on_term(100, 1);
    assert_eq!(stood(&mut patience, 101), 0);
}

#[test]
fn the_clock_is_stopped_once_in_a_term_for_a_candidate_of_the_next() {
    let mut patience = Patience::new(1);
    patience.on_saved(40);
    assert_eq!(stood(&mut patience, 1), 0);
    patience.on_granted(7);
    assert!(patience.waits_for_other(8, true));
    assert!(!patience.waits_for_other(7, true));
    assert_eq!(stood(&mut patience, 1), 80);
    patience.on_granted(8);
    assert_eq!(
        stood(&mut patience, 1),
        0,
        "it was stopped in this term already, for candidate 7"
    );
    // A candidate of this term becomes its leader after all.
    patience.on_term(2, 0);
    patience.on_granted(8);
    patience.on_term(2, 9);
    assert!(!patience.waits_for_other(7, true));
    assert_eq!(stood(&mut patience, 2), 0, "its leader has ended the wait");
}
