//! A key with its hash, which is computed only once.

use crate::index::Slot;

/// A key of one table. The default is an empty key, for arrays that are filled later.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    hash: u64,
    /// The slot whose entry had the key's tag when [`Table::ahead`](crate::Table::ahead) looked.
    likely: Option<Slot>,
}

// Each operation of a batch writes and reads a key.
const _: () = assert!(size_of::<Key<'_>>() <= 32);

impl<'a> Key<'a> {
    /// The key's bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) const fn new(bytes: &'a [u8], hash: u64) -> Self {
        Self {
            bytes,
            hash,
            likely: None,
        }
    }

    #[inline]
    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }

    #[inline]
    pub(super) const fn likely(&self) -> Option<Slot> {
        self.likely
    }

    /// Notes where the key's entry probably is.
    #[inline]
    pub(super) const fn on_likely(&mut self, slot: Slot) {
        self.likely = Some(slot);
    }
}
