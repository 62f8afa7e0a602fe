//! The samples of a run that count: only samples in the machine's most frequent state. This state
//! is the same for all peers, so that their rows may be compared.

use harness::state::{Condition, Group, Reason, states, steady};

use crate::plan::Sample;

/// The most frequent state of the machine in a run.
#[derive(Debug)]
pub(crate) struct State(Group);

impl State {
    /// `None` if no sample has ping-pongs that agree, or any at all.
    pub(crate) fn most_frequent<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Self> {
        let pings: Vec<Option<f64>> = samples.map(|sample| steady(&sample.pings)).collect();
        states(&pings).into_iter().next().map(Self)
    }

    fn has(&self, sample: &Sample) -> bool {
        let span = self.0.ping_ns.min..=self.0.ping_ns.max;
        steady(&sample.pings).is_some_and(|ping| span.contains(&ping))
    }
}

/// The samples of a row that count, its account of the machine, and whether it is valid. If no
/// sample has the state, all count, and the row is not valid.
pub(crate) fn counted<'a>(
    samples: &'a [Sample],
    state: Option<&State>,
) -> (Vec<&'a Sample>, Condition, bool) {
    let without = |reason| Condition::Without(reason);
    if samples.iter().all(|sample| sample.pings.is_empty()) {
        let all = samples.iter().collect();
        return (all, without(Reason::NotMeasured), true);
    }
    let has = |sample: &&Sample| state.is_some_and(|state| state.has(sample));
    let of_state: Vec<&Sample> = samples.iter().filter(has).collect();
    let pings: Vec<_> = of_state.iter().map(|it| steady(&it.pings)).collect();
    match states(&pings).into_iter().next() {
        Some(group) => {
            let condition = Condition::Steady(group.state(samples.len()));
            (of_state, condition, true)
        }
        None => (samples.iter().collect(), without(Reason::Changing), false),
    }
}

#[cfg(test)]
mod tests;
