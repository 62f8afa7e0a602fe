//! The transports, under their names in commands and rows.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "full")]
use super::link::Mode;

/// Transports that packets travel over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Shared memory between processes of this host
    Shm,
    /// Both, chosen per peer; here it is shared memory
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
}

impl Transport {
    /// Those that need no interface.
    pub const ALL: [Self; 3] = [Self::Shm, Self::Auto, Self::Udp];

    /// Those that `latency`, `rate` and `bandwidth` can measure.
    #[cfg(feature = "full")]
    pub(crate) const WITH_XDP: [Self; 5] =
        [Self::Shm, Self::Auto, Self::Udp, Self::Xdp, Self::XdpNative];
    /// Those that `latency` and `rate` can measure.
    #[cfg(not(feature = "full"))]
    pub(crate) const WITH_XDP: [Self; 3] = Self::ALL;

    /// Its name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Auto => "auto",
            Self::Udp => "udp",
            #[cfg(feature = "full")]
            Self::Xdp => "xdp",
            #[cfg(feature = "full")]
            Self::XdpNative => "xdp:native",
        }
    }

    /// Where the kernel runs the program of `xdp`; `None` for the other transports.
    #[cfg(feature = "full")]
    pub(crate) const fn mode(self) -> Option<Mode> {
        match self {
            Self::Shm | Self::Auto | Self::Udp => None,
            Self::Xdp => Some(Mode::Generic),
            Self::XdpNative => Some(Mode::Native),
        }
    }

    /// The parameters of rows over `xdp`: where the program runs, and whether packets share
    /// datagrams. None for the other transports.
    pub(crate) fn params(self, packing: bool) -> Vec<(&'static str, Value)> {
        #[cfg(feature = "full")]
        if let Some(mode) = self.mode() {
            return vec![("mode", mode.name().into()), ("packing", packing.into())];
        }
        let _ = packing;
        Vec::new()
    }

    /// Whether this is AF_XDP.
    pub(crate) const fn is_xdp(self) -> bool {
        #[cfg(feature = "full")]
        return self.mode().is_some();
        #[cfg(not(feature = "full"))]
        false
    }
}
