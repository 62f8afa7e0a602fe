//! A lane: the short packets of an iteration, staged in lines. Lines have the format of a ring's
//! cells, so a transport can write them in one run, with few stores to memory that another
//! processor reads.
//!
//! The lines belong to the endpoint, and no packet in them has left before the transport gets the
//! lane ([`Tx::send`](super::Tx::send)). Therefore, no line must be given back if a peer is lost, a
//! burst panics or an endpoint is dropped, and a ring never has two writers.
//!
//! Invariants: packets of all peers lie in the order in which they were made; a packet counts once
//! all of its bytes are written; packets that are queued elsewhere in the same iteration come after
//! those in the lane, because the lane is closed first.
//!
//! The packets of a lane are often *alike*: they have one peer and one length. Then the lane stores
//! peer and length once, and a transport that sends the packets as one row needs no more
//! ([`Lane::alike`]). For other transports, and once a packet differs, the lane lists its packets.
//!
//! The endpoint keeps a long message of an ordinary packet until its call or request ends. So the
//! lane notes only where that message lies (`source`), and the transport copies it once, to its
//! destination.
//!
//! Filled by `packet/outbox.rs`, read by transports.

mod elsewhere;
mod memory;
mod packet;
mod source;

use std::hint::cold_path;

use dunlin_msgbuf::{BufRef, MsgBuf, fresh_chunks, fresh_two, fresh_usual};
use dunlin_wire::HEADER_LEN;

use super::{MAX_INLINE, PeerId, TxItem};
use memory::{HEADER_WORDS, IN_LINE, MASK, Memory, PACKET_LINES, lines_of, start, write};
pub use memory::{LANE_LINE, LANE_LINES, LANE_PACKET, LANE_WORD};
pub use packet::LanePacket;
use packet::{Kind, LINES_SHIFT, Staged};
pub(crate) use source::Owner;
pub use source::{InLane, Messages, Source};

/// While fewer lines than this are used, there is room for the longest packet.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const ROOMY_LINES: u32 = (LANE_LINES - (LANE_WORD + LANE_PACKET) / LANE_LINE + 1) as u32;

/// Longest message that is always copied into the lane.
const IN_FEW: usize = 8 * IN_LINE;
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const FEW: u32 = IN_FEW as u32;

/// Longest packet whose message is always in the lane.
pub const LANE_COPIED: usize = HEADER_LEN + IN_FEW;

const _: () = assert!(HEADER_LEN + IN_LINE == MAX_INLINE);
const _: () = assert!(HEADER_LEN.is_multiple_of(size_of::<u64>()));
const _: () = assert!(LANE_LINES * LANE_LINE <= 1 << 16 && LANE_PACKET < 1 << 16);
const _: () = assert!(LANE_WORD + LANE_PACKET <= LANE_LINES * LANE_LINE);

/// Staged packets.
#[derive(Debug)]
pub struct Lane {
    memory: Box<Memory<LanePacket>>,
    staged: Staged,
    /// The peer and the length of all packets; [`Kind::NONE`] if they differ: then all packets are
    /// listed.
    kind: Kind,
    /// Whether any of the packets is longer than [`LANE_COPIED`].
    has_long: bool,
    /// A packet fits while the lower half of `staged` is below this. 0: the lane is closed.
    limit: u32,
    /// Longest message that the lane accepts.
    longest: u32,
    /// Longest message that the lane always copies.
    copied: u32,
}

/// Room for a packet after the staged ones.
#[derive(Debug)]
pub(crate) struct LaneRoom(Staged);

impl Lane {
    /// An empty lane for packets of up to `longest` bytes, or for none.
    pub fn new(longest: usize) -> Self {
        let mut lane = Self {
            memory: Memory::new(),
            staged: Staged(0),
            kind: Kind::NONE,
            has_long: false,
            limit: 0,
            longest: 0,
            copied: 0,
        };
        lane.set_longest(longest);
        lane.clear();
        lane
    }

    /// Sets the length of the longest packet. If that is too short to fill one line, the lane
    /// closes now and takes no packets. Otherwise, a closed lane opens when it is next cleared.
    pub(crate) fn set_longest(&mut self, longest: usize) {
        let message = longest.min(LANE_PACKET).saturating_sub(HEADER_LEN);
        self.longest = match message {
            ..IN_LINE => 0,
            _ => u32::try_from(message).expect("a constant limits it"),
        };
        self.copied = self.longest.min(FEW);
        if self.longest == 0 {
            self.close();
        }
    }

    /// Writes one more packet: a header, as the words that are sent, and a message. If the lane is
    /// closed or full, or the message is too long for it, returns false and changes nothing.
    #[inline]
    pub fn push(&mut self, peer: PeerId, header: [u64; HEADER_WORDS], message: &MsgBuf) -> bool {
        let Some(room) = self.room(message.len()) else {
            return false;
        };
        self.write::<false>(room, peer, header, message.data());
        let last = self.len() - 1;
        self.memory.packets[last & MASK] = self.packet(last);
        true
    }

    /// Like [`Self::room`], for a message that is copied into the lane.
    #[inline(always)]
    pub(crate) fn room_for_copy(&self, len: usize) -> Option<LaneRoom> {
        if len > self.copied as usize {
            return None;
        }
        (self.staged.lower() < self.limit).then_some(LaneRoom(self.staged))
    }

    /// Room for one more packet, if its message has this length.
    #[inline(always)]
    pub(crate) fn room(&self, len: usize) -> Option<LaneRoom> {
        if len > self.longest as usize {
            return None;
        }
        // Requires room for the longest packet, so that one comparison serves packets of all
        // lengths.
        (self.staged.lower() < self.limit).then_some(LaneRoom(self.staged))
    }

    /// Writes a packet into that room, which [`Self::room`] has found for this length of message.
    /// `REQUEST`: it is the request of an ordinary call. A caller that knows the length at compile
    /// time gets code for only that length.
    #[inline(always)]
    pub(crate) fn write<const REQUEST: bool>(
        &mut self,
        room: LaneRoom,
        peer: PeerId,
        header: [u64; HEADER_WORDS],
        message: &[u8],
    ) {
        let LaneRoom(staged) = room;
        debug_assert_eq!(staged, self.staged, "nothing else was written meanwhile");
        let (head, body) = self.memory.split(staged.lines() as usize);
        if let Some(body) = body.first_chunk_mut()
            && fresh_usual(body, message)
        {
            write(head, header);
            return self.add::<REQUEST>(staged, peer, message.len(), 1);
        }
        cold_path();
        write(head, header);
        if fresh_two(body, message) {
            return self.add::<REQUEST>(staged, peer, message.len(), 2);
        }
        if message.len() <= IN_FEW {
            return self.add_message::<REQUEST>(staged, peer, message);
        }
        self.write_other::<REQUEST>(peer, message);
    }

    /// Writes a long message after its header, and adds the packet.
    #[inline(never)]
    fn write_other<const REQUEST: bool>(&mut self, peer: PeerId, message: &[u8]) {
        self.memory.sources[self.len() & MASK] = Source::LANE;
        self.add_message::<REQUEST>(self.staged, peer, message);
    }

    /// Writes a message of any length after its header, and adds the packet.
    #[inline(always)]
    fn add_message<const REQUEST: bool>(&mut self, staged: Staged, peer: PeerId, message: &[u8]) {
        let fits = fresh_chunks(self.memory.chunks_from(staged.lines() as usize), message);
        debug_assert!(fits, "the room was for a message of this length");
        if !fits {
            return;
        }
        let lines = lines_of(message.len()) as usize;
        self.add::<REQUEST>(staged, peer, message.len(), lines);
    }

    /// Adds the packet that was just written, with a message of `len` bytes, to the staged ones.
    #[inline(always)]
    fn add<const REQUEST: bool>(&mut self, staged: Staged, peer: PeerId, len: usize, lines: usize) {
        let (kind, after) = next::<REQUEST>(staged, peer, len, lines);
        if kind == self.kind {
            self.staged = after;
        } else {
            // This call comes last, so that functions that add a packet need not save registers.
            self.add_unlike(kind, staged, after);
        }
    }

    /// Adds a packet that differs from those before it, or is the first.
    #[inline(never)]
    fn add_unlike(&mut self, kind: Kind, staged: Staged, after: Staged) {
        self.staged = after;
        let packet = kind.packet_at(staged.lines());
        let is_long = packet.size() > LANE_COPIED;
        if staged.packets() == 0 {
            self.kind = kind;
            self.has_long = is_long;
            return;
        }
        if self.kind != Kind::NONE {
            self.list_first(staged.packets());
            self.kind = Kind::NONE;
        }
        self.has_long |= is_long;
        // At most one packet begins in each line, so there is a place for every packet.
        self.memory.packets[staged.packets() & MASK] = packet;
    }

    /// Lists the packets, for a transport that needs [`Self::packets`].
    #[inline(never)]
    pub(crate) fn list(&mut self) {
        if self.kind != Kind::NONE {
            self.list_first(self.len());
        }
    }

    /// Lists this number of packets, which are alike.
    fn list_first(&mut self, count: usize) {
        for index in 0..count.min(LANE_LINES) {
            self.memory.packets[index] = self.packet(index);
        }
    }

    /// The packet with this index.
    #[inline(always)]
    fn packet(&self, index: usize) -> LanePacket {
        if self.kind == Kind::NONE {
            return self.memory.packets[index & MASK];
        }
        #[expect(clippy::cast_possible_truncation, reason = "a lane has few lines")]
        let line = (index * self.kind.packet_at(0).end()) as u32;
        self.kind.packet_at(line)
    }

    /// The number of packets and the first of them, if all have one peer and one length.
    #[inline(always)]
    pub fn alike(&self) -> Option<(usize, LanePacket)> {
        (self.kind != Kind::NONE).then(|| (self.len(), self.kind.packet_at(0)))
    }

    /// The lines of all packets, as [`Self::lines`] returns them; those of a message that lies
    /// elsewhere are leftover bytes.
    #[inline(always)]
    pub fn all_lines(&self) -> &[[u8; LANE_LINE]] {
        let (lines, _) = self.memory.bytes.as_chunks();
        lines.get(..self.used() as usize).unwrap_or_default()
    }

    /// Closes the lane until it is cleared: later packets are queued elsewhere.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.limit = 0;
    }

    /// Forgets the packets, and opens the lane for new ones.
    #[inline]
    pub fn clear(&mut self) {
        self.staged = Staged(0);
        self.limit = match self.longest {
            0 => 0,
            _ => ROOMY_LINES << LINES_SHIFT,
        };
    }

    /// Forgets the packets of an open lane; a closed one stays closed.
    #[inline]
    pub(crate) fn rewind(&mut self) {
        self.staged = Staged(0);
    }

    /// Lines that hold packets.
    #[inline]
    fn used(&self) -> u32 {
        self.staged.lines()
    }

    /// Whether a message of `len` bytes is short enough for the lane.
    pub(crate) fn is_for(&self, len: usize) -> bool {
        self.longest != 0 && len <= self.longest as usize
    }

    /// Whether no packet is staged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.staged == Staged(0)
    }

    /// The number of staged packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.staged.packets()
    }

    /// The number of requests of ordinary calls among the packets.
    #[inline]
    pub(crate) fn requests(&self) -> usize {
        self.staged.requests()
    }

    /// The packet, if exactly one is staged.
    #[inline(always)]
    pub fn lone(&self) -> Option<LanePacket> {
        // A single packet cannot differ from others.
        (self.len() == 1).then(|| self.kind.packet_at(0))
    }

    /// The first line of the first packet, as [`Self::line`] returns it.
    #[inline(always)]
    pub fn first_line(&self) -> &[u8; MAX_INLINE] {
        let (lines, _) = self.memory.bytes.as_chunks::<LANE_LINE>();
        lines[0].last_chunk().expect("a line is longer")
    }

    /// The first lines of the lane, as many as the longest packet has.
    #[inline(always)]
    pub fn first_lines(&self) -> &[[u8; LANE_LINE]; PACKET_LINES] {
        let (lines, _) = self.memory.bytes.as_chunks();
        lines.first_chunk().expect("there are more")
    }

    /// The packets, in order. The endpoint lists them before [`Tx::send`](super::Tx::send), unless
    /// the transport does not need the list ([`Tx::takes_alike`](super::Tx::takes_alike)).
    #[inline]
    pub fn packets(&self) -> &[LanePacket] {
        let listed = &self.memory.packets[..self.len().min(LANE_LINES)];
        debug_assert!(
            (0..)
                .zip(listed)
                .all(|(at, packet)| *packet == self.packet(at))
        );
        listed
    }

    /// The first line of one of the packets, without the transport's bytes. If the packet is
    /// shorter than the line, zeros follow it.
    #[inline(always)]
    pub fn line(&self, packet: LanePacket) -> &[u8; MAX_INLINE] {
        let (lines, _) = self.memory.bytes.as_chunks::<LANE_LINE>();
        lines[packet.line() & MASK]
            .last_chunk()
            .expect("a line is longer")
    }

    /// The lines of consecutive packets, without gaps. A packet's first line begins with the
    /// transport's bytes. In its last line, zeros follow the message up to the middle or the end of
    /// the line; after the middle, bytes of earlier packets may follow.
    #[inline(always)]
    pub fn lines(&self, packets: &[LanePacket]) -> &[[u8; LANE_LINE]] {
        let Some((first, last)) = packets.first().zip(packets.last()) else {
            return &[];
        };
        let (lines, _) = self.memory.bytes.as_chunks();
        lines.get(first.line()..last.end()).unwrap_or_default()
    }

    /// The bytes of one of the packets. They lie at a multiple of [`LANE_LINE`] plus [`LANE_WORD`].
    #[inline]
    pub fn bytes(&self, packet: LanePacket) -> &[u8] {
        let at = start(packet.line());
        &self.memory.bytes[at..at + packet.size()]
    }

    /// The bytes of one of the packets, for the header fields that are known only when the packet
    /// leaves.
    pub(crate) fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
        let packet = self.packet(index);
        self.memory.range_mut(packet.line(), packet.size())
    }

    /// A planted bug: the last packet's message is missing.
    #[cfg(feature = "mutants")]
    pub(crate) fn spoil_last(&mut self) {
        self.bytes_mut(self.len() - 1)[HEADER_LEN..].fill(0);
    }

    /// A short packet as an item, for transports without lanes.
    pub fn to_item(&self, packet: LanePacket) -> Option<TxItem> {
        let len = u32::try_from(packet.size()).ok()?;
        (packet.size() <= MAX_INLINE).then(|| TxItem {
            peer: packet.peer(),
            inline_len: len,
            inline: *self.line(packet),
            data: BufRef::EMPTY,
        })
    }
}

/// Long messages that are not in the lane.
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
        let (kind, after) = next::<REQUEST>(staged, peer, len, lines_of(len) as usize);
        // This stands before the comparison. Otherwise, the compiler shares this store with the
        // code for shorter packets, which then has to jump here.
        self.staged = after;
        if kind != self.kind {
            self.add_unlike(kind, staged, after);
        }
    }

    /// The message of a packet that is longer than [`LANE_COPIED`], by the packet's place; no bytes
    /// if the message is gone. All packets must be alike.
    #[inline(always)]
    pub fn message<'a>(&'a self, place: usize, messages: impl Messages<'a>) -> &'a [u8] {
        match self.memory.sources[place & MASK] {
            Source::LANE => self.own_message(place),
            source => messages.message(source),
        }
    }

    #[inline(never)]
    fn own_message(&self, place: usize) -> &[u8] {
        &self.bytes(self.packet(place))[HEADER_LEN..]
    }
}

/// The kind of a further packet, and the staged packets after it is added.
#[inline(always)]
fn next<const REQUEST: bool>(
    staged: Staged,
    peer: PeerId,
    len: usize,
    lines: usize,
) -> (Kind, Staged) {
    #[expect(clippy::cast_possible_truncation, reason = "it fits into the lane")]
    let kind = Kind::new(peer, len as u32);
    let added =
        (1 << 32) | (Staged::LINE.0 * lines as u64) | (Staged::REQUEST.0 * u64::from(REQUEST));
    (kind, staged.plus(Staged(added)))
}

#[cfg(test)]
mod tests;
