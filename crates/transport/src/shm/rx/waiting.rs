//! Packets by reference: after they are taken out of their rings, they wait here until a burst has
//! shown them. Called by `rx` and `rx_ring`.
//!
//! Invariant: they are shown in order, a few at a time.

use std::collections::VecDeque;

use dunlin_core::transport::MAX_INLINE;
use dunlin_msgbuf::BufRef;

use super::super::channel::ChannelIdx;

/// The front of a packet, and the place of its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) front: [u8; MAX_INLINE],
    pub(super) len: u32,
    pub(super) ring: ChannelIdx,
    pub(super) data: BufRef,
}

/// The packets of all rings, in order.
#[derive(Debug)]
pub(super) struct Waiting {
    packets: VecDeque<Named>,
    /// The number of packets, from the first on, that are frames of this burst.
    shown: usize,
    /// The last burst that showed packets whose data was in a ring.
    last_other: u32,
}

/// The most packets that may wait.
const MOST: usize = 1024;

/// The most frames of one burst whose data lies elsewhere. The other packets wait, so a small
/// packet is delayed by no more than this many copies of large data.
const SHOWN: usize = 2;

/// After a burst that had a packet with its data in a ring, the next bursts, this many, show only
/// one packet by reference each, because more packets from rings may come.
pub(super) const LATELY: u32 = 64;

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            packets: VecDeque::with_capacity(MOST),
            shown: 0,
            last_other: 0,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.packets.len() < MOST
    }

    pub(super) fn push(&mut self, packet: Named) {
        self.packets.push_back(packet);
    }

    /// The frames of this burst.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Named> {
        self.packets.range(..self.shown)
    }

    /// Whether some of the packets are not frames of this burst.
    pub(super) fn has_others(&self) -> bool {
        self.packets.len() > self.shown
    }

    /// Notes that burst number `burst` shows packets from rings, and none of those that wait here.
    pub(super) fn on_others(&mut self, burst: u32) {
        self.last_other = burst;
    }

    /// Makes a few packets frames of burst number `burst`. Returns their number.
    pub(super) fn show(&mut self, burst: u32) -> usize {
        let others = burst.wrapping_sub(self.last_other) < LATELY;
        let most = if others { 1 } else { SHOWN };
        self.shown = self.packets.len().min(most);
        self.shown
    }

    /// Forgets the packets that the last burst has shown. True if it has shown none.
    #[inline(never)]
    pub(super) fn forget_shown(&mut self) -> bool {
        let shown = std::mem::take(&mut self.shown);
        self.packets.drain(..shown);
        shown == 0
    }

    /// Forgets the ring `index`, which is going away; the data of its packets will not be found.
    pub(super) fn forget_ring(&mut self, index: usize) {
        for packet in &mut self.packets {
            if packet.ring.at() == index {
                packet.ring = ChannelIdx::NONE;
            }
        }
    }
}
