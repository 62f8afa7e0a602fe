//! Appends and prepends: values that are joined from an old one and a new piece.
//!
//! If the result is longer than a [`SLICE`], `writing` copies it in slices, each of which this file
//! puts together from the item as it is then. An old value that is longer than a slice has a stamp:
//! if the stamp changes between two calls, the write begins again. A shorter one has none, so its
//! bytes are copied once more in the last call. `write` joins all other values in one piece.

use std::ops::Range;

use crate::config::{MAX_VALUE, SLICE};
use crate::item::{Header, Seconds, Version};
use crate::table::body::{Found, Storage, Table};
use crate::table::key::Key;
use crate::table::pending::Base;
use crate::table::write::{Verb, Write, WriteError, judge};

/// The value that a write produces.
pub(super) struct Source<'a> {
    pub(super) write: &'a Write<'a>,
    /// The item to whose value the bytes are added.
    old: Option<Found>,
    /// The length of the result.
    pub(super) len: usize,
}

impl Source<'_> {
    /// Whether the result is too short for slices.
    pub(super) fn is_short(&self) -> bool {
        self.len <= SLICE
    }

    /// The header with flags and expiry of the old item, if there is one.
    pub(super) fn inherit(&self, header: Header) -> Header {
        match &self.old {
            Some(old) => Header {
                expiry: old.header.expiry,
                flags: old.header.flags,
                ..header
            },
            None => header,
        }
    }

    /// The bytes of the result that must be copied in the last call, because a change of them would
    /// not be noticed.
    pub(super) fn unstamped(&self) -> Range<usize> {
        match &self.old {
            Some(old) if old.header.value_len as usize <= SLICE => self.old_range(old),
            _ => 0..0,
        }
    }

    fn old_range(&self, old: &Found) -> Range<usize> {
        let begin = match self.write.verb {
            Verb::Prepend => self.write.value.len(),
            _ => 0,
        };
        begin..begin + old.header.value_len as usize
    }
}

impl Table {
    /// The value that this write produces now.
    pub(super) fn source<'a>(
        &mut self,
        key: &Key<'_>,
        write: &'a Write<'a>,
        now: Seconds,
    ) -> Result<Source<'a>, WriteError> {
        let (mut old, mut len) = (None, write.value.len());
        if write.verb.joins() {
            let found = self.find(key, now);
            judge(found.as_ref(), write)?;
            len += found.map_or(0, |found| found.header.value_len as usize);
            old = found;
        }
        match len > MAX_VALUE {
            true => Err(WriteError::TooLong),
            false => Ok(Source { write, old, len }),
        }
    }

    /// The old value of a result.
    pub(super) fn base(&self, source: &Source<'_>) -> Option<Base> {
        source.old.as_ref().map(|old| Base {
            len: old.header.value_len,
            stamp: old.header.stamp(&self.memory, old.entry.place()),
        })
    }

    /// Whether the old item would leave a cache while `len` bytes of room are made.
    pub(super) fn leaves_for(&self, source: &Source<'_>, len: usize) -> bool {
        match (&source.old, &self.storage) {
            (Some(old), Storage::Log(log)) => log.leaves_for(old.entry.place().byte(), len),
            _ => false,
        }
    }

    /// Passes bytes of the result to `put`.
    pub(super) fn with_bytes<T>(
        &mut self,
        source: &Source<'_>,
        range: Range<usize>,
        put: impl FnOnce(&mut Self, &[u8]) -> T,
    ) -> T {
        let value = source.write.value;
        let Some(old) = &source.old else {
            return put(self, &value[range]);
        };
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        let middle = source.old_range(old);
        let part = |range: &Range<usize>, from: usize, to: usize| {
            let clamp = |at: usize| at.clamp(from, to) - from;
            clamp(range.start)..clamp(range.end)
        };
        joined.extend_from_slice(&value[part(&range, 0, middle.start)]);
        let of_old = part(&range, middle.start, middle.end);
        let old = self.item(old).value();
        old.append_part(of_old.start, of_old.len(), &mut joined);
        let after = part(&range, middle.end, source.len);
        joined.extend_from_slice(&value[middle.start..][after]);
        let result = put(self, &joined);
        self.joined = joined;
        result
    }

    /// Writes a result in one piece.
    pub(super) fn join(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        header: Header,
        now: Seconds,
    ) -> Result<Version, WriteError> {
        let source = self.source(key, write, now)?;
        let (header, version) = (source.inherit(header), write.version);
        self.with_bytes(&source, 0..source.len, |table, joined| {
            table.put(key, source.old, header, (joined, version), now)
        })
    }
}

#[cfg(test)]
mod tests;
