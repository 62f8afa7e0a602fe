//! The packets of a lane as the lane stores them: their number, and the peer, length and place of
//! each, in a word. Called by `lane`.

use dunlin_wire::HEADER_LEN;

use super::memory::{LANE_LINE, LANE_LINES, LANE_WORD};
use crate::transport::PeerId;

/// Bits of the number of requests, which lies below the number of lines.
pub(super) const LINES_SHIFT: u32 = 16;
const _: () = assert!(LANE_LINES < 1 << LINES_SHIFT);

/// Three counts in one word, because each packet changes all of them. From the upper bits to the
/// lower: staged packets (32 bits), lines that hold them (16 bits), and packets that are requests
/// of ordinary calls (16 bits). They are read in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Staged(pub(super) u64);

/// A staged packet in one word: its peer in the lower half, its length and its first line in the
/// upper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LanePacket(u64);

impl Staged {
    /// One request.
    pub(super) const REQUEST: Self = Self(1);
    /// One line of a packet.
    pub(super) const LINE: Self = Self(1 << LINES_SHIFT);

    #[inline(always)]
    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    #[inline(always)]
    pub(super) const fn packets(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    pub(super) const fn requests(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    #[inline(always)]
    pub(super) const fn lines(self) -> u32 {
        self.lower() >> LINES_SHIFT
    }

    /// Lines and requests. Less than a number of lines if and only if there are fewer lines.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(super) const fn lower(self) -> u32 {
        self.0 as u32
    }
}

/// The peer of a packet in the lower half, and the length of its message in the upper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind(u64);

impl Kind {
    /// No message is that long.
    pub(super) const NONE: Self = Self(u64::MAX);

    #[inline(always)]
    pub(super) const fn new(peer: PeerId, len: u32) -> Self {
        Self(peer.0 as u64 | (len as u64) << 32)
    }

    /// A packet of this kind whose first line is this one.
    #[inline(always)]
    pub(super) const fn packet_at(self, line: u32) -> LanePacket {
        LanePacket(self.0 + ((HEADER_LEN as u64) << 32 | (line as u64) << 48))
    }
}

impl LanePacket {
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
    pub(super) const fn line(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// The line after the packet's last one.
    #[inline]
    pub(super) const fn end(self) -> usize {
        self.line() + (LANE_WORD + self.size()).div_ceil(LANE_LINE)
    }
}
