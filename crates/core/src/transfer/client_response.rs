//! Responses of more than one packet, at the client side: puts them together in the user's buffer
//! (rule S13). What is still missing, `transfer/client.rs` asks for.
//!
//! Called by `client/calls.rs` for answers that do not fit into a packet. Nothing here calls user
//! code: the completion is queued.

use dunlin_wire::{Flags, Header, Residence};

use crate::client::call::{CallIdx, CallState, Done};
use crate::endpoint::proto::Proto;
use crate::error::RpcError;
use crate::observe::counters::DropReason;
use crate::packet::receive::Data;
use crate::transfer::client::packets_of;

impl Proto {
    /// A packet of a response that has more than one (rule S13). The call ends with the last.
    #[cold]
    pub(crate) fn on_large_answer(&mut self, session: u32, header: &Header, data: Data<'_>) {
        let line = self.sessions.at(session);
        let Some(idx) = self.calls.in_slot(line.slot_at(header.req), header.req) else {
            self.stats.on_drop(DropReason::Unexpected);
            return;
        };
        if header.size > line.terms().max_message {
            self.stats.on_drop(DropReason::Size);
            return;
        }
        let data_size = line.terms().data_size;
        let packets = packets_of(header.size, data_size);
        match self.calls.at(idx).state {
            CallState::Sent | CallState::Sending | CallState::Accepted => {
                if header.pkt.0 != 0 {
                    self.stats.on_drop(DropReason::Unexpected);
                    return;
                }
                if !self.begin_response(session, idx, header, packets) {
                    return;
                }
            }
            CallState::Receiving => {}
            // A zombie has what it waited for; how much of it does not matter.
            _ => return self.end_answered(session, idx, None),
        }
        self.take_response_packet(session, idx, header, data);
    }

    /// Makes room for the response. False if the call is over, because the user's buffer is too
    /// small.
    fn begin_response(
        &mut self,
        session: u32,
        idx: CallIdx,
        header: &Header,
        packets: u32,
    ) -> bool {
        if self.calls.at(idx).state == CallState::Sent && header.aux != Residence::NO_SAMPLE.0 {
            self.take_sample(session, idx, header);
        }
        self.end_transfer(session, idx);
        let size = header.size;
        let call = self.calls.at_mut(idx);
        let fits = call
            .response
            .as_mut()
            .is_some_and(|response| response.resize(size as usize).is_ok());
        if !fits {
            self.end_answered(session, idx, Some(RpcError::ResponseTooLarge { size }));
            return false;
        }
        call.state = CallState::Receiving;
        call.transfer = self.transfers.insert(idx, packets);
        // The first packet comes unasked, so it says nothing of the round trip: as a packet that
        // left twice does.
        let entry = self.transfers.at_mut(call.transfer);
        entry.on_sent(0, self.moment.now());
        entry.on_sent(0, self.moment.now());
        true
    }

    fn take_response_packet(
        &mut self,
        session: u32,
        idx: CallIdx,
        header: &Header,
        data: Data<'_>,
    ) {
        let data_size = self.sessions.at(session).terms().data_size as usize;
        let call = self.calls.at_mut(idx);
        let (packet, transfer) = (header.pkt.0, call.transfer);
        let Some(response) = call.response.as_mut() else {
            return;
        };
        let entry = self.transfers.at(transfer);
        if response.len() != header.size as usize {
            self.stats.on_drop(DropReason::Size);
            return;
        }
        if packet >= entry.next() {
            // More than was asked for.
            self.stats.on_drop(DropReason::Unexpected);
            return;
        }
        if !entry.is_missing(packet) {
            // It came twice.
            let now = self.moment.now();
            self.transfers.at_mut(transfer).on_late(now);
            return;
        }
        let start = packet as usize * data_size;
        // The packet exists and its data is as long as it should be (rule W8).
        let place = response.data_mut().get_mut(start..start + data.len());
        if !place.is_some_and(|place| data.copy_to(place)) {
            // It is asked for again, as if it had been lost.
            self.stats.on_drop(DropReason::Revoked);
            return self.after_arrivals(session, transfer);
        }
        let arrival = self.on_arrival(session, transfer, packet, header);
        let marked = header.flags.has(Flags::ECN_ECHO);
        self.learn(session, arrival.and_then(|arrival| arrival.rtt), 1, marked);
        if self.transfers.at(transfer).is_complete() {
            return self.end_answered(session, idx, None);
        }
        self.after_arrivals(session, transfer);
    }

    /// The answer is here: slot and credits are free, and the call completes.
    fn end_answered(&mut self, session: u32, idx: CallIdx, error: Option<RpcError>) {
        self.end_transfer(session, idx);
        let req = self.calls.at(idx).req;
        self.release_slot(session, req);
        let call = self.calls.at_mut(idx);
        let (tag, tx_end) = (call.tag, call.tx_end);
        if let (Some(request), Some(response)) = (call.request.take(), call.response.take()) {
            let done = Done {
                session: self.sessions.handle(session),
                tag,
                result: error.map_or(Ok(()), Err),
                request,
                response,
            };
            self.note_answered(idx);
            self.end(done, tx_end);
        }
        self.calls.remove(idx);
    }
}
