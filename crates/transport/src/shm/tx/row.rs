//! Packets that are alike: they have one peer and one length, and leave as one row. Called by
//! `send`.

use dunlin_core::transport::{LANE_WORD, Lane, LanePacket, Tx, TxItem, TxSeq};

use super::super::cells::CELL;
use super::super::channels::index_of;
use super::{Outgoing, ShmTx, unsettle};
use crate::counters::Counters;

impl ShmTx {
    /// Sends a lane whose packets are all like the first, and the items after it.
    #[inline(never)]
    pub(super) fn send_alike(&mut self, lane: &Lane, first: LanePacket, items: &[TxItem]) -> TxSeq {
        let (index, us) = (index_of(first.peer()), first.peer());
        match self.peers.get_mut(index) {
            Some(Some(peer)) if peer.peer == us => {
                unsettle(peer, index, &mut self.unsettled);
                peer.send_row(lane, first, &mut self.counters);
            }
            _ => self.counters.tx_dropped_peer += lane.len() as u64,
        }
        self.handed_over += lane.len() as u64;
        if !items.is_empty() {
            return self.burst(items);
        }
        self.end_burst();
        TxSeq(self.handed_over)
    }
}

impl Outgoing {
    /// Sends all packets of a lane, which are like the first.
    #[inline]
    fn send_row(&mut self, lane: &Lane, first: LanePacket, counters: &mut Counters) {
        let (mut rest, len) = (lane.all_lines(), first.size());
        let cells = (LANE_WORD + len).div_ceil(CELL);
        while !rest.is_empty() {
            let taken = self.ring.push_row(rest, len);
            counters.tx_packets += taken as u64;
            counters.tx_bytes += (taken * len) as u64;
            if taken == 0 {
                self.send_alone(&rest.as_flattened()[LANE_WORD..][..len], counters);
            }
            rest = &rest[taken.max(1) * cells..];
        }
        if self.ring.seems_parked() {
            self.ring_bell(counters);
        }
    }
}
