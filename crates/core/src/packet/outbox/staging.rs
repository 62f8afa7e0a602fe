//! The lane of an outbox: room for packets, and packets that are staged there. Called by the common
//! path, and by `outbox` for short messages.

use dunlin_msgbuf::MsgBuf;

use super::Outbox;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::packet::words::Words;
use crate::transport::{Lane, LaneRoom, Messages, PeerId, Source};

impl Outbox {
    /// Room in the lane for a message of this length. With `LONG`, the message stays in its source;
    /// otherwise it is copied.
    #[inline(always)]
    pub(crate) fn room_for<const LONG: bool>(&self, len: usize) -> Option<LaneRoom> {
        match LONG {
            true if !Lane::is_long(len) => None,
            true => self.lane.room(len),
            false => self.lane.room_for_copy(len),
        }
    }

    /// Room in the lane for a message of this length.
    #[inline(always)]
    pub(crate) fn room(&self, len: usize) -> Option<LaneRoom> {
        self.lane.room(len)
    }

    /// Appends a packet whose message is copied into the lane. `REQUEST`: it is the request of an
    /// ordinary call.
    #[inline(always)]
    pub(crate) fn stage<const REQUEST: bool>(
        &mut self,
        room: LaneRoom,
        peer: PeerId,
        words: Words,
        message: &[u8],
    ) {
        self.lane.write::<REQUEST>(room, peer, words, message);
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::LaneHalfFilled) {
            self.lane.spoil_last();
        }
    }

    /// Like [`Self::stage`], for a long message of `len` bytes that stays in its source.
    #[inline(always)]
    pub(crate) fn stage_header<const REQUEST: bool>(
        &mut self,
        room: LaneRoom,
        peer: PeerId,
        words: Words,
        message: (usize, Source),
    ) {
        self.lane
            .write_header::<REQUEST>(room, peer, words, message);
    }

    /// Copies all messages of the lane into it, and lists its packets, for a transport that needs
    /// that.
    pub(crate) fn complete_lane<'a>(&mut self, messages: impl Messages<'a>) {
        self.lane.complete(messages);
        self.lane.list();
    }

    /// Copies a message into the lane, because its owner ends before its packet has left.
    pub(crate) fn keep(&mut self, source: Source, message: &MsgBuf) {
        if !self.lane.is_empty() {
            self.lane.keep(source, message.data());
        }
    }
}
