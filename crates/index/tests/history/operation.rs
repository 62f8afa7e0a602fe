//! Operations on keys. Each key behaves like a register that one operation at a time changes.

use dunlin_core::Nanos;
use dunlin_testkit::linear;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Get,
    Put(u64),
    Delete,
}

/// The result of an operation: it made its change, there was no item, or it found an item with this
/// number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Written,
    Missing,
    Found(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) key: usize,
    pub(crate) action: Action,
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// `None`: the operation may or may not have happened.
    pub(crate) outcome: Option<Outcome>,
}

impl linear::Operation for Operation {
    type State = Option<u64>;

    fn begin(&self) -> Nanos {
        self.begin
    }

    fn end(&self) -> Nanos {
        self.end
    }

    fn is_known(&self) -> bool {
        self.outcome.is_some()
    }

    fn is_read(&self) -> bool {
        self.action == Action::Get
    }

    fn after(&self, state: &Option<u64>) -> Vec<Option<u64>> {
        let is_possible = match (self.action, self.outcome) {
            (_, None) => true,
            (Action::Get, Some(Outcome::Found(number))) => *state == Some(number),
            (Action::Get | Action::Delete, Some(Outcome::Missing)) => state.is_none(),
            (Action::Put(_), Some(Outcome::Written)) => true,
            (Action::Delete, Some(Outcome::Written)) => state.is_some(),
            _ => false,
        };
        let after = match self.action {
            Action::Get => *state,
            Action::Put(number) => Some(number),
            Action::Delete => None,
        };
        is_possible.then_some(after).into_iter().collect()
    }
}
