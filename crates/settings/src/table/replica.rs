//! The settings of replicas.

use crate::options::ReplicaOptions;
use crate::setting::{FieldOf, HOUR, Lens, MILLIS, MS, Setting, US, Unit};

const fn row(
    name: &'static str,
    unit: Unit,
    lens: Lens<ReplicaOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Replica(lens), meaning)
}

pub(super) const REPLICA: &[Setting] = &[
    row(
        "replica.election",
        MILLIS,
        |replica| &mut replica.election,
        "shortest time without a leader after which a replica asks for votes; the longest is \
         twice as long, and heartbeats come five times as often; all replicas of a cluster \
         need the same value",
    )
    .within(10 * MS..=HOUR),
    row(
        "replica.append_bytes",
        Unit::Bytes,
        |replica| &mut replica.append_bytes,
        "most bytes of entries in one message to a follower",
    )
    .within(1..=64 << 20),
    row(
        "replica.appends",
        Unit::Count,
        |replica| &mut replica.appends,
        "most messages with entries that a follower has not answered",
    )
    .within(1..=1024),
    row(
        "replica.operations",
        Unit::Count,
        |replica| &mut replica.operations,
        "most operations of clients that are under way at a leader, and most clients that \
         watch; others are refused as busy",
    )
    .within(1..=1 << 20),
    row(
        "replica.kept_entries",
        Unit::Count,
        |replica| &mut replica.kept_entries,
        "applied entries that the log keeps, for followers that lag; it may keep up to twice as \
         many, and while a follower catches up, up to sixteen times as many",
    )
    .within(1..=1 << 40),
    row(
        "replica.kept_bytes",
        Unit::Bytes,
        |replica| &mut replica.kept_bytes,
        "bytes of applied entries that the log keeps; as with `replica.kept_entries`, up to \
         twice or sixteen times as many; the limit that is reached first counts",
    )
    .within(1024..=1 << 40),
    row(
        "replica.lease_reads",
        Unit::Switch,
        |replica| &mut replica.lease_reads,
        "a leader answers gets without a majority while no other replica can lead; no replica's \
         clock may run more than an eighth faster than another's, or stand while others go on",
    ),
    row(
        "replica.slice_bytes",
        Unit::Bytes,
        |replica| &mut replica.slice_bytes,
        "bytes of a snapshot, or of the items for the disk, that a replica makes before it \
         looks for other work",
    )
    .within(1024..=64 << 20),
    row(
        "replica.piece_bytes",
        Unit::Bytes,
        |replica| &mut replica.piece_bytes,
        "bytes of a part of a snapshot; one part at a time is under way to a follower",
    )
    .within(1024..=1 << 20),
    row(
        "replica.least_pause",
        MILLIS,
        |replica| &mut replica.least_pause,
        "pause after a session with another replica could not be made; it doubles with each \
         further failure",
    )
    .within(US..=HOUR),
    row(
        "replica.most_pause",
        MILLIS,
        |replica| &mut replica.most_pause,
        "longest pause between two tries of a session with another replica",
    )
    .within(US..=HOUR),
];
