//! The memory of a lane: its lines, and lists of the packets in them. Called by `lane`.

use dunlin_wire::HEADER_LEN;

use super::source::Source;

/// Bytes of a line: a cache line.
pub const LANE_LINE: usize = 64;

/// Lines of a lane: enough for the answers to a burst of the longest packets, and for as many
/// requests. Also the most packets of a lane.
pub const LANE_LINES: usize = 1024;

/// Bytes at the start of a packet's first line that belong to the transport.
pub const LANE_WORD: usize = size_of::<u64>();

/// Longest packet in a lane: a message of 1 KiB, with its header. Longer messages are lent.
pub const LANE_PACKET: usize = PACKET_LINES * LANE_LINE - LANE_WORD;

/// Lines of the longest packet.
pub(super) const PACKET_LINES: usize = 17;

/// Words of a header.
pub(super) const HEADER_WORDS: usize = HEADER_LEN / size_of::<u64>();

/// Longest message of a packet in one line.
pub(super) const IN_LINE: usize = LANE_LINE - LANE_WORD - HEADER_LEN;
const _: () = assert!(LANE_LINE == 2 * IN_LINE);

/// Longest message that fills half of a packet's first line, and up to half of the second.
pub(super) const IN_HALVES: usize = 2 * IN_LINE;

/// Indices are masked instead of compared.
pub(super) const MASK: usize = LANE_LINES - 1;
const _: () = assert!(LANE_LINES.is_power_of_two());

/// The lines, and the packets in them, each as a `P`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Memory<P> {
    /// The lines, and some more, so that the longest packet could begin in each.
    pub(super) bytes: [u8; (LANE_LINES + PACKET_LINES - 1) * LANE_LINE],
    pub(super) packets: [P; LANE_LINES],
    /// At the place of a packet that is longer than [`LANE_COPIED`](super::LANE_COPIED): where its
    /// message lies.
    pub(super) sources: [Source; LANE_LINES],
}

impl<P: Copy + Default> Memory<P> {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            bytes: [0; (LANE_LINES + PACKET_LINES - 1) * LANE_LINE],
            packets: [P::default(); LANE_LINES],
            sources: [Source::LANE; LANE_LINES],
        })
    }

    /// The places for the header and for the message of a packet of up to two lines that begins in
    /// this line.
    #[inline(always)]
    pub(super) fn split(&mut self, line: usize) -> (&mut [u8], &mut [u8; IN_HALVES]) {
        let (lines, _) = self.bytes.as_chunks_mut::<LANE_LINE>();
        let both = lines[line & MASK..][..2].as_flattened_mut();
        let (head, body) = both[LANE_WORD..].split_at_mut(HEADER_LEN);
        (
            head,
            body.first_chunk_mut().expect("two lines have this room"),
        )
    }

    /// The room for the message of the packet that begins in this line, in pieces of half a line.
    /// It is enough for the longest message that a lane takes.
    #[inline(always)]
    pub(super) fn chunks_from(
        &mut self,
        line: usize,
    ) -> &mut [[u8; IN_LINE]; 2 * PACKET_LINES - 1] {
        let (lines, _) = self.bytes.as_chunks_mut::<LANE_LINE>();
        let all = lines[line & MASK..][..PACKET_LINES].as_flattened_mut();
        let (_, message) = all.split_at_mut(LANE_WORD + HEADER_LEN);
        let (chunks, _) = message.as_chunks_mut();
        chunks.first_chunk_mut().expect("a packet has this room")
    }

    /// The first `len` bytes of the packet that begins in this line.
    pub(super) fn range_mut(&mut self, line: usize, len: usize) -> &mut [u8] {
        let at = start(line);
        &mut self.bytes[at..at + len]
    }
}

/// Lines of a packet with a message of `len` bytes, which must not be too long for a lane.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "its length was looked at")]
pub(super) const fn lines_of(len: usize) -> u32 {
    (LANE_WORD + HEADER_LEN + len).div_ceil(LANE_LINE) as u32
}

/// The place of the packet that begins in this line.
#[inline(always)]
pub(super) const fn start(line: usize) -> usize {
    line * LANE_LINE + LANE_WORD
}

#[inline(always)]
pub(super) fn write(head: &mut [u8], header: [u64; HEADER_WORDS]) {
    let (places, _) = head.as_chunks_mut();
    for (place, word) in places.iter_mut().zip(header) {
        *place = word.to_le_bytes();
    }
}
