//! Entries that leave the log, some in each run. Called by `tend`.

/// The bounds of entries that are being dropped, some in each run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropping {
    /// Entries and bytes that the log keeps.
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// No entry after this one is dropped.
    pub(super) most: u64,
    /// The index before the first entry at the beginning.
    pub(super) begun: u64,
}
