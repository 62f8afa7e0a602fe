//! Messages of more than one packet: requests that reassembly puts together, and responses whose
//! packets the client asks for (rules S7, S13, S14; eRPC §5).

use dunlin_msgbuf::BufRef;
use dunlin_wire::{Flags, Header, PacketType, Residence};

use super::asked::{Asked, Asking, ITERATION_BYTES, LEAST_CHARGE, TURN_BYTES};
use super::{InboundRequest, Marks, RequestState, Requests};
use crate::context::Context;
use crate::handle::{AssemblyIdx, RequestId, RequestIdx};
use crate::observe::counters::DropReason;
use crate::server::inbound::{Effect, Large, Partial, Received};
use crate::session::table::Sessions;
use crate::transfer::reassembly::{CreditReturn, Taken};
use crate::transfer::scoreboard::packets_of;

impl Requests {
    /// Handles one packet of a request that needs several.
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

    /// Notes that reassembly has taken a packet of the request. After the last one the request goes
    /// to its handler.
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

    /// Sends a CR for a request for which this burst brought packets (rule S7).
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
    pub(super) fn on_asked(
        &mut self,
        idx: RequestIdx,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let (id, header, terms) = (self.id(idx), packet.header, packet.line.terms());
        let request = self.at_mut(idx);
        let Some(packets) = request.packets_of_response(terms.data_size) else {
            return self.send_answer(idx, Flags::RETRANSMISSION, sessions, context);
        };
        let (first, count) = (header.pkt.0, u32::from(header.aux));
        let Some(after) = first.checked_add(count).filter(|after| *after <= packets) else {
            context.stats.on_drop(DropReason::PacketNumber);
            return;
        };
        // A client that asks is still alive.
        request.answered = context.moment.now();
        let flags = Flags(header.flags.0 & Flags::RETRANSMISSION.0);
        let flags = match packet.congestion {
            true => flags.with(Flags::ECN_ECHO),
            false => flags,
        };
        let asking = Asking::new(id, first..after, flags, context.moment.burst_time());
        if !self.asked.ask(packet.session, &asking, terms.credits) {
            context.stats.on_drop(DropReason::PacketNumber);
        }
        context.agenda.call_attention();
    }

    /// Sends packets that clients have asked for, session by session, up to the limit of an
    /// iteration.
    pub(crate) fn send_asked(&mut self, sessions: &Sessions, context: &mut Context) {
        let mut sent = 0;
        while sent < ITERATION_BYTES && !self.asked.is_empty() {
            sent += self.take_turn(sessions, context);
            self.asked.end_turn();
        }
    }

    /// Whether clients have asked for packets that have not been sent yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes a session's turn; returns the number of bytes that it sent.
    fn take_turn(&mut self, sessions: &Sessions, context: &mut Context) -> usize {
        let mut sent = 0;
        let Some((session, ..)) = self.asked.first() else {
            return 0;
        };
        let of_turn = |asked: &Asked| asked.first().filter(|(whose, ..)| *whose == session);
        while let Some((_, id, part)) = of_turn(&self.asked) {
            let data_size = sessions.at(session).terms().data_size;
            let Some(request) = self.response_to(id, data_size) else {
                self.asked.on_gone();
                continue;
            };
            sent += request.send_part(&part, sessions, context);
            self.asked.on_sent();
            if sent >= TURN_BYTES {
                break;
            }
        }
        sent
    }

    /// The request with this name, if it still has its response.
    fn response_to(&mut self, id: RequestId, data_size: u32) -> Option<&mut InboundRequest> {
        let is_it = self.table.get(id.index).is_some() && self.id(id.index) == id;
        let request = self.table.get_mut(id.index).filter(|_| is_it)?;
        let is_there = request.packets_of_response(data_size).is_some();
        (request.state == RequestState::Done && is_there).then_some(request)
    }
}

impl InboundRequest {
    /// The number of packets of the response; `None` if the answer is an error.
    fn packets_of_response(&self, data_size: u32) -> Option<u32> {
        let response = self.response.as_ref();
        let response = response.filter(|_| !self.marks.has(Marks::FAILED))?;
        let size = u32::try_from(response.len()).unwrap_or(u32::MAX);
        Some(packets_of(size, data_size))
    }

    /// Sends the next packet that was asked for. Returns its bytes of data, or [`LEAST_CHARGE`] if
    /// it has fewer: handling a packet takes time even if it is short.
    fn send_part(&mut self, part: &Asking, sessions: &Sessions, context: &mut Context) -> usize {
        let Some(response) = &self.response else {
            return 0;
        };
        let line = sessions.at(self.session);
        let terms = line.terms();
        let mut answer = line.header(PacketType::Resp, self.req);
        answer.aux = Residence::NO_SAMPLE.0;
        answer.size = u32::try_from(response.len()).unwrap_or(u32::MAX);
        part.mark(&mut answer);
        let start = answer.pkt.0 as usize * terms.data_size as usize;
        let len = response.len().saturating_sub(start);
        let len = len.min(terms.data_size as usize);
        let data = response.lend_range(start, len).unwrap_or(BufRef::EMPTY);
        let end = context.outbox.push(terms.peer, &answer, data);
        self.on_sent(end);
        if let Some(came) = part.measured_from() {
            let burst_time = context.moment.burst_time();
            context.outbox.measure(came, burst_time);
        }
        len.max(LEAST_CHARGE)
    }
}
