//! The operations of a run, with their times and outcomes, and one key as it should behave.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::Nanos;
use dunlin_replica::{Answer, Error};
use dunlin_testkit::linear;

/// The number of keys of a run.
pub(crate) const KEYS: usize = 8;

/// An operation on a key. Each write has a number of its own, which is its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Get,
    Put(u64),
    Delete,
    /// Number, and the version that the item must have.
    CompareAndSet(u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) key: usize,
    pub(crate) action: Action,
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// `None`: it may or may not have happened.
    pub(crate) answer: Option<Answer>,
}

/// The item of a key: the number that was written, and its version, if the write had an answer or
/// a get has seen it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Item {
    number: u64,
    version: Option<u64>,
}

impl Item {
    fn may_have(&self, version: u64) -> bool {
        self.version.is_none_or(|own| own == version)
    }
}

impl linear::Operation for Operation {
    type State = Option<Item>;

    fn begin(&self) -> Nanos {
        self.begin
    }

    fn end(&self) -> Nanos {
        self.end
    }

    fn is_known(&self) -> bool {
        self.answer.is_some()
    }

    fn after(&self, state: &Option<Item>) -> Vec<Option<Item>> {
        self.step(*state).into_iter().collect()
    }
}

impl Operation {
    /// The state after the operation, if it can have its answer.
    fn step(&self, state: Option<Item>) -> Option<Option<Item>> {
        let written = |number, version| Some(Item { number, version });
        match (self.action, &self.answer) {
            (Action::Get, Some(Answer::Missing)) => state.is_none().then_some(None),
            (Action::Get, Some(Answer::Found(version, value))) => {
                let number = number_of(value)?;
                let fits = state.is_some_and(|it| it.number == number && it.may_have(*version));
                fits.then_some(written(number, Some(*version)))
            }
            (Action::Put(number), Some(Answer::Written(version))) => {
                Some(written(number, Some(*version)))
            }
            (Action::Put(number), None) => Some(written(number, None)),
            (Action::Delete, Some(Answer::Deleted(0))) => state.is_none().then_some(None),
            (Action::Delete, Some(Answer::Deleted(version))) => state
                .is_some_and(|it| it.may_have(*version))
                .then_some(None),
            (Action::Delete, None) => Some(None),
            (Action::CompareAndSet(number, wanted), answer) => {
                let may_fit = match wanted {
                    0 => state.is_none(),
                    _ => state.is_some_and(|it| it.may_have(wanted)),
                };
                match answer {
                    Some(Answer::Written(version)) => {
                        may_fit.then_some(written(number, Some(*version)))
                    }
                    Some(Answer::Differs(0)) => (wanted != 0 && state.is_none()).then_some(None),
                    Some(Answer::Differs(version)) if *version != wanted => {
                        let item = state.filter(|it| it.may_have(*version))?;
                        Some(written(item.number, Some(*version)))
                    }
                    None if may_fit => Some(written(number, None)),
                    None => Some(state),
                    Some(_) => None,
                }
            }
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) operations: Vec<Operation>,
    pub(crate) violation: Option<String>,
    numbers: u64,
}

pub(crate) type Shared = Rc<RefCell<Record>>;

impl Record {
    /// A number that no other write of the run has.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Notes the end of an operation. Those that have changed nothing and never will are left out.
    pub(crate) fn note(&mut self, operation: Operation, result: Result<Answer, Error>) {
        let answer = match result {
            Ok(answer) => Some(answer),
            Err(Error::Unknown) => None,
            Err(Error::Unavailable | Error::Full) => return,
            Err(error) => return self.violate(format!("{operation:?}: {error}")),
        };
        self.operations.push(Operation {
            answer,
            ..operation
        });
    }

    pub(crate) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}

/// The bytes of a key.
pub(crate) fn key_bytes(key: usize) -> Vec<u8> {
    format!("key-{key}").into_bytes()
}

/// The value that a write leaves.
pub(crate) fn value_of(number: u64) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn number_of(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    text.strip_prefix("value ")?.parse().ok()
}

#[test]
fn orders_that_exist_are_found_and_no_others() {
    let operation = |action, begin, end, answer| Operation {
        key: 0,
        action,
        begin: Nanos(begin),
        end: Nanos(end),
        answer,
    };
    let put = |begin, end| operation(Action::Put(1), begin, end, Some(Answer::Written(5)));
    let lost = operation(Action::Put(1), 0, u64::MAX, None);
    let found = |begin, end| {
        let answer = Answer::Found(5, value_of(1));
        operation(Action::Get, begin, end, Some(answer))
    };
    let missed = |begin, end| operation(Action::Get, begin, end, Some(Answer::Missing));
    let deleted = |version| operation(Action::Delete, 3, 4, Some(Answer::Deleted(version)));
    let set = |wanted, answer| operation(Action::CompareAndSet(2, wanted), 3, 4, Some(answer));
    let good = [
        vec![put(1, 2), found(3, 4)],
        vec![missed(1, 9), put(2, 3), found(4, 5)],
        vec![lost.clone(), missed(1, 2), found(3, 4)],
        vec![put(1, 2), deleted(5), missed(5, 6)],
        vec![put(1, 2), set(5, Answer::Written(6))],
        vec![put(1, 2), set(4, Answer::Differs(5)), found(5, 6)],
        vec![set(3, Answer::Differs(0)), missed(5, 6)],
    ];
    for operations in good {
        assert_eq!(linear::check(&operations, None), Ok(()));
    }
    let bad = [
        vec![found(1, 2)],
        vec![put(1, 2), missed(3, 4)],
        vec![lost, found(1, 2), missed(3, 4)],
        vec![put(1, 2), deleted(4)],
        vec![put(1, 2), set(4, Answer::Written(6))],
        vec![put(1, 2), set(5, Answer::Differs(5))],
        vec![set(0, Answer::Differs(0))],
    ];
    for operations in bad {
        assert!(linear::check(&operations, None).is_err(), "{operations:?}");
    }
}
