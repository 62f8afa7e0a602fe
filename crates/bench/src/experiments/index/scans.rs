//! How many operations are scans, and where scans run.

use serde::{Deserialize, Serialize};

/// One operation in this many is a scan.
pub(super) const SCAN_EVERY: u32 = 100;

/// Where scans run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Scans {
    /// There are none.
    None,
    /// In worker threads.
    Workers,
    /// In the dispatch threads, where gets wait for them.
    Dispatch,
}

impl Scans {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Workers => "workers",
            Self::Dispatch => "dispatch",
        }
    }
}
