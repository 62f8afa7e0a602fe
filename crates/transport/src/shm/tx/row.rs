//! Packets that are alike: they have one peer and one length, and leave as one row. Called by
//! `send`.

use dunlin_core::transport::{
    LANE_COPIED, LANE_WORD, Lane, LanePacket, Messages, Tx, TxItem, TxSeq,
};
use dunlin_wire::HEADER_LEN;

use super::super::cells::CELL;
use super::super::channels::index_of;
use super::{Outgoing, ShmTx, count_dropped, unsettle};
use crate::counters::Counters;

impl ShmTx {
    /// Sends a lane whose packets are all like the first, and the items after it.
    #[inline(never)]
    pub(super) fn send_row<'a>(
        &mut self,
        lane: &'a Lane,
        first: LanePacket,
        messages: impl Messages<'a>,
        items: &[TxItem],
    ) -> TxSeq {
        self.end_lone_run();
        let (index, us) = (index_of(first.peer()), first.peer());
        match self.peers.get_mut(index) {
            Some(Some(peer)) if peer.peer == us => {
                unsettle(peer, index, &mut self.unsettled);
                match first.size() {
                    ..=LANE_COPIED => peer.send_row(lane, first, &mut self.counters),
                    _ => peer.send_messages(lane, first, messages, &mut self.counters),
                }
                if peer.ring.seems_parked() {
                    peer.ring_bell(&mut self.counters);
                }
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
    /// Sends all packets of a lane, which are like the first, and lie whole in their lines.
    #[inline]
    fn send_row(&mut self, lane: &Lane, first: LanePacket, counters: &mut Counters) {
        let (mut rest, len) = (lane.all_lines(), first.size());
        let cells = (LANE_WORD + len).div_ceil(CELL);
        while !rest.is_empty() {
            let taken = self.ring.push_row(rest, len);
            counters.tx_packets += taken as u64;
            counters.tx_bytes += (taken * len) as u64;
            if taken == 0 {
                self.send_parts(&rest.as_flattened()[LANE_WORD..][..len], &[], counters);
            }
            rest = &rest[taken.max(1) * cells..];
        }
    }

    /// Like [`Self::send_row`], for longer packets, whose messages may lie outside the lane.
    #[inline]
    fn send_messages<'a>(
        &mut self,
        lane: &'a Lane,
        first: LanePacket,
        messages: impl Messages<'a>,
        counters: &mut Counters,
    ) {
        let (mut rest, len) = (lane.all_lines(), first.size());
        let cells = (LANE_WORD + len).div_ceil(CELL);
        let mut sent = 0;
        while !rest.is_empty() {
            let message = |place| lane.message(sent + place, messages);
            let taken = self.ring.push_messages(rest, len, message);
            counters.tx_packets += taken as u64;
            counters.tx_bytes += (taken * len) as u64;
            if taken == 0 {
                let header = &rest.as_flattened()[LANE_WORD..][..HEADER_LEN];
                self.send_parts(header, lane.message(sent, messages), counters);
            }
            sent += taken.max(1);
            rest = &rest[taken.max(1) * cells..];
        }
    }

    /// Sends a packet that does not fit before the ring's last cell, or does not fit at all.
    #[cold]
    pub(super) fn send_parts(&mut self, first: &[u8], rest: &[u8], counters: &mut Counters) {
        // SAFETY: both are slices, and neither lanes nor msgbufs lie in a ring.
        match unsafe { self.ring.push(first, rest.as_ptr(), rest.len()) } {
            Ok(()) => {
                counters.tx_packets += 1;
                counters.tx_bytes += (first.len() + rest.len()) as u64;
            }
            Err(refused) => count_dropped(counters, refused.into()),
        }
    }
}
