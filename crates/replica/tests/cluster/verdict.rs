//! The checks of a run's history, and which of them can reveal its planted bug.

use dunlin_core::{Nanos, Ticket};
use dunlin_replica::{Answer, Event, EventKind, Node};
use dunlin_testkit::linear;

use crate::record::{KEYS, Operation, Record, key_bytes, value_of};
use crate::sum::Bug;

/// Checks that a client has watched all changes: applying them gives the items of a replica, and
/// each answered write is among them.
pub(crate) fn check_watched(record: &Record, node: &Node<Ticket>, last: u64) -> Result<(), String> {
    if record.watched_to <= last {
        return Err(format!("watched to {} of {last}", record.watched_to));
    }
    (0..KEYS).try_for_each(|key| {
        let bytes = key_bytes(key);
        let events: Vec<&Event> = record.watched.iter().filter(|it| it.key == bytes).collect();
        let left = events.last().filter(|it| is_put(it)).map(|it| it.index);
        let version = node.item(&bytes).map(|(version, _)| version);
        if version != left {
            return Err(format!(
                "key {key} has version {version:?}, watched was {left:?}"
            ));
        }
        let of_key = || record.operations.iter().filter(move |it| it.key == key);
        if let Some(missed) = of_key().find(|it| !is_watched(it, &events)) {
            return Err(format!("no watch has shown {missed:?}"));
        }
        let is_real = |event: &&&Event| of_key().any(|it| has_made(it, event));
        let unreal = events
            .iter()
            .filter(|it| is_put(it))
            .find(|it| !is_real(it));
        unreal.map_or(Ok(()), |event| Err(format!("no write has made {event:?}")))
    })
}

const fn is_put(event: &Event) -> bool {
    matches!(event.kind, EventKind::Put(_))
}

/// Whether the operation wrote the value of the event.
fn has_made(operation: &Operation, event: &Event) -> bool {
    let value = operation.number().map(value_of);
    matches!(&event.kind, EventKind::Put(seen) if Some(seen) == value.as_ref())
}

/// Whether an event shows the operation, if the operation has an answer and has changed its key.
fn is_watched(operation: &Operation, events: &[&Event]) -> bool {
    let at = |index: u64| events.iter().position(|it| it.index == index);
    match operation.answer {
        Some(Answer::Written(index)) => at(index).is_some_and(|at| has_made(operation, events[at])),
        Some(Answer::Deleted(version)) if version > 0 => {
            let next = at(version).and_then(|at| events.get(at + 1));
            next.is_some_and(|it| it.kind == EventKind::Deleted)
        }
        _ => true,
    }
}

/// Checks each key separately.
pub(crate) fn check_keys(operations: &[Operation]) -> Result<(), String> {
    (0..KEYS).try_for_each(|key| {
        let of_key = operations.iter().filter(|it| it.key == key);
        let of_key: Vec<Operation> = of_key.cloned().collect();
        linear::check(&of_key, None).map_err(|what| format!("key {key}: {what}"))
    })
}

/// Whether leaders of the run have leases: in half of the runs with logs in memory, and half of
/// those on disks. The bug of leases needs them. With them, the bug of gets without a question
/// (`StaleRead`) would not show.
pub(crate) fn has_leases(seed: u64, bug: Bug) -> bool {
    #[cfg(feature = "mutants")]
    match bug {
        Bug::Replica(dunlin_replica::Mutant::LeaseByTicks) => return true,
        Bug::Replica(dunlin_replica::Mutant::StaleRead) => return false,
        _ => {}
    }
    let _ = bug;
    matches!(seed % 4, 1 | 2)
}

/// Whether a bug, if there is one, shows in the clients' history.
pub(crate) fn shows_in_histories(bug: Bug) -> bool {
    #[cfg(feature = "mutants")]
    return bug != Bug::LostTail && bug.of_disk().is_none();
    #[cfg(not(feature = "mutants"))]
    return bug == Bug::None;
}

/// The most concurrent operations of a key in a history for another checker.
const CROWD: usize = 16;

/// The keys with too many concurrent operations: a checker that tries all their orders does not
/// finish in reasonable time. The search of this crate's tests does, because it takes reads first.
pub(crate) fn crowded_keys(operations: &[Operation]) -> Vec<usize> {
    let is_crowded = |key: &usize| {
        let of_key = || {
            operations
                .iter()
                .filter(|it| it.key == *key && it.line().is_some())
        };
        of_key().any(|at| {
            let beside = of_key().filter(|it| {
                let end = it.answer.as_ref().map_or(Nanos::MAX, |_| it.end);
                it.begin <= at.begin && end >= at.begin
            });
            beside.count() > CROWD
        })
    };
    (0..KEYS).filter(is_crowded).collect()
}
