//! How sessions are chosen. The experiments test the rest, with endpoints.

use super::*;

#[test]
fn in_turn_visits_every_session_and_begins_again() {
    let mut choice = Choice::default();
    let visited: Vec<usize> = (0..7).map(|_| choice.next(3)).collect();
    assert_eq!(visited, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn random_choices_are_in_range_and_even() {
    let mut choice = Choice::Random { state: 1 };
    let mut counts = [0_u32; 10];
    for _ in 0..10_000 {
        counts[choice.next(10)] += 1;
    }
    assert!(
        counts.iter().all(|count| (800..1_200).contains(count)),
        "{counts:?}"
    );
    assert_eq!(choice.next(1), 0);
}
