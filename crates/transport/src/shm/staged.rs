//! Packets that wait to be written to a ring together: those of a lane; tests have their own.
//!
//! The ring believes nothing of what is said here: a packet whose lines are too few for it is a
//! panic, not a write to other cells.

use dunlin_core::transport::{LANE_PACKET, Lane, LanePacket};

use super::cells::{CELL, ONE_CELL};

/// Where packets are staged: in lines that are as long as cells, and lie as cells will.
pub(super) trait Staged {
    /// Names a packet.
    type Packet: Copy;
    /// Longest packet, in bytes.
    const LONGEST: u32;

    /// The bytes of a packet of one line, and what is left over there.
    fn line(&self, packet: Self::Packet) -> &[u8; ONE_CELL];
    /// How many bytes a packet has.
    fn size(&self, packet: Self::Packet) -> usize;
    /// The lines of packets that follow each other. Each packet has a word in front, which is not
    /// used, then its bytes, and at its end perhaps what is left over there.
    fn lines(&self, packets: &[Self::Packet]) -> &[[u8; CELL]];
}

impl Staged for Lane {
    type Packet = LanePacket;

    #[expect(clippy::cast_possible_truncation, reason = "a small constant")]
    const LONGEST: u32 = LANE_PACKET as u32;

    #[inline(always)]
    fn line(&self, packet: LanePacket) -> &[u8; ONE_CELL] {
        Self::line(self, packet)
    }

    #[inline(always)]
    fn size(&self, packet: LanePacket) -> usize {
        packet.size()
    }

    #[inline(always)]
    fn lines(&self, packets: &[LanePacket]) -> &[[u8; CELL]] {
        Self::lines(self, packets)
    }
}
