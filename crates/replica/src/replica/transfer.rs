//! Snapshots in transfer: one part at a time, each in a call of its own.
//!
//! The next part leaves when the previous one has arrived, so a slow receiver slows the sender
//! down, and other messages can pass between two parts. If a part is lost, the transfer ends, and
//! Raft asks for another. Called by `pieces`.

use raft::eraftpb::{Message, Snapshot};

use crate::wire::Piece;

/// A snapshot that a leader sends.
#[derive(Debug)]
pub(super) struct Sending {
    term: u64,
    snapshot: Snapshot,
    /// Bytes that have arrived.
    offset: usize,
    /// Bytes of the part in flight.
    under_way: usize,
    /// A part of an earlier snapshot is still in flight to the same receiver.
    waits: bool,
}

/// Progress of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    Goes,
    /// All of the snapshot has arrived.
    Whole,
}

impl Sending {
    /// Begins to send the snapshot of a message, in place of an earlier one to the same receiver.
    /// The end of a part of the earlier one does not count for this one.
    pub(super) fn new(mut message: Message, earlier: Option<&Self>) -> Self {
        Self {
            term: message.term,
            snapshot: message.take_snapshot(),
            offset: 0,
            under_way: 0,
            waits: earlier.is_some_and(|it| it.waits || it.under_way > 0),
        }
    }

    /// Ends the transfer, and returns the snapshot.
    pub(super) fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The next part, with at most this number of bytes; `None` while a part is in flight.
    pub(super) fn next(&self, most: usize) -> Option<Piece<'_>> {
        let rest = &self.snapshot.data[self.offset..];
        let metadata = self.snapshot.get_metadata();
        (self.under_way == 0 && !self.waits).then(|| Piece {
            cluster: 0,
            from: 0,
            to: 0,
            term: self.term,
            place: (metadata.index, metadata.term),
            total: self.snapshot.data.len() as u64,
            offset: self.offset as u64,
            bytes: &rest[..rest.len().min(most)],
        })
    }

    /// Bytes that have arrived, and the total.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.offset as u64, self.snapshot.data.len() as u64)
    }

    /// Notes that a part of this length was sent.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.under_way = bytes;
    }

    /// Takes the end of a part of an earlier snapshot. False: the part belongs to this snapshot.
    pub(super) fn ends_earlier(&mut self) -> bool {
        std::mem::take(&mut self.waits)
    }

    /// Notes that the part in flight has arrived.
    pub(super) fn on_arrived(&mut self) -> Progress {
        self.offset += std::mem::take(&mut self.under_way);
        match self.offset == self.snapshot.data.len() {
            true => Progress::Whole,
            false => Progress::Goes,
        }
    }
}

#[cfg(test)]
mod tests;
