//! Packets that are written to a ring together. A lane implements [`Staged`]; the tests have
//! another implementation.
//!
//! The ring does not trust an implementation: if a packet has too few lines, the ring panics
//! instead of writing to other cells.

use dunlin_core::transport::{LANE_PACKET, Lane, LanePacket};

use super::cells::{CELL, WORD};

/// Lines of the longest packet of a lane.
pub(super) const MOST_LINES: usize = (WORD + LANE_PACKET) / CELL;

/// A place for staged packets: lines as long as cells, in the same layout.
pub(super) trait Staged {
    /// Names a packet.
    type Packet: Copy;
    /// Longest packet, in bytes.
    const LONGEST: u32;

    /// The number of bytes of a packet.
    fn size(&self, packet: Self::Packet) -> usize;
    /// The lines of consecutive packets. Each packet begins with an unused word, then its bytes,
    /// and may end with leftover bytes.
    fn lines(&self, packets: &[Self::Packet]) -> &[[u8; CELL]];
}

impl Staged for Lane {
    type Packet = LanePacket;

    #[expect(clippy::cast_possible_truncation, reason = "a small constant")]
    const LONGEST: u32 = LANE_PACKET as u32;

    #[inline(always)]
    fn size(&self, packet: LanePacket) -> usize {
        packet.size()
    }

    #[inline(always)]
    fn lines(&self, packets: &[LanePacket]) -> &[[u8; CELL]] {
        Self::lines(self, packets)
    }
}
