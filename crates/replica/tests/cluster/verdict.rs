//! The checks of a run's history, and what its planted bug has to do with them.

use dunlin_core::{Nanos, Ticket};
use dunlin_replica::Node;
use dunlin_testkit::linear;

use crate::record::{KEYS, Operation, Record, key_bytes};
use crate::sum::Bug;

/// Whether the changes that a client has watched leave what a replica has.
pub(crate) fn check_watched(record: &Record, node: &Node<Ticket>, last: u64) -> Result<(), String> {
    if record.watched_to <= last {
        return Err(format!("watched to {} of {last}", record.watched_to));
    }
    for key in (0..KEYS).map(key_bytes) {
        let version = node.item(&key).map(|(version, _)| version);
        let watched = record.watched.get(&key).copied();
        if version != watched {
            return Err(format!(
                "{key:?} has version {version:?}, watched was {watched:?}"
            ));
        }
    }
    Ok(())
}

/// Checks each key by itself.
pub(crate) fn check_keys(operations: &[Operation]) -> Result<(), String> {
    (0..KEYS).try_for_each(|key| {
        let of_key = operations.iter().filter(|it| it.key == key);
        let of_key: Vec<Operation> = of_key.cloned().collect();
        linear::check(&of_key, None).map_err(|what| format!("key {key}: {what}"))
    })
}

/// Whether leaders of the run have leases: with half of the logs in memory, and half of those on
/// disks. The bug of leases needs them, and that of questions would not show with them.
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

/// Whether a bug, if there is one, shows in what clients see.
pub(crate) fn shows_in_histories(bug: Bug) -> bool {
    #[cfg(feature = "mutants")]
    return bug != Bug::LostTail && bug.of_disk().is_none();
    #[cfg(not(feature = "mutants"))]
    return bug == Bug::None;
}

/// Most operations of a key that may be under way at once in a history for another checker.
const CROWD: usize = 16;

/// The keys on which too many operations are under way at once: a checker that tries all orders of
/// them does not end in time. The search of this crate's tests does, because it takes reads first.
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
