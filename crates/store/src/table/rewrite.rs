//! Sets of items whose value has the same length, which are the most frequent writes. The new value
//! overwrites the old one, and nothing moves. `write.rs` does all other writes.

use super::body::{Found, Table};
use super::key::Key;
use super::write::{Verb, Write, expiry_word};
use crate::classes::MAX_SLOT;
use crate::config::{MAX_KEY, Mode};
use crate::copy::copy_short;
use crate::item::{Header, NARROW, Seconds, Version};
use crate::mutant::Mutant;

/// The longest value that is written here. It is in one part, without a stamp.
const LONGEST: usize = 4096;

const _: () = assert!(NARROW + 8 + MAX_KEY + LONGEST <= MAX_SLOT && LONGEST <= crate::SLICE);

impl Table {
    /// Sets the value of an item whose slot [`Self::ahead`] has noted, if the item can stay where
    /// it is and its bucket has no work due. Returns the item's version.
    #[inline]
    pub(super) fn rewrite(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        now: Seconds,
    ) -> Option<Version> {
        let is_set = write.verb == Verb::Set && write.if_version.is_none();
        if !is_set || write.value.len() > LONGEST || self.has(Mutant::HalfWrite) {
            return None;
        }
        let found = self.find_noted(key, now)?;
        let old = &found.header;
        let expiry = expiry_word(write.expiry);
        let is_wide = expiry != 0 || write.flags != 0;
        if old.value_len as usize != write.value.len() || old.is_wide != is_wide {
            return None;
        }
        let version = write
            .version
            .unwrap_or_else(|| Version(self.take_version()));
        let header = Header {
            version: version.0,
            expiry,
            last_access: now.0,
            flags: write.flags,
            marks: 0,
            ..found.header
        };
        let place = found.entry.place();
        header.write(&mut self.memory, place);
        let value_at = place.byte() + header.value_at();
        copy_short(&mut self.memory[value_at..], write.value);
        self.enter_again(&found, expiry != 0);
        self.note_expiry(key, &header);
        self.stats.writes += 1;
        Some(version)
    }

    /// Changes the entry of an overwritten item, if anything in it changes: otherwise the bucket's
    /// line need not be written back to memory. In a cache, the write counts as a read.
    #[inline]
    pub(super) fn enter_again(&mut self, found: &Found, expires: bool) {
        let mut entry = found.entry.expiring(expires);
        if self.mode == Mode::Cache {
            entry = entry.warmer();
        }
        if entry != found.entry {
            self.index.set_entry(&mut self.memory, found.slot, entry);
        }
    }
}

#[cfg(test)]
mod tests;
