//! Copies of entries' bytes, one after the other in blocks of memory.
//!
//! The log keeps many entries, and drops them in order. Memory for each of them alone would be
//! allocated and freed one by one, with a reference count of its own, because Raft clones entries.
//! A block has one reference count, and is freed with the last of its entries. Called by `parcel`
//! and by the node.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use raft::eraftpb::Entry;

use super::change::{entry_of, is_change};

/// Bytes of a block. A longer copy has a block of its own.
const BLOCK: usize = 64 << 10;

/// A list of more entries gives its memory back.
const FEW: usize = 64;

/// Memory for entries.
#[derive(Debug)]
pub(crate) struct Copies {
    /// The block that is being filled.
    block: BytesMut,
    /// An empty list, whose memory the next entries use.
    list: Vec<Entry>,
}

impl Copies {
    pub(crate) fn new() -> Self {
        Self {
            block: BytesMut::with_capacity(BLOCK),
            list: Vec::new(),
        }
    }

    /// Takes an empty list of entries.
    pub(crate) fn list(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.list)
    }

    /// Takes a list of entries that are no longer needed, for the next ones.
    pub(crate) fn reuse(&mut self, mut list: Vec<Entry>) {
        list.clear();
        if list.capacity() <= FEW {
            self.list = list;
        }
    }

    /// Adds bytes to the next copy, and returns its length.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> usize {
        self.block.extend_from_slice(bytes);
        self.block.len()
    }

    /// Drops the bytes of the next copy.
    pub(crate) fn clear(&mut self) {
        self.block.clear();
    }

    /// Takes the next copy.
    pub(crate) fn take(&mut self) -> Shared {
        Shared(self.block.split().freeze())
    }

    /// Copies bytes.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Shared {
        self.add(bytes);
        self.take()
    }
}

/// A copy of bytes that several entries share.
#[derive(Debug)]
pub(crate) struct Shared(Bytes);

impl Shared {
    /// Makes the entry of a write from a part of the bytes. It has no index yet.
    pub(crate) fn write(&self, place: Range<usize>) -> Entry {
        Entry {
            data: self.0.slice(place),
            ..Entry::default()
        }
    }

    /// Makes the entry of a write from all bytes, without counting another reference.
    pub(crate) fn into_write(self) -> Entry {
        Entry {
            data: self.0,
            ..Entry::default()
        }
    }

    /// Makes an entry from all bytes, like [`entry_of`].
    pub(super) fn into_entry(self, term: u64, index: u64) -> Entry {
        match is_change(&self.0) {
            true => entry_of(term, index, &self.0),
            false => Entry {
                term,
                index,
                ..self.into_write()
            },
        }
    }

    /// Makes an entry from a part of the bytes, like [`entry_of`].
    pub(super) fn entry(&self, term: u64, index: u64, place: Range<usize>) -> Entry {
        let bytes = &self.0[place.clone()];
        if is_change(bytes) {
            return entry_of(term, index, bytes);
        }
        Entry {
            term,
            index,
            ..self.write(place)
        }
    }
}

#[cfg(test)]
mod tests;
