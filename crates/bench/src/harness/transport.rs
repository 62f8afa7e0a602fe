//! The transports, under their names in commands and rows.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "full")]
use super::link::{Kind, Mode};

/// Transports that packets travel over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Shared memory between processes of this host
    Shm,
    /// Shared memory or UDP, chosen per peer; here always shared memory
    #[cfg(feature = "full")]
    Auto,
    /// Kernel UDP over loopback
    Udp,
    /// AF_XDP between two network namespaces, after the driver
    #[cfg(feature = "full")]
    Xdp,
    /// AF_XDP between two network namespaces, in the driver
    #[cfg(feature = "full")]
    #[value(name = "xdp:native")]
    XdpNative,
    /// DPDK between two processes with a device of memif each
    #[cfg(feature = "full")]
    Dpdk,
    /// The simulator
    #[cfg(feature = "full")]
    Sim,
}

impl Transport {
    /// Transports that need no interface.
    #[cfg(feature = "full")]
    pub const ALL: [Self; 3] = [Self::Shm, Self::Auto, Self::Udp];
    /// The transports of the summary. Each further one would compile every endpoint once more.
    #[cfg(not(feature = "full"))]
    pub const ALL: [Self; 2] = [Self::Shm, Self::Udp];

    /// Transports that `latency`, `rate` and `bandwidth` can measure.
    #[cfg(feature = "full")]
    pub(crate) const WITH_LINKS: [Self; 6] = [
        Self::Shm,
        Self::Auto,
        Self::Udp,
        Self::Xdp,
        Self::XdpNative,
        Self::Dpdk,
    ];
    /// Transports that `latency` and `rate` can measure.
    #[cfg(not(feature = "full"))]
    pub(crate) const WITH_LINKS: [Self; 2] = Self::ALL;

    /// Transports that `index`, `kv` and `replica` can measure.
    #[cfg(any(feature = "index", feature = "kv", feature = "replica"))]
    pub(crate) const WITH_SIM: [Self; 4] = [Self::Shm, Self::Auto, Self::Udp, Self::Sim];

    /// Transports over which `index` and `replica` are measured by default.
    #[cfg(any(feature = "index", feature = "replica"))]
    pub(crate) const SIMULATED_TOO: [Self; 3] = [Self::Shm, Self::Udp, Self::Sim];

    /// The transports without the simulator, and whether the simulator is one of them.
    #[cfg(any(feature = "index", feature = "replica"))]
    pub(crate) fn split(all: &[Self]) -> (Vec<Self>, bool) {
        let real = all.iter().copied().filter(|it| *it != Self::Sim);
        (real.collect(), all.contains(&Self::Sim))
    }

    /// Its name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            #[cfg(feature = "full")]
            Self::Auto => "auto",
            Self::Udp => "udp",
            #[cfg(feature = "full")]
            Self::Xdp => "xdp",
            #[cfg(feature = "full")]
            Self::XdpNative => "xdp:native",
            #[cfg(feature = "full")]
            Self::Dpdk => "dpdk",
            #[cfg(feature = "full")]
            Self::Sim => "sim",
        }
    }

    /// The link that it needs; `None` if it needs none.
    #[cfg(feature = "full")]
    pub(crate) const fn link(self) -> Option<Kind> {
        match self {
            Self::Shm | Self::Auto | Self::Udp => None,
            Self::Xdp => Some(Kind::Xdp(Mode::Generic)),
            Self::XdpNative => Some(Kind::Xdp(Mode::Native)),
            Self::Dpdk => Some(Kind::Dpdk),
            Self::Sim => None,
        }
    }

    /// The parameters of rows over a link: where the program of `xdp` runs, or the device of
    /// `dpdk`, and whether packets share datagrams. None for transports without a link.
    pub(crate) fn params(self, packing: bool) -> Vec<(&'static str, Value)> {
        #[cfg(feature = "full")]
        match self.link() {
            Some(Kind::Xdp(mode)) => {
                return vec![("mode", mode.name().into()), ("packing", packing.into())];
            }
            Some(Kind::Dpdk) => {
                return vec![("device", "memif".into()), ("packing", packing.into())];
            }
            Some(Kind::Kernel) | None => {}
        }
        let _ = packing;
        Vec::new()
    }

    /// Whether it needs a link.
    pub(crate) const fn has_link(self) -> bool {
        #[cfg(feature = "full")]
        return self.link().is_some();
        #[cfg(not(feature = "full"))]
        false
    }

    /// Whether opening it starts threads.
    pub(crate) const fn has_threads(self) -> bool {
        #[cfg(feature = "full")]
        return matches!(self, Self::Dpdk);
        #[cfg(not(feature = "full"))]
        false
    }

    /// How much longer two processes take to start over this transport than over others: each of
    /// them starts DPDK, one after the other.
    pub(crate) const fn start_takes(self) -> Duration {
        match self {
            #[cfg(feature = "full")]
            Self::Dpdk => Duration::from_millis(600),
            _ => Duration::ZERO,
        }
    }
}
