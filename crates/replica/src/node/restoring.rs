//! Takes a leader's snapshot, from its first part until it has replaced the state of this node.
//!
//! Parts arrive in order. Each run of the node reads only a slice of the bytes that have arrived,
//! so messages and writes never wait for longer than a slice takes. When a part is read to its end,
//! the leader gets an answer and sends the next one. After the last part, Raft gets the place and
//! the members of the snapshot, but not its bytes, which Raft does not need. If Raft takes the
//! snapshot, the state that was read replaces the node's state in the same run. Called by
//! `replica`.

use raft::eraftpb::{Message, MessageType, Snapshot};

use super::Node;
use super::arriving::Arriving;
use crate::log::Log;
use crate::machine::Budget;
use crate::wire::{Malformed, Piece};
use crate::work::Items;

impl<A> Node<A> {
    /// Takes a part of a snapshot. A first part drops any unfinished snapshot and begins a new one.
    /// Returns false, and changes nothing, if this is not the part that comes next.
    pub(crate) fn on_piece(&mut self, piece: &Piece<'_>) -> bool {
        if piece.offset == 0 {
            self.give_up_arriving();
            self.arriving = Some(Arriving::new(piece, self.machine.arrival()));
        }
        let is_for_disk = self.journal.is_some();
        match self.arriving.as_mut().filter(|it| it.is_next(piece)) {
            Some(arriving) => {
                arriving.add(piece.bytes, is_for_disk);
                true
            }
            None => false,
        }
    }

    /// Whether all parts that have arrived are read, as far as is possible without the next one.
    /// Also true if no snapshot is arriving.
    pub(crate) fn has_read(&self) -> bool {
        self.arriving.as_ref().is_none_or(|it| it.waits)
    }

    /// Reads the next slice. Drops a snapshot that is not an image of the items at its index, or
    /// whose members no cluster can have.
    pub(super) fn go_on_arriving(&mut self) {
        let Some(arriving) = self.arriving.as_mut().filter(|it| !it.waits) else {
            return;
        };
        match arriving.read(Budget::slice(self.options.slice_bytes)) {
            Ok(false) => {}
            Ok(true) => self.offer_arrived(),
            Err(Malformed) => self.give_up_arriving(),
        }
    }

    /// Offers the complete snapshot to Raft.
    fn offer_arrived(&mut self) {
        let Some(arrived) = self.arriving.take() else {
            return;
        };
        let (index, term) = arrived.place;
        let roster = arrived.roster.as_ref().expect("members are read first");
        let message = Message {
            msg_type: MessageType::MsgSnapshot,
            from: arrived.from,
            to: self.raft.raft.id,
            term: arrived.term,
            snapshot: Some(Log::snapshot_of(roster, index, term, Vec::new())).into(),
            ..Message::default()
        };
        self.arrived = Some(arrived);
        self.on_message(message);
    }

    /// Replaces the state of this node by the state of a snapshot that Raft has taken. Returns the
    /// snapshot's items for the disk.
    pub(super) fn restore(&mut self, snapshot: &Snapshot) -> Items {
        self.stop_drawing();
        let arrived = self.arrived.take();
        let arrived = arrived.expect("Raft takes a snapshot in the run in which it was read");
        let metadata = snapshot.get_metadata();
        let base = (metadata.index, metadata.term);
        assert_eq!(arrived.place, base, "Raft has one snapshot at a time");
        let ruin = self.machine.become_state(arrived.state);
        self.drawing.clear_away(ruin);
        let roster = arrived.roster.expect("members are read first");
        self.raft.mut_store().restore(snapshot, roster);
        self.restores += 1;
        Items {
            applied: metadata.index,
            base,
            image: arrived.image,
        }
    }

    /// Drops a snapshot that Raft did not take.
    pub(super) fn drop_arrived(&mut self) {
        if let Some(arrived) = self.arrived.take() {
            self.drawing.discard(arrived.image);
            self.drawing.clear_away(arrived.state.into());
        }
    }

    fn give_up_arriving(&mut self) {
        self.arrived = self.arriving.take();
        self.drop_arrived();
    }
}
