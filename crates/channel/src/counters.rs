//! The counters of a channel.

/// Counts since the channel was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Calls that were taken.
    pub calls: u64,
    /// Calls that were refused, because too many had not ended.
    pub full: u64,
    /// Calls that ended with an answer.
    pub answered: u64,
    /// Calls that ended with a failure of any kind.
    pub failed: u64,
    /// Failed calls whose deadline passed.
    pub expired: u64,
    /// Failed calls for which no server was ready in time.
    pub no_server: u64,
    /// Calls that were cancelled.
    pub cancelled: u64,
    /// Requests that the driver got.
    pub attempts: u64,
    /// Repeats of requests that had not left, or that a draining server had refused.
    pub free_repeats: u64,
    /// Repeats that the budget paid for.
    pub paid_repeats: u64,
    /// Second requests at the same time as a first one; the budget paid for each.
    pub hedges: u64,
    /// Repeats and hedges that were not made because the budget was empty.
    pub unpaid: u64,
    /// Reports about attempts and links that had ended already.
    pub stale: u64,
    /// Links that the driver was asked to open.
    pub connects: u64,
    /// Links that could not be opened.
    pub connect_failures: u64,
    /// Open links that were lost.
    pub losses: u64,
    /// Times that a server began to drain.
    pub drains: u64,
    /// Look-ups of names that the driver was asked to make.
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
