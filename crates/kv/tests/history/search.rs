//! The search for an order of a key's operations that explains their outcomes: each takes effect at
//! one moment between its begin and its end (Wing and Gong, 1993, with the memory of Lowe, 2017).
//! An operation whose outcome is unknown may take effect at any time after its begin, or never.

use std::collections::HashSet;

use dunlin_core::Nanos;

use crate::model::{State, after};
use crate::record::{Operation, Outcome};

/// The most steps of one search. A run that needs more fails, because nothing is known of it.
const MOST_STEPS: u64 = 2_000_000;

struct Search<'a> {
    operations: &'a [Operation],
    seen: HashSet<(Vec<u64>, State)>,
    steps: u64,
}

/// Whether some order explains the operations of one key.
///
/// # Errors
/// In words: none does, or it cannot be said.
pub(crate) fn check(operations: &[Operation]) -> Result<(), String> {
    let mut sorted = operations.to_vec();
    sorted.sort_by_key(|operation| operation.begin);
    let mut search = Search {
        operations: &sorted,
        seen: HashSet::new(),
        steps: 0,
    };
    let done = vec![0; sorted.len().div_ceil(64)];
    match search.explain(done, None) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let lines = sorted.iter().map(|operation| format!("\n  {operation:?}"));
            Err(format!("no order explains{}", lines.collect::<String>()))
        }
        Err(()) => Err("the search takes too long".to_owned()),
    }
}

impl Search<'_> {
    fn explain(&mut self, done: Vec<u64>, state: State) -> Result<bool, ()> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(());
        }
        let is_done = |at: usize| done[at / 64] >> (at % 64) & 1 != 0;
        let open = (0..self.operations.len()).filter(|at| !is_done(*at));
        let must = |at: &usize| self.operations[*at].outcome != Outcome::Unknown;
        let Some(first_end) = open
            .clone()
            .filter(must)
            .map(|at| self.operations[at].end)
            .min()
        else {
            return Ok(true);
        };
        let next: Vec<usize> = open
            .filter(|at| self.operations[*at].begin <= first_end)
            .collect();
        for at in next {
            for state in after(state, &self.operations[at]) {
                let mut done = done.clone();
                done[at / 64] |= 1 << (at % 64);
                if self.seen.insert((done.clone(), state)) && self.explain(done, state)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

fn operation(action: crate::record::Action, begin: u64, end: u64, outcome: Outcome) -> Operation {
    Operation {
        key: 0,
        action,
        begin: Nanos(begin),
        end: Nanos(end),
        outcome,
    }
}

#[test]
fn orders_that_exist_are_found_and_no_others() {
    use crate::record::Action::{Count, Get, Set};
    let set = |begin, end| operation(Set(1, 0), begin, end, Outcome::Written(5));
    let found = |begin, end| operation(Get, begin, end, Outcome::Found(1, 5));
    let missed = |begin, end| operation(Get, begin, end, Outcome::Absent);
    let unknown = |action| operation(action, 0, u64::MAX, Outcome::Unknown);
    let counted = |begin, end, number| operation(Count, begin, end, Outcome::Counted(number, 9));
    let good = [
        vec![set(1, 2), found(3, 4)],
        vec![set(1, 5), found(2, 3), found(4, 6)],
        vec![missed(1, 9), set(2, 3), found(4, 5)],
        vec![unknown(Set(1, 0)), missed(1, 2), found(3, 4)],
        vec![unknown(Set(1, 0)), missed(1, 2)],
        vec![set(1, 2), counted(3, 4, 2)],
        vec![set(1, 2), unknown(Count), counted(3, 4, 3)],
    ];
    for operations in good {
        assert_eq!(check(&operations), Ok(()));
    }
    let bad = [
        vec![found(1, 2)],
        vec![set(1, 2), missed(3, 4)],
        vec![set(1, 5), found(2, 3), missed(4, 6)],
        vec![set(1, 2), counted(3, 4, 3)],
        vec![unknown(Set(1, 0)), found(1, 2), missed(3, 4)],
    ];
    for operations in bad {
        assert!(check(&operations).is_err(), "{operations:?}");
    }
}

#[test]
fn an_item_may_go_only_when_its_time_is_up() {
    use crate::record::Action::{Get, Set};
    let second = 1_000_000_000;
    let set = operation(Set(1, 1), 10, second / 2, Outcome::Written(5));
    let get = |at, outcome| operation(Get, at, at + 10, outcome);
    let found = |at| get(at, Outcome::Found(1, 5));
    let missed = |at| get(at, Outcome::Absent);
    assert!(check(&[set, found(second - 100), missed(second)]).is_ok());
    assert!(
        check(&[set, missed(second - 100)]).is_err(),
        "it has gone too early"
    );
    assert!(
        check(&[set, found(second)]).is_err(),
        "it has stayed too long"
    );
}
