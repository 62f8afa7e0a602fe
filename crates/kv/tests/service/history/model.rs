//! A model of one key. In the second in which an item expires, it may or may not be there.

use dunlin_core::Nanos;

use crate::history::record::{Action, Operation, Outcome};

/// The item of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Item {
    number: u64,
    /// `None`: the result of its write is unknown.
    version: Option<u64>,
    /// It may be gone from the first time on, and must be gone from the second time on.
    expires: (Nanos, Nanos),
}

/// The state of a key.
pub(crate) type State = Option<Item>;

const NEVER: (Nanos, Nanos) = (Nanos::MAX, Nanos::MAX);
const SECOND: u64 = 1_000_000_000;

/// The times between which an item expires. Its write took place between `begin` and `end`.
fn expiry(begin: Nanos, end: Nanos, lifetime: u32) -> (Nanos, Nanos) {
    if lifetime == 0 {
        return NEVER;
    }
    let at = |time: Nanos| match time {
        Nanos::MAX => Nanos::MAX,
        time => Nanos((time.0 / SECOND + u64::from(lifetime)) * SECOND),
    };
    (at(begin), at(end))
}

/// The states after an operation, if its outcome is possible in this state. There are several if
/// the item may have expired.
pub(crate) fn after(state: State, operation: &Operation) -> Vec<State> {
    let mut states = Vec::new();
    let is_alive = |item: &Item| operation.begin < item.expires.1;
    let may_be_gone = |item: &Item| operation.end >= item.expires.0;
    match state {
        None => states.extend(step(None, operation)),
        Some(item) => {
            if is_alive(&item) {
                states.extend(step(Some(item), operation));
            }
            if may_be_gone(&item) {
                states.extend(step(None, operation));
            }
        }
    }
    states
}

/// The state after an operation, if its outcome is possible.
fn step(state: State, operation: &Operation) -> Option<State> {
    let Operation {
        action,
        begin,
        end,
        outcome,
        ..
    } = *operation;
    let written = |number, lifetime, version| {
        Some(Item {
            number,
            version,
            expires: expiry(begin, end, lifetime),
        })
    };
    let version = match outcome {
        Outcome::Written(version) | Outcome::Counted(_, version) => Some(version),
        _ => None,
    };
    let may_happen = matches!(
        outcome,
        Outcome::Written(_) | Outcome::Done | Outcome::Unknown
    );
    match (action, state) {
        (Action::Lose, _) => Some(None),
        // An item whose time is up may be evicted, too.
        (Action::Evict(_), None) => Some(None),
        (Action::Evict(gone), Some(item)) => {
            let is_it = item.version.is_none_or(|version| version == gone);
            is_it.then_some(None)
        }
        (Action::Get, state) => get(state, outcome),
        (Action::Set(number, lifetime), _) => {
            may_happen.then(|| written(number, lifetime, version))
        }
        (Action::Add(number), None) => may_happen.then(|| written(number, 0, version)),
        (Action::Add(_), Some(_)) => unchanged(state, outcome, Outcome::Present),
        (Action::Cas(..) | Action::Count | Action::Delete, None) => {
            unchanged(state, outcome, Outcome::Absent)
        }
        (Action::Cas(number, wanted), Some(item)) => {
            let may_fit = item.version.is_none_or(|version| version == wanted);
            let may_differ = item.version != Some(wanted);
            match outcome {
                Outcome::Differs => may_differ.then_some(state),
                // If the versions differ, it changes nothing.
                Outcome::Unknown if !may_fit => Some(state),
                _ => (may_fit && may_happen).then(|| written(number, 0, version)),
            }
        }
        (Action::Count, Some(item)) => {
            let number = item.number + 1;
            let fits = match outcome {
                Outcome::Counted(counted, _) => counted == number,
                outcome => outcome == Outcome::Unknown,
            };
            fits.then_some(Some(Item {
                number,
                version,
                ..item
            }))
        }
        (Action::Delete, Some(_)) => may_happen.then_some(None),
    }
}

fn get(state: State, outcome: Outcome) -> Option<State> {
    match (state, outcome) {
        (None, Outcome::Absent) => Some(None),
        (Some(item), Outcome::Found(number, version)) => {
            let is_it = item.number == number && item.version.is_none_or(|it| it == version);
            let item = Item {
                version: Some(version),
                ..item
            };
            is_it.then_some(Some(item))
        }
        _ => None,
    }
}

/// The same state, if an operation that does nothing has the expected outcome.
fn unchanged(state: State, outcome: Outcome, expected: Outcome) -> Option<State> {
    (outcome == expected || outcome == Outcome::Unknown).then_some(state)
}
