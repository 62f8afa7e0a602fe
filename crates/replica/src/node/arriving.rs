//! A leader's snapshot that is arriving: the parts received, and the state read from them so far.
//! Called by `node` and `restoring`.

use super::items;
use crate::machine::{Arrival, Budget};
use crate::wire::cursor::Cursor;
use crate::wire::{Malformed, Piece, Roster};

/// A snapshot of which some parts have been read.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) from: u64,
    pub(super) term: u64,
    pub(super) place: (u64, u64),
    /// The size of the whole snapshot in bytes.
    pub(super) total: u64,
    pub(super) came: u64,
    /// Bytes that have arrived; the first `read` of them have been read.
    pub(super) bytes: Vec<u8>,
    pub(super) read: usize,
    /// Reading must wait for the next part.
    pub(super) waits: bool,
    pub(super) roster: Option<Roster>,
    pub(super) state: Arrival,
    /// All bytes, for the disk. Empty if the log is only in memory.
    pub(super) image: Vec<u8>,
}

impl Arriving {
    pub(super) fn new(piece: &Piece<'_>, state: Arrival) -> Self {
        Self {
            from: piece.from,
            term: piece.term,
            place: piece.place,
            total: piece.total,
            came: 0,
            bytes: Vec::new(),
            read: 0,
            waits: true,
            roster: None,
            state,
            image: Vec::new(),
        }
    }

    pub(super) fn is_next(&self, piece: &Piece<'_>) -> bool {
        (self.from, self.term, self.place) == (piece.from, piece.term, piece.place)
            && (self.total, self.came) == (piece.total, piece.offset)
    }

    pub(super) fn add(&mut self, bytes: &[u8], is_for_disk: bool) {
        self.bytes.drain(..std::mem::take(&mut self.read));
        self.bytes.extend_from_slice(bytes);
        self.came += bytes.len() as u64;
        self.waits = false;
        if is_for_disk {
            self.image.extend_from_slice(bytes);
        }
    }

    /// Reads on, until the budget is spent. True: the snapshot was read completely, and its state
    /// belongs to its place.
    pub(super) fn read(&mut self, mut budget: Budget) -> Result<bool, Malformed> {
        let is_last = self.came == self.total;
        if self.roster.is_none() {
            self.read_roster(is_last)?;
        }
        if self.roster.is_some() {
            let rest = &self.bytes[self.read..];
            self.read += self.state.take(rest, is_last, &mut budget)?;
        }
        if !self.state.is_whole() {
            self.waits = !budget.is_spent();
            return Ok(false);
        }
        let is_end = is_last && self.read == self.bytes.len();
        match is_end && self.state.applied() == self.place.0 {
            true => Ok(true),
            false => Err(Malformed),
        }
    }

    fn read_roster(&mut self, is_last: bool) -> Result<(), Malformed> {
        let mut cursor = Cursor(&self.bytes);
        match items::take_head(&mut cursor) {
            Ok(roster) if roster.is_possible() => {
                self.read = self.bytes.len() - cursor.0.len();
                self.roster = Some(roster);
                Ok(())
            }
            Err(Malformed) if !is_last && self.bytes.len() < items::MOST_HEAD => Ok(()),
            _ => Err(Malformed),
        }
    }
}
