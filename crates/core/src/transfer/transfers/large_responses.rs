//! Responses of more than one packet, at the client side. They are put together in the user's
//! buffer (rule S13). `transfers/sending.rs` asks for the packets that are still missing.
//!
//! Called by `protocol/client.rs` for answers that do not fit into a packet. Nothing here calls
//! user code: the completion is queued.

use dunlin_wire::{Flags, Header, Residence};

use crate::congestion::{Sample, Way};
use crate::error::RpcError;
use crate::handle::{CallIdx, SessionIdx};
use crate::observe::counters::DropReason;
use crate::packet::receive::Data;
use crate::time::Nanos;
use crate::transfer::scoreboard::packets_of;
use crate::transfer::transfers::{Lent, Transfers};

impl Transfers {
    /// Handles a packet of a response that has more than one (rule S13). When the last missing
    /// packet arrives, the call ends.
    #[cold]
    pub(crate) fn on_large_answer(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        header: &Header,
        data: Data<'_>,
    ) {
        let line = lent.sessions.at(session);
        let Some(idx) = lent.calls.in_slot(line.slot_at(header.req), header.req) else {
            lent.context.stats.on_drop(DropReason::Unexpected);
            return;
        };
        if header.size > line.terms().max_message {
            lent.context.stats.on_drop(DropReason::Size);
            return;
        }
        let data_size = line.terms().data_size;
        let packets = packets_of(header.size, data_size);
        if lent.calls.is_zombie(idx) {
            // A zombie waits for any answer, whatever its length.
            return self.end_answered(lent, session, idx, None);
        }
        if !lent.calls.is_receiving(idx) {
            if header.pkt.0 != 0 {
                lent.context.stats.on_drop(DropReason::Unexpected);
                return;
            }
            if !self.begin_response(lent, session, idx, header, packets) {
                return;
            }
        }
        self.take_response_packet(lent, session, idx, header, data);
    }

    /// Makes room for the response. False if the user's buffer is too small; then the call is over.
    fn begin_response(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        idx: CallIdx,
        header: &Header,
        packets: u32,
    ) -> bool {
        if lent.calls.is_sent(idx) && header.aux != Residence::NO_SAMPLE.0 {
            let line = lent.sessions.at_mut(session);
            lent.calls
                .take_sample(idx, header, line, lent.pacer, lent.context);
        }
        self.on_answer_amid(lent, session, idx, header);
        self.end(lent, session, idx);
        let size = header.size;
        if !lent.calls.make_room(idx, size) {
            self.end_answered(
                lent,
                session,
                idx,
                Some(RpcError::ResponseTooLarge { size }),
            );
            return false;
        }
        let transfer = self.insert(session, idx, packets);
        lent.calls.begin_receiving(idx, transfer);
        // The server sends the first packet unasked, so it gives no round trip. The client
        // therefore notes two transmissions: a packet that was sent twice gives no sample.
        let entry = self.at_mut(transfer);
        entry.on_sent(0, lent.context.moment.now());
        entry.on_sent(0, lent.context.moment.now());
        true
    }

    fn take_response_packet(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        idx: CallIdx,
        header: &Header,
        data: Data<'_>,
    ) {
        let data_size = lent.sessions.at(session).terms().data_size as usize;
        let (Some(transfer), Some(len)) =
            (lent.calls.transfer_of(idx), lent.calls.response_len(idx))
        else {
            return;
        };
        let packet = header.pkt.0;
        let entry = self.at(transfer);
        if len != header.size as usize {
            lent.context.stats.on_drop(DropReason::Size);
            return;
        }
        if packet >= entry.next() {
            // The client has not asked for this packet.
            lent.context.stats.on_drop(DropReason::Unexpected);
            return;
        }
        if !entry.is_missing(packet) {
            // The packet came twice.
            let now = lent.context.moment.now();
            self.at_mut(transfer).on_late(now);
            return;
        }
        let start = packet as usize * data_size;
        if !lent.calls.put_part(idx, start, &data) {
            // The client will ask for it again, as if it had been lost.
            lent.context.stats.on_drop(DropReason::Revoked);
            return self.after_arrivals(lent, session, transfer);
        }
        let arrival = self.on_arrival(lent, session, transfer, packet, header);
        if let Some(residence) = header.residence().to_nanos() {
            self.on_kept(session, Nanos(residence));
        }
        let line = lent.sessions.at_mut(session);
        if header.flags.has(Flags::ECN_ECHO) {
            // The network marked a packet on the way to the server: the request, or an RFR.
            lent.pacer.learn_mark(line, Way::Out, lent.context);
        }
        let answer = Sample {
            rtt: arrival.and_then(|arrival| arrival.rtt),
            congestion: false,
            packets: 1,
            now: lent.context.moment.now(),
        };
        lent.pacer.learn(line, Way::Back, answer, lent.context);
        if self.at(transfer).is_complete() {
            return self.end_answered(lent, session, idx, None);
        }
        self.after_arrivals(lent, session, transfer);
    }

    /// Completes the call, whose answer has arrived, and frees its slot and credits.
    fn end_answered(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        idx: CallIdx,
        error: Option<RpcError>,
    ) {
        self.end(lent, session, idx);
        let line = lent.sessions.at_mut(session);
        lent.calls.end_answered(idx, error, line, lent.context);
    }
}
