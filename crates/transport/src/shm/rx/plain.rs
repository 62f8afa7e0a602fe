//! Bursts of short packets from the only ring: the receiver's part of the common path. Called by
//! `burst`, after a look that has found the first packet.

use super::ShmRx;
use super::shorts::TWO;

impl ShmRx {
    /// Takes a packet of one cell from the only ring, or several packets if more have come. It is
    /// inlined into the caller's iteration, so that a lone packet waits for few instructions.
    #[inline(always)]
    pub(super) fn burst_of_one(&mut self, len: u32) -> usize {
        let Some(Some(incoming)) = self.rings.get_mut(self.alone.index as usize) else {
            return 0;
        };
        // The packets that this ring has shown so far belong to an earlier burst.
        incoming.ring.give_back();
        if !self.alone.take_lone::<1>(len, incoming, &mut self.shorts) {
            return self.burst_of_several();
        }
        self.took(1, len.into());
        1
    }

    /// Does the same if the first packet is short but has several cells.
    #[inline(never)]
    pub(super) fn burst_of_short(&mut self, len: u32) -> usize {
        let Some(Some(incoming)) = self.rings.get_mut(self.alone.index as usize) else {
            return 0;
        };
        incoming.ring.give_back();
        let shorts = &mut self.shorts;
        let is_alone = match len {
            ..=TWO => self.alone.take_lone::<2>(len, incoming, shorts),
            _ => self.alone.take_lone::<0>(len, incoming, shorts),
        };
        if !is_alone {
            return self.burst_of_several();
        }
        self.took(1, len.into());
        1
    }

    /// Runs a burst that begins with short packets from the only ring.
    #[inline(never)]
    pub(super) fn burst_of_several(&mut self) -> usize {
        let Some(Some(incoming)) = self.rings.get_mut(self.alone.index as usize) else {
            return 0;
        };
        incoming.ring.give_back();
        let took = self.alone.take(incoming, &mut self.shorts);
        self.took(took.packets, took.bytes);
        match took.others {
            true => self.go_on(),
            false => took.packets,
        }
    }

    /// Notes that the burst begins with `count` short packets, of `bytes` bytes together.
    #[inline(always)]
    fn took(&mut self, count: usize, bytes: u64) {
        self.counters.rx_packets += count as u64;
        self.counters.rx_bytes += bytes;
    }

    /// Notes, for other bursts, when plain bursts last had packets.
    pub(super) fn note_busy(&mut self) {
        let Some(busy) = self.alone.last_busy() else {
            return;
        };
        self.waiting.on_others(busy);
        if let Some(Some(incoming)) = self.rings.get_mut(self.alone.index as usize) {
            incoming.last_busy = busy;
        }
    }

    /// The burst's first frame, if it is a plain one.
    #[inline(always)]
    pub(crate) fn first_short(&self) -> Option<&[u8]> {
        (self.alone.plain != 0).then(|| self.shorts.first())
    }
}
