//! Decides whether some order of the operations explains a history, in which each operation takes
//! effect at one moment between its beginning and its end (Wing and Gong, 1993). As in Lowe, 2017,
//! the search remembers the states that it has seen. An operation whose outcome is unknown may take
//! effect at any time after its beginning, or never.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use dunlin_core::Nanos;

/// The most steps of one search. A history that needs more fails, because the search has decided
/// nothing.
const MOST_STEPS: u64 = 2_000_000;

/// An operation of a history.
pub trait Operation: Clone + Debug {
    /// The state on which operations act.
    type State: Clone + Eq + Hash;

    /// When its client began it.
    fn begin(&self) -> Nanos;

    /// When its client knew its outcome.
    fn end(&self) -> Nanos;

    /// Whether its client knows its outcome.
    fn is_known(&self) -> bool;

    /// Whether it only reads: it leaves the state as it is, whatever its outcome.
    fn is_read(&self) -> bool;

    /// The states after it, if it can have its outcome in this state.
    fn after(&self, state: &Self::State) -> Vec<Self::State>;
}

struct Search<'a, O: Operation> {
    operations: &'a [O],
    seen: HashSet<(Vec<u64>, O::State)>,
    steps: u64,
}

/// Checks whether some order explains the operations, the first of which finds this state.
///
/// # Errors
/// No order explains them, or the search takes too long; the text says which.
pub fn check<O: Operation>(operations: &[O], state: O::State) -> Result<(), String> {
    let mut sorted = operations.to_vec();
    sorted.sort_by_key(Operation::begin);
    let mut search = Search {
        operations: &sorted,
        seen: HashSet::new(),
        steps: 0,
    };
    let done = vec![0; sorted.len().div_ceil(64)];
    match search.explain(done, &state) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let lines = sorted.iter().map(|operation| format!("\n  {operation:?}"));
            Err(format!("no order explains{}", lines.collect::<String>()))
        }
        Err(()) => Err("the search takes too long".to_owned()),
    }
}

impl<O: Operation> Search<'_, O> {
    fn explain(&mut self, done: Vec<u64>, state: &O::State) -> Result<bool, ()> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(());
        }
        let is_done = |at: usize| done[at / 64] >> (at % 64) & 1 != 0;
        let open = (0..self.operations.len()).filter(|at| !is_done(*at));
        let ends = open.clone().map(|at| &self.operations[at]);
        let ends = ends.filter(|it| it.is_known()).map(Operation::end);
        let Some(first_end) = ends.min() else {
            return Ok(true);
        };
        let may_be_next = |at: &usize| self.operations[*at].begin() <= first_end;
        let mut next: Vec<usize> = open.filter(may_be_next).collect();
        // A read that may come next and fits the state may come first in every order that explains
        // the rest, because it does not affect the others. A read without an outcome explains
        // nothing.
        let fits = |at: &&usize| {
            let read = &self.operations[**at];
            read.is_known() && read.is_read() && read.after(state) == [state.clone()]
        };
        match next.iter().find(fits) {
            Some(read) => next = vec![*read],
            None => next.retain(|at| {
                let operation = &self.operations[*at];
                operation.is_known() || !operation.is_read()
            }),
        }
        // Most operations take effect in the order of their ends, and most operations without a
        // known outcome are not needed to explain the others. So this order soon finds an
        // explanation, if there is one.
        next.sort_by_key(|at| {
            let operation = &self.operations[*at];
            (!operation.is_known(), operation.end())
        });
        for at in next {
            for state in self.operations[at].after(state) {
                let mut done = done.clone();
                done[at / 64] |= 1 << (at % 64);
                if self.seen.insert((done.clone(), state.clone())) && self.explain(done, &state)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
