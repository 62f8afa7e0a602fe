//! The experiments and the transports, as they are named in commands and rows, and how long an
//! experiment takes. Used by everything below `bench`.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Experiment {
    /// Latency, rate and idling, a few rows of each: what plain `dunlin bench` measures
    Summary,
    /// The machine itself: round trips, rates, copies, clocks
    Raw,
    /// Round trips of one RPC at a time, 8 to 1024 bytes
    Latency,
    /// RPCs per second, 60 in flight over 8 sessions, in batches
    Rate,
    /// Messages of 32 bytes to 1 GiB, one and four at a time, beside copies, datagrams and TCP
    Bandwidth,
    /// 8 MB requests over networks that lose packets: a simulated one, and udp on purpose
    Loss,
    /// The same over a simulated one that delivers some of them late
    Reorder,
    /// Small RPCs while 8 MB messages go over the same session
    Mixed,
    /// RPCs over shared memory with optimisations of eRPC, table 3, or congestion control off; not
    /// part of `all`
    Factors,
    /// 8 MB requests of 20 to 1000 simulated hosts to one, under each congestion control scheme;
    /// not part of `all`
    Incast,
    /// 64 KB RPCs among 100 simulated hosts that send to another one meanwhile; not part of `all`
    #[value(alias = "incast_background")]
    IncastBackground,
    /// Small RPCs among 100 simulated hosts with up to two million sides of sessions; not part of
    /// `all`
    Cluster,
    /// 1 to 20 000 sessions between two endpoints: rate, and memory per session
    Sessions,
    /// The first RPC after a silence, and processor time of a server without work
    Idle,
    /// Handlers that compute in the dispatch thread or sleep in worker threads, and fast RPCs
    /// beside them
    SlowHandler,
    /// The same RPCs by the poll API, futures, and a typed service; not part of `all`
    Faces,
    /// Everything above that takes a quarter of an hour together, without the summary
    All,
}

/// Transports that packets travel over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// Shared memory between processes of this host
    Shm,
    /// Both, chosen per peer; here it is shared memory
    Auto,
    /// Kernel UDP over loopback
    Udp,
}

impl Transport {
    /// Its name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Auto => "auto",
            Self::Udp => "udp",
        }
    }
}

impl Experiment {
    /// The names of those that have rows under their name.
    #[cfg(test)]
    pub(crate) fn names() -> Vec<String> {
        let own = Self::value_variants().iter();
        let own = own.filter(|it| !matches!(it, Self::Summary | Self::All));
        let names = own.filter_map(Self::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect()
    }

    /// Those that `all` runs, one after the other.
    pub(super) const EACH: [Self; 10] = [
        Self::Raw,
        Self::Latency,
        Self::Rate,
        Self::Bandwidth,
        Self::Loss,
        Self::Reorder,
        Self::Mixed,
        Self::Sessions,
        Self::Idle,
        Self::SlowHandler,
    ];

    pub(super) const fn usual_budget(self) -> Duration {
        Duration::from_secs(match self {
            Self::Summary => 45,
            Self::Raw => 20,
            Self::Latency => 30,
            Self::Rate | Self::SlowHandler => 60,
            Self::Bandwidth | Self::Factors => 60,
            Self::Mixed | Self::Faces => 30,
            Self::Loss => 60,
            Self::Reorder => 5,
            Self::Sessions => 150,
            Self::Idle => 200,
            // The time of all cases, once for each round.
            Self::Incast => 300 * 1000,
            Self::IncastBackground => 200 * 1000,
            Self::Cluster => 1200 * 1000,
            Self::All => 675,
        })
    }
}

/// A span of time.
///
/// # Errors
/// It is no number, or too small or too large.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(0.0..=86_400.0).contains(&number) || number == 0.0 {
        return Err("not between 0 and 86400".to_owned());
    }
    Ok(Duration::from_secs_f64(number))
}
