//! A snapshot of a leader, from its first part until the node goes on from it.
//!
//! Parts come in order. Each run reads a slice of the bytes that have come, so no message and no
//! write waits for more; the sender gets its answer, and sends the next part, when all of one is
//! read. A state that was read as a whole is offered to Raft without its bytes, which Raft does not
//! need. If Raft takes it, it replaces the state of this node in the same run. Called by `replica`.

use raft::eraftpb::{Message, MessageType, Snapshot};

use super::Node;
use super::arriving::Arriving;
use crate::log::Log;
use crate::machine::Budget;
use crate::wire::{Malformed, Piece};
use crate::work::Items;

impl<A> Node<A> {
    /// Takes a part of a snapshot. The first one begins anew, whatever came before. False: it is
    /// not the part that comes next.
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

    /// Whether the parts of snapshots that have come are read, or were dropped.
    pub(crate) fn has_read(&self) -> bool {
        self.arriving.as_ref().is_none_or(|it| it.waits)
    }

    /// Reads the next slice. A snapshot is dropped if it is no image of the items at its index, or
    /// if no cluster can have its members.
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

    /// Offers Raft the snapshot that was read as a whole.
    fn offer_arrived(&mut self) {
        let Some(arrived) = self.arriving.take() else {
            return;
        };
        let (index, term) = arrived.place;
        let roster = arrived.roster.as_ref().expect("it was read first");
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

    /// Begins anew after a snapshot that Raft has taken, and returns its items for the disk.
    pub(super) fn restore(&mut self, snapshot: &Snapshot) -> Items {
        self.stop_drawing();
        let arrived = self.arrived.take();
        let arrived = arrived.expect("Raft takes a snapshot in the run in which it was read");
        let metadata = snapshot.get_metadata();
        let base = (metadata.index, metadata.term);
        assert_eq!(arrived.place, base, "Raft has one snapshot at a time");
        // The items have what these entries would bring.
        self.backlog.take();
        let ruin = self.machine.become_state(arrived.state);
        self.drawing.clear_away(ruin);
        let roster = arrived.roster.expect("it was read first");
        self.raft.mut_store().restore(snapshot, roster);
        self.restores += 1;
        Items {
            applied: metadata.index,
            base,
            image: arrived.image,
        }
    }

    /// Drops a snapshot that Raft has not taken.
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
