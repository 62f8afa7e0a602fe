//! Planted bugs, and counts of the cases that a run has covered.

use crate::disk::DiskBug;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    None,
    /// A bug of the replica.
    #[cfg(feature = "mutants")]
    Replica(dunlin_replica::Mutant),
    /// The last entries do not survive a restart.
    #[cfg(feature = "mutants")]
    LostTail,
    /// A bug of the disk.
    #[cfg(feature = "mutants")]
    Disk(DiskBug),
}

impl Bug {
    pub(crate) const fn of_disk(self) -> Option<DiskBug> {
        #[cfg(feature = "mutants")]
        if let Self::Disk(bug) = self {
            return Some(bug);
        }
        None
    }
}

/// Counts of events, which show that the runs cover the intended cases.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sum {
    pub(crate) operations: u64,
    pub(crate) unknown: u64,
    pub(crate) restarts: u64,
    pub(crate) cuts: u64,
    pub(crate) pauses: u64,
    pub(crate) terms: u64,
    pub(crate) entries: u64,
    pub(crate) snapshots: u64,
    /// Names that clients have received.
    pub(crate) names: u64,
    /// Runs in which a client has watched all changes.
    pub(crate) watched: u64,
    pub(crate) transactions: u64,
    pub(crate) ranges: u64,
    /// Replicas that have resumed from their disks.
    pub(crate) resumed: u64,
    /// Processes that ended because their disk failed.
    pub(crate) failed_disks: u64,
    /// Runs that have ended with other members.
    pub(crate) changed: u64,
    /// Disks that were full for a while.
    pub(crate) full_disks: u64,
    /// How often a leader's status showed a partly sent snapshot.
    pub(crate) partly_sent: u64,
    /// Writes of zeros ahead of a log's end that were not synced before a crash or a failure.
    pub(crate) lost_zeros: u64,
    /// Keys, and those of them that the other checker does not get.
    pub(crate) keys: u64,
    pub(crate) crowded: u64,
}

impl Sum {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            unknown: self.unknown + other.unknown,
            restarts: self.restarts + other.restarts,
            cuts: self.cuts + other.cuts,
            pauses: self.pauses + other.pauses,
            terms: self.terms + other.terms,
            entries: self.entries + other.entries,
            snapshots: self.snapshots + other.snapshots,
            names: self.names + other.names,
            watched: self.watched + other.watched,
            transactions: self.transactions + other.transactions,
            ranges: self.ranges + other.ranges,
            resumed: self.resumed + other.resumed,
            failed_disks: self.failed_disks + other.failed_disks,
            changed: self.changed + other.changed,
            full_disks: self.full_disks + other.full_disks,
            partly_sent: self.partly_sent + other.partly_sent,
            lost_zeros: self.lost_zeros + other.lost_zeros,
            keys: self.keys + other.keys,
            crowded: self.crowded + other.crowded,
        }
    }
}
