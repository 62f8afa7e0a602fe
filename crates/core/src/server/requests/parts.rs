//! Messages of more than one packet: requests that reassembly puts together, and responses whose
//! packets the client asks for (rules S7, S13, S14; eRPC §5).

use dunlin_msgbuf::BufRef;
use dunlin_wire::{Flags, Header, PacketType, PktNum, Residence};

use super::{Marks, RequestState, Requests};
use crate::context::Context;
use crate::handle::{AssemblyIdx, RequestIdx};
use crate::observe::counters::DropReason;
use crate::server::inbound::{Effect, Large, Partial, Received};
use crate::session::table::Sessions;
use crate::transfer::reassembly::{CreditReturn, Taken};
use crate::transfer::scoreboard::packets_of;
use crate::transport::TxSeq;

impl Requests {
    /// Handles a packet of a request that does not fit into one.
    #[cold]
    pub(crate) fn on_large_request(
        &mut self,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Large {
        let req = packet.header.req;
        if req == self.next_number(packet) {
            let Some(idx) = self.accept(packet, context) else {
                return Large::Over(Effect::None);
            };
            context.stats.on_request_accepted();
            return Large::New(idx);
        }
        let current = self.current(packet.slot(), req, RequestState::Receiving);
        match current.and_then(|idx| self.partial(idx)) {
            Some(partial) => Large::Part(partial),
            None => Large::Over(self.on_repeated(packet, sessions, context)),
        }
    }

    /// Notes that reassembly puts the request together at `place`.
    pub(crate) fn begin_parts(
        &mut self,
        idx: RequestIdx,
        place: AssemblyIdx,
        packets: u32,
        context: &mut Context,
    ) -> Partial {
        let request = self.at_mut(idx);
        request.enter(RequestState::Receiving);
        request.place = place;
        request.packets = packets;
        request.marks.set(Marks::LARGE);
        request.answered = context.moment.now();
        let session = request.session;
        self.expect_sweep(context);
        Partial {
            request: idx,
            session,
            place,
        }
    }

    /// Notes that reassembly has taken a packet of the request. After the last one it goes to its
    /// handler.
    pub(crate) fn on_part(
        &mut self,
        idx: RequestIdx,
        taken: Taken,
        congestion: bool,
        context: &Context,
    ) {
        let request = self.at_mut(idx);
        if taken != Taken::Again {
            request.answered = context.moment.now();
        }
        let burst = context.moment.burst_time();
        // The CRs of earlier bursts have echoed their marks.
        let known = request.arrived == burst && request.marks.has(Marks::CONGESTION);
        request.marks = request.marks.with(Marks::CONGESTION, known || congestion);
        request.arrived = burst;
        if taken == Taken::Last {
            request.enter(RequestState::Dispatched);
        }
    }

    /// Sends a CR for a request of which this burst brought packets (rule S7).
    pub(crate) fn send_credit_return(
        &self,
        idx: RequestIdx,
        due: &CreditReturn,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.at(idx);
        let line = sessions.at(request.session);
        let mut header = line.header(PacketType::Cr, request.req);
        header.pkt = due.trigger;
        if due.congestion {
            header.flags = header.flags.with(Flags::ECN_ECHO);
        }
        if due.duplicate {
            header.flags = header.flags.with(Flags::RETRANSMISSION);
        }
        let (peer, burst_time) = (line.terms().peer, context.moment.burst_time());
        let (bits, more) = due.bitmaps;
        for bits in [Some(bits), more].into_iter().flatten() {
            header.size = Header::arrivals(due.cumulative, bits.extent());
            context.stats.on_credit_return();
            context.outbox.push(peer, &header, BufRef::EMPTY);
            context.outbox.add_bitmap(&bits);
            context.outbox.measure(request.arrived, burst_time);
            // Only the first CR has the flags.
            header.flags = Flags::NONE;
        }
    }

    /// Handles an RFR that asks for packets of a response (rule S13).
    pub(super) fn send_asked(
        &mut self,
        idx: RequestIdx,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let (line, header) = (packet.line, packet.header);
        let terms = line.terms();
        let request = self.at_mut(idx);
        let Some(response) = request
            .response
            .as_ref()
            .filter(|_| !request.marks.has(Marks::FAILED))
        else {
            return self.send_answer(idx, Flags::RETRANSMISSION, sessions, context);
        };
        let size = u32::try_from(response.len()).unwrap_or(u32::MAX);
        let packets = packets_of(size, terms.data_size);
        let (first, count) = (header.pkt.0, u32::from(header.aux));
        let Some(after) = first.checked_add(count).filter(|after| *after <= packets) else {
            context.stats.on_drop(DropReason::PacketNumber);
            return;
        };
        // A client that asks is still alive.
        request.answered = context.moment.now();
        let mut end = TxSeq(0);
        for packet_num in first..after {
            let start = packet_num as usize * terms.data_size as usize;
            let len = (response.len() - start).min(terms.data_size as usize);
            let mut answer = line.header(PacketType::Resp, request.req);
            answer.flags = Flags(header.flags.0 & Flags::RETRANSMISSION.0);
            if packet.congestion {
                answer.flags = answer.flags.with(Flags::ECN_ECHO);
            }
            answer.aux = Residence::NO_SAMPLE.0;
            answer.size = size;
            answer.pkt = PktNum(packet_num);
            let data = response.lend_range(start, len).unwrap_or(BufRef::EMPTY);
            end = context.outbox.push(terms.peer, &answer, data);
        }
        request.on_sent(end);
        if count != 0 {
            let burst_time = context.moment.burst_time();
            context.outbox.measure(burst_time, burst_time);
        }
    }
}
