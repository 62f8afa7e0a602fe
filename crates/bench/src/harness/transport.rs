//! The transports, under their names in commands and rows.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

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
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shm, Self::Auto, Self::Udp];

    /// Its name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Auto => "auto",
            Self::Udp => "udp",
        }
    }
}
