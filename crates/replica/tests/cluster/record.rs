//! The operations of a run, with their times and outcomes, and a model of one key.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use dunlin_core::Nanos;
use dunlin_replica::{Answer, Error, Event};
use dunlin_testkit::histories::Line;
use dunlin_testkit::linear;

/// The number of keys of a run.
pub(crate) const KEYS: usize = 8;
/// The key whose items may have a lifetime.
pub(crate) const PASSING: usize = KEYS - 1;

/// An operation on a key. Each write has a distinct number, which is its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Get,
    Put(u64),
    /// The number, and the minimum lifetime of the item.
    PutFor(u64, Nanos),
    Delete,
    /// The number, and the version that the item must have.
    CompareAndSet(u64, u64),
    /// The part of a transaction that writes a key without comparing its version.
    Follow(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) key: usize,
    pub(crate) action: Action,
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// `None`: the operation may or may not have happened.
    pub(crate) answer: Option<Answer>,
}

/// The item of a key: the number that was written, and its version, if the answer to the write or a
/// get has shown it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Item {
    number: u64,
    version: Option<u64>,
    /// The item may have expired from this time on; `None`: it never expires.
    goes_from: Option<Nanos>,
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

    fn is_read(&self) -> bool {
        matches!(self.action, Action::Get)
    }

    fn after(&self, state: &Option<Item>) -> Vec<Option<Item>> {
        // An item whose lifetime is over may be gone when the operation takes effect.
        let goes_from = state.and_then(|item| item.goes_from);
        let goes = goes_from.is_some_and(|from| from <= self.end);
        let gone = goes.then(|| self.step(None)).flatten();
        self.step(*state).into_iter().chain(gone).collect()
    }
}

impl Operation {
    /// The line of the operation, for a checker in another language. To that checker, a
    /// compare-and-set of a missing item is an `add`. `None`: the operation has an impossible
    /// answer, or is a read without one.
    pub(crate) fn line(&self) -> Option<Line> {
        let action = match self.action {
            Action::Get => ("get", 0, 0),
            Action::PutFor(number, time) => ("pass", number, time.0),
            Action::Put(number) | Action::Follow(number) => ("set", number, 0),
            Action::Delete => ("delete", 0, 0),
            Action::CompareAndSet(number, 0) => ("add", number, 0),
            Action::CompareAndSet(number, version) => ("cas", number, version),
        };
        let outcome = match (self.action, self.answer.as_ref()) {
            // A read without an answer explains nothing, and doubles the work of the search.
            (Action::Get, None) => return None,
            (_, None) => ("unknown", 0, 0),
            (_, Some(Answer::Found(version, value))) => ("found", number_of(value)?, *version),
            (_, Some(Answer::Missing | Answer::Deleted(0))) => ("absent", 0, 0),
            (_, Some(Answer::Written(version))) => ("written", *version, 0),
            (_, Some(Answer::Deleted(_))) => ("done", 0, 0),
            (Action::CompareAndSet(_, 0), Some(Answer::Differs(_) | Answer::Conflict(_))) => {
                ("present", 0, 0)
            }
            (_, Some(Answer::Conflict(_))) => ("conflict", 0, 0),
            (_, Some(Answer::Differs(0))) => ("absent", 0, 0),
            (_, Some(Answer::Differs(_))) => ("differs", 0, 0),
            _ => return None,
        };
        Some(Line {
            object: (0, self.key),
            times: (self.begin.0, self.end.0),
            action,
            outcome,
        })
    }

    /// The number that the operation writes, if it writes.
    pub(crate) const fn number(&self) -> Option<u64> {
        match self.action {
            Action::Put(number)
            | Action::PutFor(number, _)
            | Action::CompareAndSet(number, _)
            | Action::Follow(number) => Some(number),
            Action::Get | Action::Delete => None,
        }
    }

    /// The state after the operation, if its answer is possible in this state.
    fn step(&self, state: Option<Item>) -> Option<Option<Item>> {
        let item = |number, version, goes_from| {
            Some(Item {
                number,
                version,
                goes_from,
            })
        };
        let written = |number, version| item(number, version, None);
        // The item as it was, with its version now known.
        let seen = |version| state.and_then(|it| item(it.number, Some(version), it.goes_from));
        match (self.action, &self.answer) {
            (Action::Get, Some(Answer::Missing)) => state.is_none().then_some(None),
            (Action::Get, Some(Answer::Found(version, value))) => {
                let number = number_of(value)?;
                let fits = state.is_some_and(|it| it.number == number && it.may_have(*version));
                fits.then_some(seen(*version))
            }
            (Action::PutFor(number, time), Some(Answer::Written(version))) => {
                Some(item(number, Some(*version), Some(self.begin + time)))
            }
            (Action::PutFor(number, time), None) => {
                Some(item(number, None, Some(self.begin + time)))
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
            (Action::Follow(number), Some(Answer::Written(version))) => {
                Some(written(number, Some(*version)))
            }
            (Action::Follow(number), None) => Some(written(number, None)),
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
                        state.filter(|it| it.may_have(*version))?;
                        Some(seen(*version))
                    }
                    Some(Answer::Conflict(_)) => {
                        let differs = match state {
                            None => wanted != 0,
                            Some(it) => it.version != Some(wanted),
                        };
                        differs.then_some(state)
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
    /// Committed transactions: version, and the keys that they have written.
    pub(crate) transactions: Vec<(u64, [usize; 2])>,
    /// Ranges that were read: the version of each key.
    pub(crate) ranges: Vec<[Option<u64>; KEYS]>,
    /// The changes that the watch has shown, in order, and the next index.
    pub(crate) watched: Vec<Event>,
    pub(crate) watched_to: u64,
    /// A watch has missed changes, because a replica had forgotten them.
    pub(crate) has_missed: bool,
    numbers: u64,
}

pub(crate) type Shared = Rc<RefCell<Record>>;

impl Record {
    /// A number that no other write of the run has.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Notes the end of an operation. Leaves out operations that have changed nothing and never
    /// will.
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

    /// Notes changes that a watch has shown for these indices.
    pub(crate) fn on_events(&mut self, indices: Range<u64>, events: Vec<Event>) {
        let mut last = indices.start;
        for event in events {
            if event.index < last || !indices.contains(&event.index) {
                let what = format!("{event:?} came after {last}, for the indices {indices:?}");
                return self.violate(what);
            }
            last = event.index;
            self.watched.push(event);
        }
        self.watched_to = indices.end;
    }

    /// Checks that no range has shown one part of a transaction without the other.
    pub(crate) fn check_ranges(&self) -> Result<(), String> {
        for range in &self.ranges {
            for (version, keys) in &self.transactions {
                let [one, other] = keys.map(|key| range[key]);
                // Another write may have followed.
                let is_half = |one: Option<u64>, other: Option<u64>| {
                    one == Some(*version) && other.is_some_and(|other| other < *version)
                };
                if is_half(one, other) || is_half(other, one) {
                    return Err(format!(
                        "{range:?} has half of the transaction {version} of the keys {keys:?}"
                    ));
                }
            }
        }
        Ok(())
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
