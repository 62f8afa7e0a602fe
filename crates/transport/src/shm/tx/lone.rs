//! A packet that is alone in its burst: its receiver waits for it. Called by `send_lone`.
//!
//! A half that sends one packet at a time mostly sends to the peer of the packet before. From the
//! second such packet on, the peer's ring lends cells, and a packet needs neither the peer nor the
//! ring ([`Lone`]). Packets of one cell get a clean run if possible, and longer packets get a block
//! (`lent`). Invariant: cells are lent only while nothing else is sent; every other function that
//! sends, and every change of the peers, gives them back first.

use dunlin_core::transport::{InLane, Lane, LanePacket, Messages, PeerId, TxSeq};

use super::super::channels::index_of;
use super::super::ring::lent::Lent;
use super::{PUT_OFF, ShmTx, unsettle};
use crate::counters::Counters;

/// The cells for further lone packets to a peer.
#[derive(Debug)]
pub(super) struct Lone {
    cells: Lent,
    /// The peer to which the next packet can leave in a cell of a clean run without other work, or
    /// [`CLOSED`].
    open: u64,
    /// The same for a block.
    open_block: u64,
    /// The peer of the last lone packet for which cells were wanted. Lent cells belong to this
    /// peer's ring.
    peer: PeerId,
}

/// No peer has this number.
const CLOSED: u64 = u64::MAX;

impl Lone {
    pub(super) fn new() -> Self {
        Self {
            cells: Lent::none(),
            open: CLOSED,
            open_block: CLOSED,
            peer: PeerId(u32::MAX),
        }
    }

    /// Whether a packet of one cell to this peer can leave in a clean run.
    #[inline(always)]
    pub(super) fn is_open(&self, peer: PeerId) -> bool {
        self.open == u64::from(peer.0)
    }

    /// Whether a packet to this peer can leave in a block, if that has enough cells left.
    #[inline(always)]
    fn is_open_block(&self, peer: PeerId) -> bool {
        self.open_block == u64::from(peer.0)
    }

    /// The number of packets in lent cells.
    #[inline(always)]
    pub(super) fn sent(&self) -> u64 {
        self.cells.used() as u64
    }

    /// Notes that the peer is not among the unsettled ones now.
    pub(super) fn on_settled(&mut self) {
        (self.open, self.open_block) = (CLOSED, CLOSED);
    }
}

impl ShmTx {
    /// The counters of this half.
    pub fn counters(&self) -> Counters {
        Counters {
            tx_packets: self.counters.tx_packets + self.lone.sent(),
            ..self.counters
        }
    }

    /// Sends the only packet of a burst, which fits into a cell, in a clean run. The receiver waits
    /// for the packet, so this function is inlined into the iteration.
    #[inline(always)]
    pub(super) fn send_lent(&mut self, lane: &Lane, packet: LanePacket) -> TxSeq {
        let len = packet.size();
        // SAFETY: a cell is left, and cells are given back before the ring goes and before its
        // producer is used.
        let needs_care = unsafe { self.lone.cells.push(lane.first_line(), len) };
        self.counters.tx_bytes += len as u64;
        if needs_care {
            self.care_for_lone();
        }
        TxSeq(self.handed_over + self.lone.sent())
    }

    /// Sends the only packet of a burst in a block. `CELLS` is its number of cells, or 0 if that is
    /// more than two. `None`: no block is at hand for it.
    #[inline(always)]
    fn send_in_block<const CELLS: usize>(
        &mut self,
        lane: &Lane,
        packet: LanePacket,
    ) -> Option<TxSeq> {
        if !self.lone.is_open_block(packet.peer()) {
            return None;
        }
        let len = packet.size();
        // SAFETY: the lent cells are a block, which is given back before the ring goes and before
        // its producer is used.
        let needs_care = unsafe { self.lone.cells.push_any::<CELLS>(lane.first_lines(), len)? };
        self.counters.tx_bytes += len as u64;
        if needs_care {
            self.care_for_lone();
        }
        Some(TxSeq(self.handed_over + self.lone.sent()))
    }

    /// Wakes the peer of the lent cells, which may sleep. At a pause, checks all unsettled peers
    /// instead, and borrows more cells if few are left.
    #[cold]
    #[inline(never)]
    fn care_for_lone(&mut self) {
        if self.lone.cells.is_pause() {
            // This checks the peer of the lent cells, too.
            self.look_again();
            // If no cell is left, nothing is borrowed here: only the next packet shows which kind
            // of cells it needs.
            if self.lone.cells.have(1) {
                self.open_lone(self.lone.cells.are_block());
            }
        } else if let Some(Some(peer)) = self.peers.get_mut(index_of(self.lone.peer)) {
            peer.ring_bell(&mut self.counters);
        }
    }

    /// Sends the only packet of a burst, which fits into a cell, when no clean run is at hand for
    /// it.
    #[inline(never)]
    pub(super) fn send_lone_anew(&mut self, lane: &Lane, packet: LanePacket) -> TxSeq {
        if let Some(sent) = self.send_in_block::<1>(lane, packet) {
            return sent;
        }
        if self.lone.peer == packet.peer() && self.open_lone(false) {
            if self.lone.is_open(packet.peer()) {
                return self.send_lent(lane, packet);
            }
            if let Some(sent) = self.send_in_block::<1>(lane, packet) {
                return sent;
            }
        }
        self.end_lone_run();
        self.lone.peer = packet.peer();
        let sent = self.send_only::<1>(lane, packet, InLane);
        sent.unwrap_or_else(|| self.send_row(lane, packet, InLane, &[]))
    }

    /// Makes cells available for packets to the same peer as before: a block if the packets have
    /// several cells. False if its ring lends none.
    fn open_lone(&mut self, several: bool) -> bool {
        let (cells, least) = (&self.lone.cells, 1 + usize::from(several));
        if !cells.have(least) || several && !cells.are_block() {
            self.end_lone_run();
        }
        let us = self.lone.peer;
        let index = index_of(us);
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return false;
        };
        if peer.peer != us {
            return false;
        }
        unsettle(peer, index, &mut self.unsettled);
        let lone = &mut self.lone;
        if !lone.cells.are_lent() {
            lone.cells = match several {
                true => peer.ring.lend_block(),
                false => peer.ring.lend(),
            };
        }
        if !lone.cells.have(least) {
            return false;
        }
        match lone.cells.are_block() {
            true => lone.open_block = us.0.into(),
            false => lone.open = us.0.into(),
        }
        true
    }

    /// Gives lent cells back.
    #[inline(always)]
    pub(super) fn end_lone_run(&mut self) {
        if self.lone.cells.are_lent() {
            self.give_cells_back();
        }
    }

    #[inline(never)]
    fn give_cells_back(&mut self) {
        self.lone.on_settled();
        let cells = std::mem::replace(&mut self.lone.cells, Lent::none());
        if let Some(Some(peer)) = self.peers.get_mut(index_of(self.lone.peer)) {
            let used = peer.ring.take_back(&cells);
            self.counters.tx_packets += used;
            let before = self.handed_over / u64::from(PUT_OFF);
            self.handed_over += used;
            // A packet that passed a multiple in a lent cell was not counted at that time.
            if self.handed_over / u64::from(PUT_OFF) != before {
                self.look_again();
            }
        }
    }

    /// Sends the only packet of a burst while no cells are lent, if no other work is needed.
    /// `CELLS` is 1 or 2, or 3 for a packet of more cells, or 0 for a packet whose message may lie
    /// outside the lane.
    #[inline(always)]
    pub(super) fn send_only<'a, const CELLS: usize>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> Option<TxSeq> {
        debug_assert!(!self.lone.cells.are_lent(), "the producer is used");
        let index = index_of(packet.peer());
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return None;
        };
        if peer.peer != packet.peer() {
            return None;
        }
        let (ring, len) = (&mut peer.ring, packet.size());
        let sent = match CELLS {
            1 => ring.push_lone(lane.first_line(), len),
            2 => ring.push_lone_long::<true>(lane.first_lines(), len),
            0 => ring.push_lone_message(lane.first_lines(), len, || lane.message(0, messages)),
            _ => ring.push_lone_long::<false>(lane.first_lines(), len),
        };
        if !sent {
            return None;
        }
        self.counters.tx_packets += 1;
        self.counters.tx_bytes += packet.size() as u64;
        self.handed_over += 1;
        // Counting bursts instead would take a store.
        let is_due = self.handed_over.is_multiple_of(PUT_OFF.into());
        if peer.unsettled && !peer.ring.seems_parked() && !is_due {
            return Some(TxSeq(self.handed_over));
        }
        Some(self.end_lone(index, is_due))
    }

    /// Sends the only packet of a burst, which has two cells.
    #[inline(never)]
    pub(super) fn send_lone_two(&mut self, lane: &Lane, packet: LanePacket) -> TxSeq {
        match self.send_in_block::<2>(lane, packet) {
            Some(sent) => sent,
            None => self.send_several_anew::<2, 2>(lane, packet),
        }
    }

    /// Like [`Self::send_lone_two`], for a packet of more than two cells.
    #[inline(never)]
    pub(super) fn send_lone_long(&mut self, lane: &Lane, packet: LanePacket) -> TxSeq {
        match self.send_in_block::<0>(lane, packet) {
            Some(sent) => sent,
            None => self.send_several_anew::<0, 3>(lane, packet),
        }
    }

    /// Sends the only packet of a burst, which has several cells, when no block is at hand for it.
    /// `CELLS` is as for [`Self::send_in_block`], and `ONLY` as for [`Self::send_only`].
    #[inline(never)]
    fn send_several_anew<const CELLS: usize, const ONLY: usize>(
        &mut self,
        lane: &Lane,
        packet: LanePacket,
    ) -> TxSeq {
        if self.lone.peer == packet.peer() {
            // Fewer cells may be left than this packet has.
            self.end_lone_run();
            if self.open_lone(true)
                && let Some(sent) = self.send_in_block::<CELLS>(lane, packet)
            {
                return sent;
            }
        }
        self.end_lone_run();
        self.lone.peer = packet.peer();
        let sent = self.send_only::<ONLY>(lane, packet, InLane);
        sent.unwrap_or_else(|| self.send_row(lane, packet, InLane, &[]))
    }

    /// Sends the only packet of a burst, whose message may not be in the lane.
    #[inline(never)]
    pub(super) fn send_lone_message<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        self.end_lone_run();
        let sent = self.send_only::<0>(lane, packet, messages);
        sent.unwrap_or_else(|| self.send_row(lane, packet, messages, &[]))
    }

    /// Finishes a burst of one packet: its peer may sleep, or unsettled peers may be due.
    #[inline(never)]
    fn end_lone(&mut self, index: usize, is_due: bool) -> TxSeq {
        if let Some(Some(peer)) = self.peers.get_mut(index) {
            unsettle(peer, index, &mut self.unsettled);
            if peer.ring.seems_parked() {
                peer.ring_bell(&mut self.counters);
            }
        }
        if is_due {
            self.look_again();
        }
        TxSeq(self.handed_over)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
