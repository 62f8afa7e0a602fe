//! Messages of more than one packet: requests that reassembly puts together, and responses whose
//! packets the client asks for (rules S7, S13, S14; eRPC §5).

use dunlin_msgbuf::BufRef;
use dunlin_wire::{Flags, Header, PacketType, ReqNum, Residence};

use super::asked::{Asked, Asking, ITERATION_BYTES, LEAST_CHARGE};
use super::{InboundRequest, Marks, RequestState, Requests};
use crate::context::Context;
use crate::handle::{AssemblyIdx, RequestId, RequestIdx, SlotIdx};
use crate::observe::counters::DropReason;
use crate::server::inbound::{Effect, Large, Partial, Received};
use crate::session::table::Sessions;
use crate::slab::Slab;
use crate::time::Nanos;
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
        match self.partial_at(packet.slot(), req) {
            Some(partial) => Large::Part(partial),
            None => Large::Over(self.on_repeated(packet, sessions, context)),
        }
    }

    /// The request of the slot, if it has this number and has arrived in part.
    #[inline]
    pub(crate) fn partial_at(&self, at: SlotIdx, req: ReqNum) -> Option<Partial> {
        let current = self.current(at, req, RequestState::Receiving);
        current.and_then(|idx| self.partial(idx))
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
        // In a large request, the sample flag's bit has another meaning.
        request.marks = request.marks.with(Marks::SAMPLE, false);
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

    /// Notes that reassembly has accepted a packet of the request. After the last packet, the
    /// request goes to its handler. `marked`: the network has marked a packet that no CR has
    /// answered yet.
    pub(crate) fn on_part(
        &mut self,
        idx: RequestIdx,
        taken: Taken,
        marked: bool,
        context: &Context,
    ) {
        let request = self.at_mut(idx);
        if taken != Taken::Again {
            request.answered = context.moment.now();
        }
        request.marks = request.marks.with(Marks::CONGESTION, marked);
        request.arrived = context.moment.burst_time();
        if taken == Taken::Last {
            request.enter(RequestState::Dispatched);
        }
    }

    /// Sends a CR for a request for which this burst brought packets (rule S7).
    pub(crate) fn send_credit_return(
        &mut self,
        idx: RequestIdx,
        due: &CreditReturn,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.table.at(idx);
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
            if line.is_declared() {
                self.egress.on_sent(
                    bits.words() as usize * size_of::<u64>(),
                    &context.limits,
                    context.moment.now(),
                );
            }
            // Only the first CR carries the flags.
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
        // The packets may leave in a later iteration.
        context.look_for_backlog();
        let asking = Asking::new(id, first..after, flags, context.moment.burst_time());
        let asked = match packet.line.is_declared() {
            true => &mut self.limited,
            false => &mut self.asked,
        };
        if !asked.ask(packet.session, &asking, terms.credits) {
            context.stats.on_drop(DropReason::PacketNumber);
        }
        context.agenda.call_attention();
    }

    /// Sends packets that clients have asked for, session by session, up to the limit per
    /// iteration.
    pub(crate) fn send_asked(&mut self, sessions: &Sessions, context: &mut Context) {
        let mut sent = 0;
        while sent < ITERATION_BYTES && !self.asked.is_empty() {
            let bytes = send_first(&mut self.asked, &mut self.table, sessions, context);
            sent += bytes.unwrap_or(0).max(LEAST_CHARGE);
        }
        let next = self.send_limited(sessions, context);
        context.agenda.send_asked_at(next.unwrap_or(Nanos::MAX));
    }

    /// Sends such packets for the sessions whose path the transport describes
    /// (`Line::is_declared`), while the NIC has room. Returns when the NIC has room for the next
    /// packet; `None` if there is no packet.
    fn send_limited(&mut self, sessions: &Sessions, context: &mut Context) -> Option<Nanos> {
        let (mut sent, now) = (0, context.moment.now());
        loop {
            let any = !self.limited.is_empty();
            let next = self.egress.next(any, &context.limits, now)?;
            if next > now || sent >= ITERATION_BYTES {
                return Some(next);
            }
            let bytes = send_first(&mut self.limited, &mut self.table, sessions, context);
            if let Some(bytes) = bytes {
                self.egress.on_sent(bytes, &context.limits, now);
            }
            sent += bytes.unwrap_or(0).max(LEAST_CHARGE);
        }
    }

    /// Whether clients have asked for packets that may leave in the next iteration, except those
    /// for which the agenda has an entry.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }
}

/// Sends the first packet of `asked`; returns the length of its data. `None` if its response is
/// gone; then all its packets are dropped.
fn send_first(
    asked: &mut Asked,
    table: &mut Slab<RequestIdx, InboundRequest>,
    sessions: &Sessions,
    context: &mut Context,
) -> Option<usize> {
    let (session, id, part) = asked.first()?;
    let data_size = sessions.at(session).terms().data_size;
    let request = table
        .get_mut(id.index)
        .filter(|request| request.has_response(id, data_size));
    let Some(request) = request else {
        asked.on_gone();
        return None;
    };
    let (bytes, last) = request.send_part(&part, sessions, context);
    asked.on_sent(bytes.max(LEAST_CHARGE), last);
    Some(bytes)
}

impl InboundRequest {
    /// The number of packets of the response; `None` if the answer is an error.
    fn packets_of_response(&self, data_size: u32) -> Option<u32> {
        let response = self.response.as_ref();
        let response = response.filter(|_| !self.marks.has(Marks::FAILED))?;
        let size = u32::try_from(response.len()).unwrap_or(u32::MAX);
        Some(packets_of(size, data_size))
    }

    /// Whether this is the request with the handle `id`, and it still has its response.
    fn has_response(&self, id: RequestId, data_size: u32) -> bool {
        let is_it = self.generation == id.generation && self.req == id.req;
        is_it && self.state == RequestState::Done && self.packets_of_response(data_size).is_some()
    }

    /// Sends the next packet that was asked for. Returns the length of its data, and whether it is
    /// the last packet of the response.
    fn send_part(
        &mut self,
        part: &Asking,
        sessions: &Sessions,
        context: &mut Context,
    ) -> (usize, bool) {
        let Some(response) = &self.response else {
            return (0, false);
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
        let last = start + len >= response.len();
        let end = context.outbox.push(terms.peer, &answer, data);
        self.on_sent(end);
        if let Some(came) = part.measured_from() {
            let burst_time = context.moment.burst_time();
            context.outbox.measure(came, burst_time);
        }
        (len, last)
    }
}
