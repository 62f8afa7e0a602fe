//! A packet that is alone in its burst: its receiver waits for it. Called by `send_lone`.

use dunlin_core::transport::{InLane, Lane, LanePacket, Messages, TxSeq};

use super::super::channels::index_of;
use super::{PUT_OFF, ShmTx, unsettle};

impl ShmTx {
    /// Sends the only packet of a burst, if no other work is needed. `CELLS` is 1, 2, 3 for longer
    /// packets, or 0 for those whose message may not be in the lane. The receiver waits for such a
    /// packet, so this function must be fast, and is inlined into the iteration.
    #[inline(always)]
    pub(super) fn send_only<'a, const CELLS: usize>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> Option<TxSeq> {
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

    /// Does the same for a packet of two cells.
    #[inline(never)]
    pub(super) fn send_lone_two(&mut self, lane: &Lane, packet: LanePacket) -> TxSeq {
        let sent = self.send_only::<2>(lane, packet, InLane);
        sent.unwrap_or_else(|| self.send_row(lane, packet, InLane, &[]))
    }

    /// Does the same for a longer packet.
    #[inline(never)]
    pub(super) fn send_lone_long(&mut self, lane: &Lane, packet: LanePacket) -> TxSeq {
        let sent = self.send_only::<3>(lane, packet, InLane);
        sent.unwrap_or_else(|| self.send_row(lane, packet, InLane, &[]))
    }

    /// Does the same for a packet whose message may not be in the lane.
    #[inline(never)]
    pub(super) fn send_lone_message<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
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
