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
