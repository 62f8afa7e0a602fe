//! Options of a replica.

use dunlin_core::Nanos;

/// Options of a replica.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The shortest time without a leader after which a replica asks for votes. Each replica draws
    /// its own time each time, between this value and twice this value.
    pub election: Nanos,
    /// Time between two heartbeats of a leader.
    pub heartbeat: Nanos,
    /// The most bytes of entries in one message to a follower.
    pub append_bytes: u64,
    /// The most messages with entries that one follower may leave unanswered.
    pub appends: usize,
    /// The most operations of clients that a leader has in progress; it refuses others as busy.
    pub operations: usize,
    /// Entries that the log keeps after they were applied, for followers that lag. A follower that
    /// lacks earlier entries gets a snapshot. The log keeps up to twice as many entries, or up to
    /// sixteen times as many while a follower catches up.
    pub kept_entries: u64,
    /// Bytes of entries that the log keeps, with the same factors. Whichever limit is reached first
    /// counts.
    pub kept_bytes: u64,
    /// Whether a leader answers gets without a majority as long as no other node can lead: for a
    /// little less than `election` after a question that a majority has answered. This assumes that
    /// no replica's clock runs more than an eighth faster than another's, and that no clock stands
    /// while others go on, as that of a suspended host may. All replicas of a cluster need the same
    /// `election`.
    pub lease_reads: bool,
    /// Bytes that one run adds to an image of the items, for a snapshot or for the disk. Other work
    /// of the replica waits meanwhile.
    pub slice_bytes: usize,
    /// Bytes of a part of a snapshot. At most one part is in flight to each follower.
    pub piece_bytes: usize,
    /// The pause after a session with another replica could not be made. It doubles with each
    /// further failure.
    pub least_pause: Nanos,
    /// The longest pause.
    pub most_pause: Nanos,
    /// The planted bug of this replica.
    #[cfg(feature = "mutants")]
    pub mutant: Option<Mutant>,
}

/// A planted bug of a replica.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A leader answers a write as soon as its own log has it.
    EarlyAnswer,
    /// A leader commits a write as soon as its own log has it.
    EarlyCommit,
    /// A leader answers a get without asking whether it still leads.
    StaleRead,
    /// A repeated write is applied again.
    Repeat,
    /// A replica votes for every candidate that asks.
    TwoVotes,
    /// A snapshot has no records of clients.
    ForgottenClients,
    /// During a change of members, a majority of the new voters decides alone.
    HalfOfJoint,
    /// A lease is measured in ticks, of which only one passes during a pause of the process.
    LeaseByTicks,
    /// The log's time is what the leader's clock shows, instead of the time that has passed on it.
    LeadersTime,
    /// A transaction writes although a key has another version.
    Careless,
    /// A watch shows only the last change of each key.
    LastChanges,
    /// The election clock of a node keeps running while its vote is being written to disk.
    Impatient,
    /// Answers to heartbeats wait for the disk.
    HeldHeartbeats,
}

impl Options {
    /// The default options.
    pub const DEFAULT: Self = Self {
        election: Nanos::from_millis(75),
        heartbeat: Nanos::from_millis(15),
        append_bytes: 256 << 10,
        appends: 8,
        operations: 4096,
        kept_entries: 100_000,
        kept_bytes: 64 << 20,
        lease_reads: false,
        slice_bytes: 256 << 10,
        piece_bytes: 256 << 10,
        least_pause: Nanos::from_millis(1),
        most_pause: Nanos::from_millis(200),
        #[cfg(feature = "mutants")]
        mutant: None,
    };

    /// The most bytes of writes that a leader has in progress; it refuses others as busy.
    pub(crate) const UNCOMMITTED: usize = 64 << 20;

    /// The reason, in words, why a replica cannot work with these options.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let faults = [
            (
                self.heartbeat >= self.election,
                "the heartbeat must be shorter than the election time",
            ),
            (
                self.append_bytes > Self::UNCOMMITTED as u64,
                "a message may have at most 64 MiB of entries",
            ),
            (self.appends == 0, "appends must be above 0"),
            (self.operations == 0, "operations must be above 0"),
            (self.slice_bytes == 0, "slice_bytes must be above 0"),
            (self.piece_bytes == 0, "piece_bytes must be above 0"),
            (
                self.least_pause > self.most_pause,
                "least_pause must not exceed most_pause",
            ),
        ];
        let fault = faults.into_iter().find(|(is_wrong, _)| *is_wrong);
        fault.map(|(_, reason)| reason)
    }

    /// The number of Raft's ticks in the shortest election timeout. Timeouts are drawn in ticks, so
    /// a replica draws among this number of timeouts.
    pub(crate) const ELECTION_TICKS: usize = 30;

    /// The time of a tick of Raft.
    pub(crate) fn tick(&self) -> Nanos {
        Nanos((self.election.0 / Self::ELECTION_TICKS as u64).max(1))
    }

    /// Ticks between two heartbeats.
    pub(crate) fn heartbeat_ticks(&self) -> usize {
        let ticks = usize::try_from(self.heartbeat.0 / self.tick().0);
        ticks
            .unwrap_or(usize::MAX)
            .clamp(1, Self::ELECTION_TICKS / 3)
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn shows(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}
