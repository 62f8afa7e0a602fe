//! The search for an order of a key's operations that explains their outcomes.

use std::collections::BTreeMap;

use dunlin_core::Nanos;
use dunlin_testkit::linear;

use crate::history::model::{State, after};
use crate::history::record::{Action, Operation, Outcome};

impl linear::Operation for Operation {
    type State = State;

    fn begin(&self) -> Nanos {
        self.begin
    }

    fn end(&self) -> Nanos {
        self.end
    }

    fn is_known(&self) -> bool {
        self.outcome != Outcome::Unknown
    }

    fn is_read(&self) -> bool {
        matches!(self.action, Action::Get)
    }

    fn after(&self, state: &State) -> Vec<State> {
        after(*state, self)
    }
}

/// Whether some order explains the operations of each key of each server.
///
/// # Errors
/// A description of the first key without an order.
pub(crate) fn check_all(operations: &[Operation]) -> Result<(), String> {
    let mut registers: BTreeMap<(usize, usize), Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        let register = (operation.server, operation.key);
        registers.entry(register).or_default().push(*operation);
    }
    for ((server, key), operations) in registers {
        check(&operations).map_err(|what| format!("key {key} of server {server}: {what}"))?;
    }
    Ok(())
}

/// Whether some order explains the operations of one key.
///
/// # Errors
/// A description: no order exists, or the search could not decide.
fn check(operations: &[Operation]) -> Result<(), String> {
    linear::check(operations, None)
}

fn operation(action: Action, begin: u64, end: u64, outcome: Outcome) -> Operation {
    Operation {
        server: 0,
        key: 0,
        action,
        begin: Nanos(begin),
        end: Nanos(end),
        outcome,
    }
}

#[test]
fn orders_that_exist_are_found_and_no_others() {
    use crate::history::record::Action::{Count, Evict, Get, Set};
    let set = |begin, end| operation(Set(1, 0), begin, end, Outcome::Written(5));
    let found = |begin, end| operation(Get, begin, end, Outcome::Found(1, 5));
    let missed = |begin, end| operation(Get, begin, end, Outcome::Absent);
    let unknown = |action| operation(action, 0, u64::MAX, Outcome::Unknown);
    let evicted = |at, version| operation(Evict(version), at, at, Outcome::Done);
    let counted = |begin, end, number| operation(Count, begin, end, Outcome::Counted(number, 9));
    let good = [
        vec![set(1, 2), found(3, 4)],
        vec![set(1, 5), found(2, 3), found(4, 6)],
        vec![missed(1, 9), set(2, 3), found(4, 5)],
        vec![unknown(Set(1, 0)), missed(1, 2), found(3, 4)],
        vec![unknown(Set(1, 0)), missed(1, 2)],
        vec![set(1, 2), counted(3, 4, 2)],
        vec![set(1, 2), unknown(Count), counted(3, 4, 3)],
        vec![set(1, 2), evicted(3, 5), missed(4, 6)],
    ];
    for operations in good {
        assert_eq!(check(&operations), Ok(()));
    }
    let bad = [
        vec![found(1, 2)],
        vec![set(1, 2), missed(3, 4)],
        vec![set(1, 2), evicted(3, 4), missed(4, 6)],
        vec![set(1, 2), evicted(3, 5), found(4, 6)],
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
    use crate::history::record::Action::{Get, Set};
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
