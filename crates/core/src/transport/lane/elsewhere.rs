//! Long messages of staged packets that are not in the lane: the endpoint keeps such a message
//! until its call or request ends, so the transport can copy it from there.
//!
//! Invariants: a source names the message of one call or request, and no other, however often its
//! entry is used again. If a call or request ends before its packet has left, its message is copied
//! into the lane first ([`Lane::keep`]). If a message is gone all the same, because a peer has
//! answered what was not sent yet, the packet leaves without a header, and its peer drops it.
//!
//! Called by `lane`, `packet/outbox.rs`, the end of an iteration, and transports.

use dunlin_msgbuf::fresh_chunks;
use dunlin_wire::{HEADER_LEN, ReqNum};

use super::{HEADER_WORDS, IN_FEW, LANE_COPIED, Lane, LanePacket, LaneRoom, MASK, lines_of, write};
use crate::handle::{CallIdx, RequestIdx};
use crate::transport::PeerId;

/// The place of a staged packet's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source(u64);

/// The owner of a message that is not in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A call with this generation, which owns its request.
    Call(CallIdx, u32),
    /// A request with this number, which owns its response.
    Request(RequestIdx, ReqNum),
}

/// Finds the messages that are not in a lane.
pub trait Messages {
    /// The message; no bytes if it is gone.
    fn message(&self, source: Source) -> &[u8];
}

/// For a lane that holds all of its messages.
#[derive(Clone, Copy, Debug)]
pub struct InLane;

impl Messages for InLane {
    fn message(&self, _: Source) -> &[u8] {
        &[]
    }
}

/// The bit that distinguishes a request's index from a call's.
const REQUEST: u64 = 1 << 31;

impl Source {
    /// The lane. No entry has this index.
    pub(crate) const LANE: Self = Self(u64::MAX);

    /// The request of a call.
    #[inline(always)]
    pub(crate) fn of_call(index: CallIdx, generation: u32) -> Self {
        debug_assert!(u64::from(index.0) < REQUEST);
        Self(u64::from(generation) << 32 | u64::from(index.0))
    }

    /// The response to a request.
    #[inline(always)]
    pub(crate) fn of_request(index: RequestIdx, req: ReqNum) -> Self {
        debug_assert!(u64::from(index.0) < REQUEST - 1);
        Self(u64::from(req.0) << 32 | REQUEST | u64::from(index.0))
    }

    /// The owner of the message, which is not in the lane.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    pub(crate) const fn owner(self) -> Owner {
        let (index, other) = ((self.0 & (REQUEST - 1)) as u32, (self.0 >> 32) as u32);
        match self.0 & REQUEST {
            0 => Owner::Call(CallIdx(index), other),
            _ => Owner::Request(RequestIdx(index), ReqNum(other)),
        }
    }
}

impl Lane {
    /// Whether a message of this length is too long to be copied without need.
    #[inline(always)]
    pub(crate) const fn is_long(len: usize) -> bool {
        len > IN_FEW
    }

    /// Like [`Lane::write`], for a long message of `len` bytes that stays in its source.
    #[inline(always)]
    pub(crate) fn write_header<const REQUEST: bool>(
        &mut self,
        LaneRoom(staged): LaneRoom,
        peer: PeerId,
        header: [u64; HEADER_WORDS],
        (len, source): (usize, Source),
    ) {
        debug_assert_eq!(staged, self.staged, "nothing else was written meanwhile");
        let (head, _) = self.memory.split(staged.lines() as usize);
        write(head, header);
        self.memory.sources[staged.packets() & MASK] = source;
        self.add::<REQUEST>(staged, peer, len, lines_of(len) as usize);
    }

    /// The message of a packet that is longer than [`LANE_COPIED`], by the packet's place; no bytes
    /// if the message is gone. All packets must be alike.
    #[inline(always)]
    pub fn message<'a>(&'a self, place: usize, messages: &'a impl Messages) -> &'a [u8] {
        match self.memory.sources[place & MASK] {
            Source::LANE => self.own_message(place),
            source => messages.message(source),
        }
    }

    #[inline(never)]
    fn own_message(&self, place: usize) -> &[u8] {
        &self.bytes(self.packet(place))[HEADER_LEN..]
    }

    /// Copies all messages into the lane, for a transport that needs its lines.
    #[inline]
    pub(crate) fn complete(&mut self, messages: &impl Messages) {
        let is_short = |packet: LanePacket| packet.size() <= LANE_COPIED;
        if self.alike().is_some_and(|(_, first)| is_short(first)) {
            return;
        }
        for place in 0..self.len() {
            if let Some(source) = self.elsewhere(place) {
                self.copy(place, messages.message(source));
            }
        }
    }

    /// Copies a message into the lane if a packet there needs it, because its owner ends.
    #[cold]
    pub(crate) fn keep(&mut self, source: Source, message: &[u8]) {
        for place in 0..self.len() {
            if self.elsewhere(place) == Some(source) {
                self.copy(place, message);
            }
        }
    }

    /// The source of a packet whose message is not in the lane.
    fn elsewhere(&self, place: usize) -> Option<Source> {
        let source = self.memory.sources[place & MASK];
        let is_long = self.packet(place).size() > LANE_COPIED;
        (is_long && source != Source::LANE).then_some(source)
    }

    /// Copies the message of a packet into its lines; if the message is gone, clears its header.
    fn copy(&mut self, place: usize, message: &[u8]) {
        let packet = self.packet(place);
        debug_assert!(message.is_empty() || message.len() > IN_FEW);
        self.memory.sources[place & MASK] = Source::LANE;
        let is_there = HEADER_LEN + message.len() == packet.size();
        let copied = is_there && fresh_chunks(self.memory.chunks_from(packet.line()), message);
        if !copied {
            self.memory.range_mut(packet.line(), HEADER_LEN).fill(0);
        }
    }
}

#[cfg(test)]
mod tests;
