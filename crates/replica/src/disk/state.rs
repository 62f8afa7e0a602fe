//! The record that says which of the engine's entries count. Each write of entries also writes the
//! record, so both reach the disk together or not at all.
//!
//! The engine cannot drop the last entries of a log, so it may hold entries after `last`, left from
//! a log that a leader's snapshot has replaced. All fields are u64, little endian, after the
//! version and seven zeros.

use raft::eraftpb::HardState;

use super::newer::NewerPart;
use crate::wire::Malformed;
use crate::wire::cursor::{Cursor, put_words};
use crate::work::LogWrite;

/// The version of the format. Earlier versions had entries with requests of version 1.
const VERSION: u8 = 3;

/// Items in the engine: parts, as entries of a group of their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Parts {
    /// The last entry that the items contain; 0: there are no items.
    pub(super) applied: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// The state of a log.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct State {
    term: u64,
    vote: u64,
    commit: u64,
    base: (u64, u64),
    last: u64,
    items: Parts,
    /// The number of the write that stored this state.
    number: u64,
}

impl State {
    /// Sets the place at which the log begins, if it has not dropped any entry. The disk does not
    /// have this place.
    pub(super) fn begin_at(&mut self, base: (u64, u64)) {
        if self.base == (0, 0) {
            self.base = base;
            self.last = self.last.max(base.0);
        }
    }

    /// Notes the promises and entries of a write.
    pub(super) fn on_write(&mut self, write: &LogWrite) {
        let promises = &write.promises;
        (self.term, self.vote, self.commit) = (promises.term, promises.vote, promises.commit);
        if let Some(entry) = write.entries.last() {
            self.last = entry.index;
        }
    }

    /// Notes the items of a checkpoint of this replica.
    pub(super) fn on_checkpoint(&mut self, base: (u64, u64), items: Parts) {
        self.base = base;
        self.items = items;
    }

    /// Notes the items of a leader's snapshot, with which the log starts over.
    pub(super) fn on_restore(&mut self, base: (u64, u64), items: Parts) {
        self.on_checkpoint(base, items);
        self.last = base.0;
    }

    /// Counts the write that stores this state.
    pub(super) fn count(&mut self) {
        self.number += 1;
    }

    /// The number of the write that stored this state.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn base(&self) -> (u64, u64) {
        self.base
    }

    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    pub(super) const fn items(&self) -> Parts {
        self.items
    }

    /// Term, vote and committed index. The items contain only committed entries.
    pub(super) fn promises(&self) -> HardState {
        HardState {
            term: self.term,
            vote: self.vote,
            commit: self.commit.min(self.last).max(self.items.applied),
            ..HardState::default()
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (index, term) = self.base;
        let mut bytes = vec![VERSION, 0, 0, 0, 0, 0, 0, 0];
        put_words(&mut bytes, &[self.term, self.vote, self.commit]);
        put_words(&mut bytes, &[index, term, self.last]);
        let items = self.items;
        put_words(&mut bytes, &[items.applied, items.first, items.last]);
        put_words(&mut bytes, &[self.number]);
        bytes
    }

    /// The version of a record, if a newer library wrote it.
    pub(super) fn newer(bytes: &[u8]) -> Option<NewerPart> {
        let version = bytes.first().copied();
        NewerPart::find("the record of the log's state", version, VERSION)
    }

    /// The version of a record, if an older library wrote it, and the version that this one reads.
    pub(super) fn older(bytes: &[u8]) -> Option<(u8, u8)> {
        let version = bytes.first().copied();
        let older = version.filter(|version| (1..VERSION).contains(version))?;
        Some((older, VERSION))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        if cursor.u8()? != VERSION {
            return Err(Malformed);
        }
        cursor.zeros::<7>()?;
        let state = Self {
            term: cursor.u64()?,
            vote: cursor.u64()?,
            commit: cursor.u64()?,
            base: (cursor.u64()?, cursor.u64()?),
            last: cursor.u64()?,
            items: Parts {
                applied: cursor.u64()?,
                first: cursor.u64()?,
                last: cursor.u64()?,
            },
            number: cursor.u64()?,
        };
        cursor.end()?;
        Ok(state)
    }
}
