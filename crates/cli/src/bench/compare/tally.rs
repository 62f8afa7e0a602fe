//! The verdict on this build and another program from one case's rounds: plain arithmetic.
//!
//! A ratio is taken from the two measurements of one round, and a round counts for a pair of
//! programs only if the four ping-pongs around the two agree. The result covers each state of the
//! machine with enough ratios. A verdict needs all ratios of a state on one side of 1; with seven
//! ratios of two equally fast programs, that happens by chance once in 64 times.

use serde::Serialize;
use serde_json::Value;

use super::contract::{Answer, Figure};
use harness::row::Spread;
use harness::state::{Group, State, states, steady};

/// Rounds of one state that a verdict needs.
pub(super) const ENOUGH: usize = 7;

/// One measurement of one program.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sample {
    pub(super) answer: Answer,
    /// The ping-pongs directly before and after, in ns.
    pub(super) pings: [f64; 2],
}

/// One round: a sample of this build, then one of each other program that measures the case.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Round {
    pub(super) this: Sample,
    pub(super) others: Vec<Option<Sample>>,
}

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// This build is better in every round.
    Better,
    /// This build is worse in every round.
    Worse,
    /// The figures differ, and it is unknown which is better.
    Differs,
    /// The spread of the ratios covers 1.
    None,
    /// Too few rounds of one state; this never counts as a result.
    #[serde(rename = "not measured")]
    NotMeasured,
}

/// One figure of this build next to the same figure of another program, in one state of the
/// machine.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Comparison {
    pub(super) metric: String,
    pub(super) unit: String,
    pub(super) verdict: Verdict,
    /// For each round, the figure of this build divided by the other's.
    pub(super) ratio: Option<Spread>,
    pub(super) this: Option<Spread>,
    pub(super) other: Option<Spread>,
    pub(super) state: Option<State>,
    /// Rounds from which the figures come.
    pub(super) rounds: usize,
    /// The other program, as it describes itself.
    pub(super) other_run: Option<Value>,
}

/// How many rounds were tried, in how many of them the state changed, and how many failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tried {
    pub(super) rounds: usize,
    pub(super) unsteady: usize,
    pub(super) failed: usize,
}

/// True if one state has given enough rounds to compare this build with program `other`.
pub(super) fn is_enough(rounds: &[Round], other: usize) -> bool {
    groups(rounds, other).first().is_some_and(suffices)
}

/// The number of rounds tried for a pair; in `failed` further rounds, a measurement failed.
pub(super) fn tried(rounds: &[Round], other: usize, failed: usize) -> Tried {
    let steady = pings(rounds, other);
    Tried {
        rounds: rounds.len() + failed,
        unsteady: steady.iter().filter(|it| it.is_none()).count(),
        failed,
    }
}

/// The comparisons with program `other`: every figure that both have, in every state with enough
/// rounds. If no state has enough, compares in the state with the most rounds, without a verdict.
pub(super) fn comparisons(rounds: &[Round], other: usize) -> Vec<Comparison> {
    let groups = groups(rounds, other);
    let enough = groups.iter().take_while(|group| suffices(group)).count();
    let in_state = |group: &Group| {
        let pairs: Vec<(&Sample, &Sample)> = group
            .rounds
            .iter()
            .filter_map(|&index| pair(&rounds[index], other))
            .collect();
        let state = Some(group.state(rounds.len()));
        let figures = shared(rounds, other).into_iter();
        figures
            .filter_map(|figure| compare(figure, &pairs, state))
            .collect::<Vec<_>>()
    };
    match groups.is_empty() {
        true => {
            let figures = shared(rounds, other).into_iter();
            figures.filter_map(|it| compare(it, &[], None)).collect()
        }
        false => groups[..enough.max(1)].iter().flat_map(in_state).collect(),
    }
}

fn suffices(group: &Group) -> bool {
    group.rounds.len() >= ENOUGH
}

fn pair(round: &Round, other: usize) -> Option<(&Sample, &Sample)> {
    Some((&round.this, round.others.get(other)?.as_ref()?))
}

/// The time of each round's ping-pongs, if they agree.
fn pings(rounds: &[Round], other: usize) -> Vec<Option<f64>> {
    let around = |round| {
        let (this, other) = pair(round, other)?;
        steady([this.pings, other.pings].as_flattened())
    };
    rounds.iter().map(around).collect()
}

fn groups(rounds: &[Round], other: usize) -> Vec<Group> {
    states(&pings(rounds, other))
}

/// The figures that both have in the first round of the pair.
fn shared(rounds: &[Round], other: usize) -> Vec<&Figure> {
    let Some((this, other)) = rounds.iter().find_map(|round| pair(round, other)) else {
        return Vec::new();
    };
    let figures = this.answer.figures.iter();
    let is_shared = |figure: &&Figure| other.answer.find(&figure.metric).is_some();
    figures.filter(is_shared).collect()
}

/// `None` if a round lacks the figure.
fn compare(
    figure: &Figure,
    pairs: &[(&Sample, &Sample)],
    state: Option<State>,
) -> Option<Comparison> {
    let value = |sample: &Sample| Some(sample.answer.find(&figure.metric)?.1.value);
    let both = |(this, other): &(&Sample, &Sample)| Some((value(this)?, value(other)?));
    let values: Vec<(f64, f64)> = pairs.iter().map(both).collect::<Option<_>>()?;
    let ratios = values.iter().map(|(this, other)| this / other);
    // A figure of zero has no ratio.
    let ratio = Spread::of(ratios).filter(|it| it.min.is_finite() && it.max.is_finite());
    let verdict = match ratio {
        Some(ratio) if pairs.len() >= ENOUGH => verdict(ratio, prefers_less(&figure.unit)),
        None if pairs.len() >= ENOUGH => Verdict::None,
        _ => Verdict::NotMeasured,
    };
    Some(Comparison {
        metric: figure.metric.clone(),
        unit: figure.unit.clone(),
        verdict,
        ratio,
        this: Spread::of(values.iter().map(|it| it.0)),
        other: Spread::of(values.iter().map(|it| it.1)),
        state,
        rounds: pairs.len(),
        other_run: pairs.last().and_then(|it| it.1.answer.run.clone()),
    })
}

fn verdict(ratio: Spread, prefers_less: Option<bool>) -> Verdict {
    let is_less = match (ratio.min, ratio.max) {
        (min, _) if min > 1.0 => false,
        (_, max) if max < 1.0 => true,
        _ => return Verdict::None,
    };
    match prefers_less {
        Some(prefers) if prefers == is_less => Verdict::Better,
        Some(_) => Verdict::Worse,
        None => Verdict::Differs,
    }
}

/// True if smaller figures with this unit are better; `None` if that is unknown.
fn prefers_less(unit: &str) -> Option<bool> {
    match unit {
        "ns" | "us" | "B" | "percent" | "instructions" => Some(true),
        "1/s" | "Gbit/s" | "GB/s" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
