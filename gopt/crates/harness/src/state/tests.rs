//! The rounds of a state: both sides of the limit, and properties that hold for any ping-pongs.

use proptest::prelude::*;

use super::*;

fn rounds(pings: &[f64]) -> Vec<Option<f64>> {
    pings.iter().copied().map(Some).collect()
}

fn members(pings: &[f64]) -> Vec<Vec<usize>> {
    let groups = states(&rounds(pings));
    groups.into_iter().map(|group| group.rounds).collect()
}

#[test]
fn a_round_is_steady_if_its_ping_pongs_differ_by_at_most_30_percent() {
    assert_eq!(steady(&[100.0, 130.0, 110.0]), Some(110.0));
    assert_eq!(steady(&[100.0, 131.0, 110.0]), None);
    assert_eq!(steady(&[250.0, 100.0]), None, "in any order");
}

#[test]
fn no_ping_pong_is_no_state() {
    for pings in [&[][..], &[f64::NAN], &[100.0, f64::NAN], &[0.0, 0.0]] {
        assert_eq!(steady(pings), None, "{pings:?}");
    }
    assert!(states(&[None, None]).is_empty() && states(&[]).is_empty());
    assert!(states(&[Some(f64::NAN)]).is_empty());
}

#[test]
fn the_states_of_a_machine_that_flips_are_distinguished() {
    let pings = [110.0, 490.0, 300.0, 95.0, 280.0, 120.0, 310.0, 270.0, 480.0];
    let all = members(&pings);
    assert_eq!(all, [vec![2, 4, 6, 7], vec![0, 3, 5], vec![1, 8]]);
    let first = &states(&rounds(&pings))[0];
    let state = State {
        ping_ns: 290.0,
        min: 270.0,
        max: 310.0,
        left_out: 5,
    };
    assert_eq!(first.state(pings.len()), state);
}

#[test]
fn of_states_with_as_many_rounds_the_faster_is_first() {
    assert_eq!(members(&[500.0, 100.0]), [[1], [0]]);
}

#[test]
fn a_state_takes_the_most_rounds_that_fit_and_not_the_fastest() {
    let all = members(&[100.0, 125.0, 140.0, 160.0]);
    assert_eq!(all, [vec![1, 2, 3], vec![0]]);
}

/// Realistic ping-pongs, and rounds without any.
#[test]
fn rows_are_alike_if_their_states_are() {
    let steady = |ping_ns: f64| {
        Condition::Steady(State {
            ping_ns,
            min: ping_ns,
            max: ping_ns,
            left_out: 0,
        })
    };
    let without = Condition::Without;
    assert!(steady(100.0).is_like(&steady(130.0)));
    assert!(!steady(131.0).is_like(&steady(100.0)));
    assert!(!steady(100.0).is_like(&without(Reason::NotMeasured)));
    assert!(without(Reason::NotMeasured).is_like(&without(Reason::NotMeasured)));
    assert!(!without(Reason::Changing).is_like(&steady(490.0)));
}

fn any_rounds() -> impl Strategy<Value = Vec<Option<f64>>> {
    let ping = prop_oneof![9 => (80.0..600.0).prop_map(Some), 1 => Just(None)];
    prop::collection::vec(ping, 0..60)
}

fn in_any_order(
    rounds: Vec<Option<f64>>,
) -> impl Strategy<Value = (Vec<Option<f64>>, Vec<Option<f64>>)> {
    (Just(rounds.clone()), Just(rounds).prop_shuffle())
}

proptest! {
    #[test]
    fn every_steady_round_is_in_exactly_one_state(rounds in any_rounds()) {
        let mut found: Vec<usize> = states(&rounds).into_iter().flat_map(|it| it.rounds).collect();
        found.sort_unstable();
        let steady = (0..rounds.len()).filter(|&index| rounds[index].is_some());
        prop_assert_eq!(found, steady.collect::<Vec<_>>());
    }

    #[test]
    fn rounds_of_one_state_agree_and_no_state_has_more_than_the_one_before(
        rounds in any_rounds()
    ) {
        let groups = states(&rounds);
        for group in &groups {
            prop_assert!(group.ping_ns.max <= 1.3 * group.ping_ns.min);
            let pings = group.rounds.iter().map(|&index| rounds[index].unwrap());
            prop_assert_eq!(Spread::of(pings), Some(group.ping_ns));
        }
        for pair in groups.windows(2) {
            prop_assert!(pair[0].rounds.len() >= pair[1].rounds.len());
        }
    }

    /// The first state is the largest possible one: no other ping-pong is the fastest of a larger
    /// set of rounds that agree.
    #[test]
    fn no_other_choice_has_more_rounds(rounds in any_rounds()) {
        let most = states(&rounds).first().map_or(0, |group| group.rounds.len());
        for fastest in rounds.iter().flatten() {
            let fits = |it: &&f64| (*fastest..=1.3 * fastest).contains(*it);
            prop_assert!(rounds.iter().flatten().filter(fits).count() <= most);
        }
    }

    #[test]
    fn the_order_of_rounds_does_not_matter(
        (rounds, shuffled) in any_rounds().prop_flat_map(in_any_order)
    ) {
        let spreads = |rounds: &[Option<f64>]| -> Vec<(usize, Spread)> {
            let groups = states(rounds).into_iter();
            groups.map(|it| (it.rounds.len(), it.ping_ns)).collect()
        };
        prop_assert_eq!(spreads(&rounds), spreads(&shuffled));
    }

    #[test]
    fn a_round_is_steady_if_its_fastest_and_slowest_ping_pongs_agree(
        pings in prop::collection::vec(80.0..600.0, 1..6)
    ) {
        let slowest = pings.iter().copied().fold(0.0, f64::max);
        let fastest = pings.iter().copied().fold(f64::MAX, f64::min);
        prop_assert_eq!(steady(&pings).is_some(), slowest / fastest <= 1.3);
    }
}
