//! Planted bugs, and the options of a server that may have one.

use dunlin_core::Nanos;
use dunlin_sequencer::Options;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    None,
    /// Numbers of a block are given before the reservation is on the disk.
    #[cfg(feature = "mutants")]
    Unsynced,
    /// A deposed server continues to serve.
    #[cfg(feature = "mutants")]
    ServesOn,
}

impl Bug {
    /// The options of a server: small blocks and short leases, so that a run has many blocks and
    /// leases.
    #[allow(
        clippy::needless_update,
        reason = "a build with planted bugs has one more field"
    )]
    pub(crate) fn options(self) -> Options {
        let options = Options {
            block: 64,
            lease: Nanos::from_millis(100),
            ..Options::DEFAULT
        };
        #[cfg(feature = "mutants")]
        let options = Options {
            mutant: match self {
                Self::None => None,
                Self::Unsynced => Some(dunlin_sequencer::Mutant::Unsynced),
                Self::ServesOn => Some(dunlin_sequencer::Mutant::ServesOn),
            },
            ..options
        };
        let _ = self;
        options
    }

    /// Every bug.
    #[cfg(feature = "mutants")]
    pub(crate) const PLANTED: [Self; 2] = [Self::Unsynced, Self::ServesOn];
}
