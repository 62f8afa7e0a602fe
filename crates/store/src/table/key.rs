//! A key with its hash, which is computed only once.

/// A key of one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    hash: u64,
}

impl<'a> Key<'a> {
    /// The key's bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) const fn new(bytes: &'a [u8], hash: u64) -> Self {
        Self { bytes, hash }
    }

    #[inline]
    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }
}
