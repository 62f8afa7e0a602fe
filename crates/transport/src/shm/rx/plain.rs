//! Bursts of short packets from the only ring: the receiver's part of the common path. Called by
//! `burst`, after a look that has found the first packet.

use dunlin_core::transport::Begun;

use super::super::cells::cells_of_long;
use super::super::ring::watch::Watch;
use super::ShmRx;
use super::rx_ring::Look;
use super::shorts::{SHORT, TWO};

/// Numbers with which [`ShmRx::begin_burst`] describes the rest of a burst to
/// [`ShmRx::finish_burst`]. A smaller number is the length of a short packet of more than two
/// cells.
const SEVERAL: u32 = SHORT + 1;
const OTHERS: u32 = SHORT + 2;
const ALL: u32 = SHORT + 3;

impl ShmRx {
    /// Begins a burst, and ends it if no packet has come, or only one of one or two cells. It is
    /// inlined into the caller's iteration, so that such a packet waits for few instructions.
    #[inline(always)]
    pub(crate) fn begin_burst(&mut self) -> Begun {
        Begun::Unfinished(match self.alone.look(self.bell.has_rung()) {
            Look::Nothing => return Begun::Nothing,
            Look::OneCell(watch, len) if self.takes_one(watch, len) => return Begun::One,
            Look::Short(watch, len) if len <= TWO && self.takes_several::<2>(watch, len) => {
                return Begun::One;
            }
            Look::Short(_, len) if len > TWO => len,
            Look::OneCell(..) | Look::Short(..) => SEVERAL,
            Look::Other => OTHERS,
            Look::Thorough => ALL,
        })
    }

    /// Does the rest of a burst, which is the one that `begun` names.
    #[inline(always)]
    pub(crate) fn finish_burst(&mut self, begun: u32) -> usize {
        if begun <= SHORT {
            return self.burst_of_short(begun);
        }
        match begun {
            SEVERAL => self.burst_of_several(),
            OTHERS => self.go_on(),
            _ => self.burst_thoroughly(),
        }
    }

    /// Takes a whole burst.
    #[inline(always)]
    pub(crate) fn whole_burst(&mut self) -> usize {
        match self.begin_burst() {
            Begun::Nothing => 0,
            Begun::One => 1,
            Begun::Unfinished(begun) => self.finish_burst(begun),
        }
    }

    /// Takes a packet of one cell, unless more packets have come or its ring must help.
    #[inline(always)]
    fn takes_one(&mut self, watch: Watch, len: u32) -> bool {
        let takes = self.alone.take_one(watch, len, &mut self.shorts);
        if takes {
            self.took(1, len.into());
        }
        takes
    }

    /// Like [`Self::takes_one`], for a short packet of several cells. `CELLS` is their number, or 0
    /// if that is more than two.
    #[inline(always)]
    fn takes_several<const CELLS: usize>(&mut self, watch: Watch, len: u32) -> bool {
        let cells = match CELLS {
            0 => cells_of_long(len),
            known => known,
        };
        if !self.alone.pass(watch, len, cells) {
            return false;
        }
        self.took(1, len.into());
        // SAFETY: the packet is short and lies in these cells, before the ring's last.
        unsafe { self.shorts.take_several::<CELLS>(watch.cell(), len, cells) };
        true
    }

    /// Takes a short packet of more than two cells from the only ring, or several packets if more
    /// have come.
    #[inline(never)]
    pub(super) fn burst_of_short(&mut self, len: u32) -> usize {
        match self.alone.watch() {
            Some(watch) if self.takes_several::<0>(watch, len) => 1,
            _ => self.burst_of_several(),
        }
    }

    /// Runs a burst that begins with short packets from the only ring.
    #[inline(never)]
    pub(super) fn burst_of_several(&mut self) -> usize {
        let Some(incoming) = self.alone.close(&mut self.rings) else {
            return 0;
        };
        incoming.ring.give_back();
        let took = self.alone.take(incoming, &mut self.shorts);
        if took.packets == 1 {
            self.alone.open(incoming);
        }
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
        if let Some(Some(incoming)) = self.rings.get_mut(self.alone.index.at()) {
            incoming.last_busy = busy;
        }
    }

    /// The burst's first frame, if it is a plain one.
    #[inline(always)]
    pub(crate) fn first_short(&self) -> Option<&[u8]> {
        (self.alone.plain != 0).then(|| self.shorts.first())
    }
}
