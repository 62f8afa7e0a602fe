//! The limits and times of a channel, in one place.

use dunlin_core::Nanos;

use crate::backoff::Backoff;
use crate::pick::Pick;

/// The most attempts at a call. The configuration cannot exceed it.
pub const MAX_ATTEMPTS: usize = 3;

/// How failed attempts are repeated. Fixed rules decide which ones may be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// Attempts at one call, including the first one and hedges; at least 1, at most
    /// [`MAX_ATTEMPTS`], and at least 2 if idempotent calls are hedged. Attempts that were never
    /// transmitted or that a draining server refused do not count.
    pub attempts: u8,
    /// The pause before a repeat.
    pub pause: Backoff,
}

/// The configuration of a channel. Every field can be set; the defaults work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rule by which one of the ready servers gets a call.
    pub pick: Pick,
    /// Repeats.
    pub retry: Retry,
    /// After this time an idempotent call without an answer is sent to a second server as well.
    pub hedge: Option<Nanos>,
    /// Time for which a call waits for a ready server; zero: it fails immediately.
    pub patience: Nanos,
    /// The deadline of calls that have none of their own; `None`: no limit.
    pub deadline: Option<Nanos>,
    /// The pause before an address is tried again.
    pub reconnect: Backoff,
    /// A link that lasted this long proves that its address works.
    pub settled: Nanos,
    /// Time between two look-ups of names; `None`: the addresses never change.
    pub lookup: Option<Nanos>,
    /// The shortest time between a look-up and the next one that a lost link causes.
    pub lookup_pause: Nanos,
    /// The most links to one server.
    pub links_per_server: usize,
    /// The most links to one endpoint of a server; 1 if the driver's links have as much room as
    /// they need.
    pub links_per_endpoint: usize,
    /// Number of endpoints of one server, from the first, to which the channel connects for calls
    /// that name no endpoint.
    pub endpoints_per_server: u32,
    /// The most calls that have not ended.
    pub calls: usize,
    /// The most addresses; further ones are ignored.
    pub addresses: usize,
    /// The planted bug that the machine shows.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutant::Mutant>,
}

impl Default for Retry {
    fn default() -> Self {
        Config::DEFAULT.retry
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        pick: Pick::LeastOfTwo,
        retry: Retry {
            attempts: 3,
            pause: Backoff {
                least: Nanos::from_millis(1),
                first: Nanos::from_millis(10),
                factor: 10,
                most: Nanos::from_millis(100),
            },
        },
        hedge: None,
        patience: Nanos::from_secs(5),
        deadline: None,
        reconnect: Backoff {
            least: Nanos::from_millis(10),
            first: Nanos::from_millis(50),
            factor: 2,
            most: Nanos::from_secs(1),
        },
        settled: Nanos::from_secs(1),
        lookup: None,
        lookup_pause: Nanos::from_secs(1),
        links_per_server: 8,
        links_per_endpoint: 8,
        endpoints_per_server: 4,
        calls: 4096,
        addresses: 1024,
        #[cfg(feature = "mutants")]
        mutant: None,
    };

    /// Attempts at one call.
    pub(crate) fn attempts(&self) -> usize {
        usize::from(self.retry.attempts).clamp(1, MAX_ATTEMPTS)
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn shows(&self, mutant: crate::mutant::Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

const _: () = assert!(Config::DEFAULT.retry.attempts as usize <= MAX_ATTEMPTS);
const _: () = assert!(Config::DEFAULT.retry.pause.most.0 < Config::DEFAULT.patience.0);
const _: () = assert!(Config::DEFAULT.reconnect.most.0 < Config::DEFAULT.patience.0);
