//! The counters of a channel.

/// Numbers since the channel was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Calls that were taken.
    pub calls: u64,
    /// Calls that were not taken, because too many had not ended.
    pub full: u64,
    /// Calls that ended with an answer.
    pub answered: u64,
    /// Calls that ended with a failure of any kind.
    pub failed: u64,
    /// Those of them whose deadline passed.
    pub expired: u64,
    /// Those of them for which no server was ready in time.
    pub no_server: u64,
    /// Calls that were cancelled.
    pub cancelled: u64,
    /// Requests that were handed out.
    pub attempts: u64,
    /// Repeats of what had not left, and of what a draining server had refused.
    pub free_repeats: u64,
    /// Repeats that the budget paid for.
    pub paid_repeats: u64,
    /// Second requests beside a first one; the budget paid for each.
    pub hedges: u64,
    /// Repeats and hedges for which the budget had nothing left.
    pub unpaid: u64,
    /// Ends of attempts that had ended before.
    pub stale: u64,
    /// Links that were asked for.
    pub connects: u64,
    /// Links that could not be opened.
    pub connect_failures: u64,
    /// Open links that were lost.
    pub losses: u64,
    /// Times that a server began to drain.
    pub drains: u64,
    /// Look-ups of names that were asked for.
    pub lookups: u64,
}

impl Counters {
    /// The sums of two channels.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            full: self.full + other.full,
            answered: self.answered + other.answered,
            failed: self.failed + other.failed,
            expired: self.expired + other.expired,
            no_server: self.no_server + other.no_server,
            cancelled: self.cancelled + other.cancelled,
            attempts: self.attempts + other.attempts,
            free_repeats: self.free_repeats + other.free_repeats,
            paid_repeats: self.paid_repeats + other.paid_repeats,
            hedges: self.hedges + other.hedges,
            unpaid: self.unpaid + other.unpaid,
            stale: self.stale + other.stale,
            connects: self.connects + other.connects,
            connect_failures: self.connect_failures + other.connect_failures,
            losses: self.losses + other.losses,
            drains: self.drains + other.drains,
            lookups: self.lookups + other.lookups,
        }
    }
}
