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
    /// Attempts that began. The machine takes a few of them back before the driver gets them.
    pub attempts: u64,
    /// Repeats of requests that had not left, or that a draining server had refused.
    pub free_repeats: u64,
    /// Repeats that the budget paid for.
    pub paid_repeats: u64,
    /// Requests that were sent while another attempt had no answer; the budget paid for each.
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
    /// The names of all fields, in the order of [`Self::values`]. Tools show them with the counters
    /// of an endpoint.
    pub const NAMES: [&'static str; 18] = [
        "channel_calls",
        "channel_full",
        "channel_answered",
        "channel_failed",
        "channel_expired",
        "channel_no_server",
        "channel_cancelled",
        "channel_attempts",
        "channel_free_repeats",
        "channel_paid_repeats",
        "channel_hedges",
        "channel_unpaid",
        "channel_stale",
        "channel_connects",
        "channel_connect_failures",
        "channel_losses",
        "channel_drains",
        "channel_lookups",
    ];

    /// All fields.
    #[must_use]
    pub const fn values(&self) -> [u64; Self::NAMES.len()] {
        let Self {
            calls,
            full,
            answered,
            failed,
            expired,
            no_server,
            cancelled,
            attempts,
            free_repeats,
            paid_repeats,
            hedges,
            unpaid,
            stale,
            connects,
            connect_failures,
            losses,
            drains,
            lookups,
        } = *self;
        [
            calls,
            full,
            answered,
            failed,
            expired,
            no_server,
            cancelled,
            attempts,
            free_repeats,
            paid_repeats,
            hedges,
            unpaid,
            stale,
            connects,
            connect_failures,
            losses,
            drains,
            lookups,
        ]
    }

    /// The sums of two channels.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    /// The counts since an earlier reading of the same channel.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, |now, before| now - before)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            calls: of(self.calls, other.calls),
            full: of(self.full, other.full),
            answered: of(self.answered, other.answered),
            failed: of(self.failed, other.failed),
            expired: of(self.expired, other.expired),
            no_server: of(self.no_server, other.no_server),
            cancelled: of(self.cancelled, other.cancelled),
            attempts: of(self.attempts, other.attempts),
            free_repeats: of(self.free_repeats, other.free_repeats),
            paid_repeats: of(self.paid_repeats, other.paid_repeats),
            hedges: of(self.hedges, other.hedges),
            unpaid: of(self.unpaid, other.unpaid),
            stale: of(self.stale, other.stale),
            connects: of(self.connects, other.connects),
            connect_failures: of(self.connect_failures, other.connect_failures),
            losses: of(self.losses, other.losses),
            drains: of(self.drains, other.drains),
            lookups: of(self.lookups, other.lookups),
        }
    }
}
