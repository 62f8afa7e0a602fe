//! How sessions are chosen. The experiments test the rest, with endpoints.

use super::*;

#[test]
fn choices_in_turn_visit_every_session_and_begin_again() {
    let mut choice = Choice::default();
    let visited: Vec<_> = (0..7).map(|_| choice.next(3)).collect();
    assert_eq!(visited, [0, 1, 2, 0, 1, 2, 0].map(|index| (index, None)));
}

#[test]
fn random_choices_are_in_range_and_even() {
    let mut choice = Choice::Random(Draws::new(1, 10));
    let mut counts = [0_u32; 10];
    for _ in 0..10_000 {
        counts[choice.next(10).0] += 1;
    }
    assert!(
        counts.iter().all(|count| (800..1_200).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn random_choices_are_known_ahead() {
    let mut choice = Choice::Random(Draws::new(1, 1_000));
    let calls: Vec<_> = (0..100).map(|_| choice.next(1_000)).collect();
    for pair in calls.windows(AHEAD + 1) {
        assert_eq!(pair[0].1, Some(pair[AHEAD].0));
    }
}
