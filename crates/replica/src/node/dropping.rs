//! Entries that are being dropped from the log, some in each iteration. Called by `tend`.

/// The bounds of the entries that are being dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropping {
    /// Entries that the log keeps at least.
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// The last entry that may be dropped.
    pub(super) most: u64,
    /// The log's base when dropping began.
    pub(super) begun: u64,
}
