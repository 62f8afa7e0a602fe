//! Options of a server.

use dunlin_core::Nanos;

use crate::disk::Terms;
use crate::wire::MAX_COUNT;

/// Options of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Numbers of a sequence that are reserved on the disk together. A crash leaves about this many
    /// unused.
    pub block: u64,
    /// The lease: a server gives numbers for this long after it last found that no other server has
    /// taken over. A server that takes over waits one eighth longer.
    pub lease: Nanos,
    /// The planted bug of this server.
    #[cfg(feature = "mutants")]
    pub mutant: Option<Mutant>,
}

/// A planted bug of the server.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Numbers of a block are given before the reservation is on the disk.
    Unsynced,
    /// The server gives numbers without a lease.
    ServesOn,
}

impl Options {
    /// The default options: blocks of a million, and a lease of a second.
    pub const DEFAULT: Self = Self {
        block: 1_000_000,
        lease: Nanos::from_secs(1),
        #[cfg(feature = "mutants")]
        mutant: None,
    };

    /// The values that go into the files of this process.
    pub(crate) fn terms(&self, process: u32) -> Terms {
        Terms {
            process,
            lease_ns: self.lease.0,
            // A reservation is a block plus the longest range for which a request may wait.
            raise: self.block.saturating_add(u64::from(MAX_COUNT)),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}
