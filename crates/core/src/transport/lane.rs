//! A lane: the short packets of an iteration, staged in lines. Lines have the format of a ring's
//! cells, so a transport can write them in one run, with few stores to memory that another
//! processor reads.
//!
//! The lines belong to the endpoint, and no packet in them has left before the transport gets the
//! lane ([`Tx::send`](super::Tx::send)). Therefore, no line has to be given back if a peer is lost,
//! a burst panics or an endpoint is dropped, and a ring never has two writers.
//!
//! Invariants: packets of all peers lie in the order in which they were made; a packet counts once
//! all of its bytes are written; packets that are queued elsewhere in the same iteration come after
//! those in the lane, because the lane is closed first.
//!
//! Filled by `packet/outbox.rs`, read by transports.

use dunlin_msgbuf::{BufRef, MsgBuf, fresh_chunks};
use dunlin_wire::HEADER_LEN;

use super::{MAX_INLINE, PeerId, TxItem};

/// Bytes of a line: a cache line.
pub const LANE_LINE: usize = 64;

/// Lines of a lane: enough for the answers to a burst of the longest packets, and for as many
/// requests. Also the most packets of a lane.
pub const LANE_LINES: usize = 1024;

/// There is room for the longest packet while fewer lines than this are used.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const ROOMY_LINES: u32 = (LANE_LINES - (LANE_WORD + LANE_PACKET) / LANE_LINE + 1) as u32;

/// Indices are masked instead of compared.
const MASK: usize = LANE_LINES - 1;
const _: () = assert!(LANE_LINES.is_power_of_two());

/// Bytes at the start of a packet's first line that belong to the transport.
pub const LANE_WORD: usize = size_of::<u64>();

/// Longest packet in a lane: a message of 1 KiB, with its header. Longer messages are lent, because
/// copying them twice would cost more.
pub const LANE_PACKET: usize = 17 * LANE_LINE - LANE_WORD;

/// Words of a header.
const HEADER_WORDS: usize = HEADER_LEN / size_of::<u64>();

/// Longest message of a packet in one line.
const IN_LINE: usize = LANE_LINE - LANE_WORD - HEADER_LEN;
const _: () = assert!(HEADER_LEN + IN_LINE == MAX_INLINE && LANE_LINE == 2 * IN_LINE);

/// Shortest message that needs several lines.
const MORE: usize = IN_LINE + 1;

/// Longest message that fills half of a packet's first line, and up to half of the second.
const IN_HALVES: usize = 2 * IN_LINE;

const _: () = assert!(HEADER_LEN.is_multiple_of(size_of::<u64>()));
const _: () = assert!(LANE_LINES * LANE_LINE <= 1 << 16 && LANE_PACKET < 1 << 16);
const _: () = assert!(LANE_WORD + LANE_PACKET <= LANE_LINES * LANE_LINE);

/// Staged packets.
#[derive(Debug)]
pub struct Lane {
    memory: Box<Memory>,
    staged: Staged,
    /// A packet fits while the number of used lines is below this; 0 while the lane is closed.
    limit: u32,
    /// Longest message that the lane takes.
    longest: u32,
}

/// The lines, and the packets in them.
#[derive(Debug)]
#[repr(C, align(64))]
struct Memory {
    bytes: [u8; LANE_LINES * LANE_LINE],
    packets: [LanePacket; LANE_LINES],
}

/// The number of staged packets (upper half), and of the lines that hold them (lower half): one
/// word, because both change with every packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Staged(u64);

/// Room for a packet after the staged ones.
#[derive(Debug)]
pub(crate) struct LaneRoom(Staged);

/// A staged packet in one word: its peer in the lower half, its length and its first line in the
/// upper.
#[derive(Clone, Copy, Debug, Default)]
pub struct LanePacket(u64);

impl Lane {
    /// An empty lane for packets of up to `longest` bytes, or for none.
    pub fn new(longest: usize) -> Self {
        let mut lane = Self {
            memory: Box::new(Memory {
                bytes: [0; LANE_LINES * LANE_LINE],
                packets: [LanePacket::default(); LANE_LINES],
            }),
            staged: Staged(0),
            limit: 0,
            longest: 0,
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
        if self.longest == 0 {
            self.close();
        }
    }

    /// Writes one more packet: a header, as the words that are sent, and a message. If the lane is
    /// closed or full, or the message is too long for it, returns false and changes nothing.
    #[inline]
    pub fn push(&mut self, peer: PeerId, header: [u64; HEADER_WORDS], message: &MsgBuf) -> bool {
        let room = self.room(message.len());
        room.is_some_and(|room| {
            self.write(room, peer, header, message);
            true
        })
    }

    /// Room for one more packet, if its message has this length.
    #[inline(always)]
    pub(crate) fn room(&self, len: usize) -> Option<LaneRoom> {
        if len > self.longest as usize {
            return None;
        }
        // Requires room for the longest packet, so that one comparison serves packets of all
        // lengths.
        (self.used() < self.limit).then_some(LaneRoom(self.staged))
    }

    /// Writes a packet into that room.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        room: LaneRoom,
        peer: PeerId,
        header: [u64; HEADER_WORDS],
        message: &MsgBuf,
    ) {
        let LaneRoom(staged) = room;
        debug_assert_eq!(staged, self.staged, "nothing else was written meanwhile");
        let (lines, _) = self.memory.bytes.as_chunks_mut::<LANE_LINE>();
        let (_, packet) = lines[staged.lines() as usize & MASK].split_at_mut(LANE_WORD);
        let (head, body) = packet.split_at_mut(HEADER_LEN);
        let body = body.first_chunk_mut().expect("a line has this room");
        let Some(len) = message.copy_usual(body) else {
            let [first, second, third] = header;
            return match message.len() {
                ..=IN_LINE => self.write_one(peer, first, second, third, message),
                MORE..=IN_HALVES => self.write_two(peer, first, second, third, message),
                _ => self.write_long(peer, first, second, third, message),
            };
        };
        write(head, header);
        self.add(staged, peer, HEADER_LEN + len as usize, 1);
    }

    /// Writes a packet of one line. Takes the words one by one, so that they come in registers: a
    /// compiler would store an array of words, and load it again in pieces of another size.
    #[inline(never)]
    fn write_one(&mut self, peer: PeerId, first: u64, second: u64, third: u64, message: &MsgBuf) {
        let staged = self.staged;
        let (head, body) = self.memory.split(staged.lines() as usize);
        write(head, [first, second, third]);
        if let Some(len) = message.copy_short(body) {
            self.add(staged, peer, HEADER_LEN + len as usize, 1);
        }
    }

    /// Writes a packet whose message fills half of a line, and up to half of the next one.
    #[inline(never)]
    fn write_two(&mut self, peer: PeerId, first: u64, second: u64, third: u64, message: &MsgBuf) {
        let staged = self.staged;
        let (head, body) = self.memory.split(staged.lines() as usize);
        write(head, [first, second, third]);
        if let Some(len) = message.copy_medium(body) {
            self.add(staged, peer, HEADER_LEN + len as usize, 2);
        }
    }

    /// Writes a packet with a longer message.
    #[inline(never)]
    fn write_long(&mut self, peer: PeerId, first: u64, second: u64, third: u64, message: &MsgBuf) {
        // The data is found before anything is written, because writing might change where it is.
        let (staged, data) = (self.staged, message.data());
        let (line, len) = (staged.lines() as usize, data.len());
        let filled = HEADER_LEN + len.next_multiple_of(IN_LINE);
        let (head, body) = self.memory.range_mut(line, filled).split_at_mut(HEADER_LEN);
        write(head, [first, second, third]);
        fresh_chunks(body, data);
        self.add(staged, peer, HEADER_LEN + len, lines_of(len) as usize);
    }

    /// Adds the packet that was just written to the staged ones.
    #[inline(always)]
    fn add(&mut self, staged: Staged, peer: PeerId, len: usize, lines: usize) {
        // At most one packet begins in each line, so there is a place for every packet.
        self.memory.packets[staged.packets() & MASK] = LanePacket::new(peer, len, staged.lines());
        self.staged = Staged(staged.0 + (1 << 32 | lines as u64));
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
            _ => ROOMY_LINES,
        };
    }

    /// Forgets the packets of a lane that is open; a closed one stays closed.
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

    /// The packet, if exactly one is staged.
    #[inline(always)]
    pub fn lone(&self) -> Option<LanePacket> {
        (self.len() == 1).then_some(self.memory.packets[0])
    }

    /// The first line of the first packet, as [`Self::line`] returns it.
    #[inline(always)]
    pub fn first_line(&self) -> &[u8; MAX_INLINE] {
        let (lines, _) = self.memory.bytes.as_chunks::<LANE_LINE>();
        lines[0].last_chunk().expect("a line is longer")
    }

    /// The packets, in order.
    #[inline]
    pub fn packets(&self) -> &[LanePacket] {
        &self.memory.packets[..self.len().min(LANE_LINES)]
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

    /// The lines of packets that follow each other, without gaps. A packet's first line begins with
    /// the transport's bytes. After a message of up to 128 bytes, its last line has zeros up to the
    /// middle or the end of the line, and bytes of earlier packets after them. After a longer
    /// message, bytes of earlier packets follow directly.
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
        let packet = self.memory.packets[index];
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

impl Staged {
    #[inline(always)]
    const fn packets(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    const fn lines(self) -> u32 {
        self.0 as u32
    }
}

impl Memory {
    /// The places for the header and for `N` bytes of the message of the packet that begins in this
    /// line.
    #[inline(always)]
    fn split<const N: usize>(&mut self, line: usize) -> (&mut [u8], &mut [u8; N]) {
        let (head, body) = self.bytes[start(line)..].split_at_mut(HEADER_LEN);
        (head, body.first_chunk_mut().expect("there is room"))
    }

    /// The first `len` bytes of the packet that begins in this line.
    fn range_mut(&mut self, line: usize, len: usize) -> &mut [u8] {
        let at = start(line);
        &mut self.bytes[at..at + len]
    }
}

impl LanePacket {
    #[inline(always)]
    fn new(peer: PeerId, len: usize, line: u32) -> Self {
        Self(u64::from(peer.0) | (len as u64) << 32 | u64::from(line) << 48)
    }

    /// The destination.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub const fn peer(self) -> PeerId {
        PeerId(self.0 as u32)
    }

    /// The number of the packet's bytes.
    #[inline]
    pub const fn size(self) -> usize {
        (self.0 >> 32 & 0xFFFF) as usize
    }

    /// Whether the other packet has the same destination and size.
    #[inline]
    pub const fn is_like(self, other: Self) -> bool {
        // The place of its first line is shifted out.
        (self.0 ^ other.0) << 16 == 0
    }

    #[inline]
    const fn line(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// The line after the packet's last one.
    #[inline]
    const fn end(self) -> usize {
        self.line() + (LANE_WORD + self.size()).div_ceil(LANE_LINE)
    }
}

/// Lines of a packet with a message of `len` bytes, which must not be too long for a lane.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "its length was looked at")]
const fn lines_of(len: usize) -> u32 {
    (LANE_WORD + HEADER_LEN + len).div_ceil(LANE_LINE) as u32
}

/// The place of the packet that begins in this line.
#[inline(always)]
const fn start(line: usize) -> usize {
    line * LANE_LINE + LANE_WORD
}

#[inline(always)]
fn write(head: &mut [u8], header: [u64; HEADER_WORDS]) {
    let (places, _) = head.as_chunks_mut();
    for (place, word) in places.iter_mut().zip(header) {
        *place = word.to_le_bytes();
    }
}

#[cfg(test)]
mod tests;
