//! Rounds with known figures and ping-pongs: which rounds count, in which state, and the verdict.

use proptest::prelude::*;

use super::*;

fn sample(value: f64, pings: [f64; 2]) -> Sample {
    let figure = |metric: &str, unit: &str, value| Figure {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        value,
    };
    Sample {
        answer: Answer {
            figures: vec![
                figure("rtt", "ns", value),
                figure("rate", "1/s", value * 2.0),
                figure("losses", "count", value),
            ],
            ..Answer::default()
        },
        pings,
    }
}

/// A round in one state.
fn round(this: f64, other: f64, ping: f64) -> Round {
    Round {
        this: sample(this, [ping; 2]),
        others: vec![Some(sample(other, [ping; 2]))],
    }
}

fn spread(median: f64, min: f64, max: f64) -> Option<Spread> {
    Some(Spread { median, min, max })
}

fn verdicts(rounds: &[Round]) -> Vec<Verdict> {
    let comparisons = comparisons(rounds, 0).into_iter();
    comparisons.map(|it| it.verdict).collect()
}

#[test]
fn ratios_on_one_side_of_1_give_the_verdict_that_the_unit_implies() {
    let rounds: Vec<Round> = (0..7).map(|_| round(2.0, 1.0, 100.0)).collect();
    assert_eq!(
        verdicts(&rounds),
        [Verdict::Worse, Verdict::Better, Verdict::Differs]
    );
    let rounds: Vec<Round> = (0..7).map(|_| round(1.0, 2.0, 100.0)).collect();
    assert_eq!(
        verdicts(&rounds),
        [Verdict::Better, Verdict::Worse, Verdict::Differs]
    );
    assert_eq!(comparisons(&rounds, 0)[0].ratio, spread(0.5, 0.5, 0.5));
}

#[test]
fn a_spread_that_covers_1_gives_no_verdict() {
    let mut rounds: Vec<Round> = (0..7).map(|_| round(2.0, 1.0, 100.0)).collect();
    rounds[3] = round(0.9, 1.0, 100.0);
    assert_eq!(verdicts(&rounds), [Verdict::None; 3]);
    rounds[3] = round(1.0, 1.0, 100.0);
    assert_eq!(verdicts(&rounds), [Verdict::None; 3], "1 itself is covered");
    let first = &comparisons(&rounds, 0)[0];
    assert_eq!((first.ratio, first.rounds), (spread(2.0, 1.0, 2.0), 7));
}

#[test]
fn six_rounds_of_one_state_are_not_measured() {
    let mut rounds: Vec<Round> = (0..6).map(|_| round(2.0, 1.0, 100.0)).collect();
    rounds.extend((0..6).map(|_| round(2.0, 1.0, 300.0)));
    assert!(!is_enough(&rounds, 0));
    assert_eq!(verdicts(&rounds), [Verdict::NotMeasured; 3]);
    rounds.push(round(2.0, 1.0, 300.0));
    assert!(is_enough(&rounds, 0));
    let found = comparisons(&rounds, 0);
    assert_eq!(found.len(), 3, "the other state has too few");
    let state = found[0].state.unwrap();
    assert_eq!((state.ping_ns, state.left_out), (300.0, 6));
}

#[test]
fn each_state_with_enough_rounds_has_a_verdict_of_its_own() {
    let mut rounds: Vec<Round> = (0..7).map(|_| round(2.0, 1.0, 100.0)).collect();
    rounds.extend((0..8).map(|_| round(1.0, 2.0, 300.0)));
    let found = comparisons(&rounds, 0);
    let of_rtt: Vec<(f64, Verdict)> = found
        .iter()
        .filter(|it| it.metric == "rtt")
        .map(|it| (it.state.unwrap().ping_ns, it.verdict))
        .collect();
    assert_eq!(of_rtt, [(300.0, Verdict::Better), (100.0, Verdict::Worse)]);
}

#[test]
fn a_round_in_which_the_state_changed_does_not_count_wherever_it_changed() {
    for at in 0..4 {
        let mut rounds: Vec<Round> = (0..7).map(|_| round(2.0, 1.0, 100.0)).collect();
        let ping = match (at, &mut rounds[2]) {
            (0 | 1, round) => &mut round.this.pings[at],
            (_, round) => &mut round.others[0].as_mut().unwrap().pings[at - 2],
        };
        *ping = 131.0;
        assert!(!is_enough(&rounds, 0), "ping-pong {at}");
        let tried = tried(&rounds, 0, 2);
        assert_eq!((tried.rounds, tried.unsteady, tried.failed), (9, 1, 2));
        rounds.push(round(2.0, 1.0, 100.0));
        assert!(is_enough(&rounds, 0));
    }
}

#[test]
fn a_ping_pong_between_two_other_programs_does_not_concern_a_comparison() {
    let mut rounds: Vec<Round> = (0..7).map(|_| round(2.0, 1.0, 100.0)).collect();
    for round in &mut rounds {
        round.others.insert(0, Some(sample(1.0, [100.0, 500.0])));
    }
    assert!(!is_enough(&rounds, 0) && is_enough(&rounds, 1));
}

#[test]
fn a_program_that_does_not_measure_the_case_has_no_comparisons() {
    let rounds = vec![
        Round {
            this: sample(1.0, [100.0; 2]),
            others: vec![None]
        };
        9
    ];
    assert!(comparisons(&rounds, 0).is_empty() && !is_enough(&rounds, 0));
    assert!(comparisons(&[], 0).is_empty() && !is_enough(&[], 0));
}

#[test]
fn figures_that_one_side_lacks_are_left_out() {
    let mut rounds: Vec<Round> = (0..7).map(|_| round(2.0, 1.0, 100.0)).collect();
    for round in &mut rounds {
        round.others[0].as_mut().unwrap().answer.figures.remove(1);
    }
    rounds[5].this.answer.figures.remove(2);
    let found = comparisons(&rounds, 0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].metric, "rtt");
}

#[test]
fn a_value_of_zero_has_no_ratio_and_no_verdict() {
    let rounds: Vec<Round> = (0..7).map(|_| round(1.0, 0.0, 100.0)).collect();
    let found = comparisons(&rounds, 0);
    assert!(
        found
            .iter()
            .all(|it| it.ratio.is_none() && it.verdict == Verdict::None)
    );
    assert_eq!(found[0].other, spread(0.0, 0.0, 0.0));
}

#[test]
fn if_no_round_is_steady_the_rows_say_so() {
    let mut rounds: Vec<Round> = (0..9).map(|_| round(2.0, 1.0, 100.0)).collect();
    rounds.iter_mut().for_each(|it| it.this.pings[1] = 200.0);
    let found = comparisons(&rounds, 0);
    assert_eq!(found.len(), 3);
    assert!(
        found
            .iter()
            .all(|it| it.verdict == Verdict::NotMeasured && it.rounds == 0)
    );
    assert!(
        found
            .iter()
            .all(|it| it.ratio.is_none() && it.state.is_none())
    );
}

fn any_rounds() -> impl Strategy<Value = Vec<Round>> {
    let ping = prop_oneof![100.0..125.0, 250.0..320.0];
    let round = (0.5..2.0, 0.5..2.0, prop::array::uniform4(ping)).prop_map(|it| {
        let (this, other, [a, b, c, d]) = it;
        Round {
            this: sample(this, [a, b]),
            others: vec![Some(sample(other, [c, d]))],
        }
    });
    prop::collection::vec(round, 0..40)
}

fn in_any_order(rounds: Vec<Round>) -> impl Strategy<Value = (Vec<Round>, Vec<Round>)> {
    (Just(rounds.clone()), Just(rounds).prop_shuffle())
}

/// The rounds with the two programs exchanged.
fn swapped(rounds: &[Round]) -> Vec<Round> {
    let swap = |round: &Round| Round {
        this: round.others[0].clone().unwrap(),
        others: vec![Some(round.this.clone())],
    };
    rounds.iter().map(swap).collect()
}

proptest! {
    #[test]
    fn a_verdict_needs_enough_rounds_and_all_of_them_on_one_side(rounds in any_rounds()) {
        for it in comparisons(&rounds, 0) {
            let ratio = it.ratio;
            let is_clear = ratio.is_some_and(|ratio| ratio.min > 1.0 || ratio.max < 1.0);
            let expected = it.rounds >= 7 && is_clear;
            let is_verdict = !matches!(it.verdict, Verdict::None | Verdict::NotMeasured);
            prop_assert_eq!(is_verdict, expected);
            prop_assert_eq!(it.verdict == Verdict::NotMeasured, it.rounds < 7);
            let left_out = it.state.map_or(rounds.len(), |it| it.left_out);
            prop_assert_eq!(it.rounds + left_out, rounds.len());
        }
    }

    #[test]
    fn the_order_of_rounds_does_not_matter(
        (rounds, shuffled) in any_rounds().prop_flat_map(in_any_order)
    ) {
        prop_assert_eq!(verdicts(&rounds), verdicts(&shuffled));
        prop_assert_eq!(is_enough(&rounds, 0), is_enough(&shuffled, 0));
    }

    #[test]
    fn programs_that_change_places_change_their_verdicts(rounds in any_rounds()) {
        let mirrored = |verdict| match verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        let expected: Vec<Verdict> = verdicts(&rounds).into_iter().map(mirrored).collect();
        prop_assert_eq!(verdicts(&swapped(&rounds)), expected);
    }

    #[test]
    fn a_program_is_never_better_than_itself(rounds in any_rounds()) {
        let alone: Vec<Round> = rounds
            .into_iter()
            .map(|round| Round { others: vec![Some(round.this.clone())], ..round })
            .collect();
        let fair = |verdict: &Verdict| matches!(verdict, Verdict::None | Verdict::NotMeasured);
        prop_assert!(verdicts(&alone).iter().all(fair));
    }
}
