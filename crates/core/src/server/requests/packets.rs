//! Packets of clients: which of them start a handler, and how the server answers the others (rules
//! S2, S3, S4, S6, S9).

use dunlin_msgbuf::BufRef;
use dunlin_wire::{AckVector, ErrorCode, Flags, Header, PacketType, PktNum, ReqNum, Residence};

use super::{Marks, RequestState, Requests};
use crate::context::Context;
use crate::handle::RequestIdx;
use crate::observe::counters::DropReason;
use crate::server::inbound::{Effect, Received};
use crate::session::line::Line;
use crate::session::table::Sessions;

impl Requests {
    /// Handles a REQ of one packet; returns the request for which a handler must run (rule S2).
    ///
    /// # Errors
    /// The request is not new.
    #[inline(always)]
    pub(crate) fn on_request(
        &mut self,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Result<RequestIdx, Effect> {
        let expected = self.next_number(packet);
        #[cfg(feature = "mutants")]
        let expected = self.mutate_expected(packet, expected, context);
        if packet.header.req != expected {
            return Err(self.on_repeated(packet, sessions, context));
        }
        let idx = self.accept(packet, context).ok_or(Effect::None)?;
        context.stats.on_request_accepted();
        Ok(idx)
    }

    /// The next number of the slot that the packet is for.
    #[inline(always)]
    pub(super) fn next_number(&self, packet: &Received<'_>) -> ReqNum {
        self.last_at(packet.slot()).next(packet.line.window())
    }

    /// Makes the request the slot's current one.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        packet: &Received<'_>,
        context: &mut Context,
    ) -> Option<RequestIdx> {
        let (at, header) = (packet.slot(), packet.header);
        let answer = || packet.line.answer_template();
        // A correct client sends this only after it has received the last answer.
        let Some(idx) = self.next_at(at, packet.session, answer) else {
            context.stats.on_drop(DropReason::Busy);
            return None;
        };
        let request = self.at_mut(idx);
        let marks = Marks::NONE
            .with(Marks::CONGESTION, packet.congestion)
            .with(Marks::SAMPLE, header.flags.has(Flags::SAMPLE))
            .with(Marks::GENERAL, !context.config.bypasses.are_usual());
        request.begin(header.req, marks, context.moment.burst_time());
        request.req_type = header.req_type();
        let unfinished = !context.held.is_done(request.tx_end);
        #[cfg(feature = "mutants")]
        let unfinished =
            unfinished && context.config.mutant != Some(crate::mutant::Mutant::SkippedFlush);
        if unfinished {
            self.set_response_aside(idx, context);
        } else if let Some(response) = &mut request.response {
            response.revoke();
        }
        Some(idx)
    }

    /// Handles a request that starts no handler: a duplicate, or a number out of turn (rules S2,
    /// S3).
    #[cold]
    pub(super) fn on_repeated(
        &mut self,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Effect {
        let (at, req) = (packet.slot(), packet.header.req);
        let last = self.last_at(at);
        if req == last {
            return match self.request_at(at) {
                Some(idx) => self.answer_again(idx, sessions, context),
                None => answer_gone(packet.line, req, context),
            };
        }
        let reason = match req.is_before(last) {
            true => DropReason::Stale,
            false => DropReason::Future,
        };
        context.stats.on_drop(reason);
        Effect::None
    }

    /// Answers a duplicate or a probe of the slot's current request (rules S3, S5).
    #[inline(never)]
    fn answer_again(
        &mut self,
        idx: RequestIdx,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Effect {
        match self.at(idx).state {
            RequestState::Free => {}
            RequestState::Receiving => {
                return self.partial(idx).map_or(Effect::None, Effect::CreditDue);
            }
            RequestState::Dispatched | RequestState::Detached => {
                self.return_credit(idx, Flags::RETRANSMISSION, sessions, context);
            }
            RequestState::Done => {
                context.stats.on_response_resent();
                self.send_answer(idx, Flags::RETRANSMISSION, sessions, context);
            }
        }
        Effect::None
    }

    /// Handles an RFR: the client asks for the state of its accepted request (rule S5), or for
    /// packets of the response (rule S13).
    #[inline(never)]
    pub(crate) fn on_probe(
        &mut self,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Effect {
        let header = packet.header;
        if header.aux != 0
            && let Some(idx) = self.current(packet.slot(), header.req, RequestState::Done)
        {
            self.on_asked(idx, packet, sessions, context);
            return Effect::None;
        }
        self.on_repeated(packet, sessions, context)
    }

    /// Handles a CANCEL: the client no longer waits for the response (rule S6).
    #[inline(never)]
    pub(crate) fn on_cancel(
        &mut self,
        packet: &Received<'_>,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Effect {
        let (at, req) = (packet.slot(), packet.header.req);
        let last = self.last_at(at);
        if req == self.next_number(packet) {
            // The request has not come. Accepting its number now prevents it from running later.
            let quiet = Received {
                congestion: false,
                ..*packet
            };
            if let Some(idx) = self.accept(&quiet, context) {
                self.reject(idx, ErrorCode::CANCELLED, sessions, context);
            }
            return Effect::None;
        }
        match self.request_at(at).filter(|_| req == last) {
            Some(idx) => self.cancel(idx, sessions, context),
            None => self.on_repeated(packet, sessions, context),
        }
    }

    fn cancel(&mut self, idx: RequestIdx, sessions: &Sessions, context: &mut Context) -> Effect {
        let id = self.id(idx);
        let request = self.at_mut(idx);
        let is_news = !request.marks.has(Marks::CANCELLED);
        request.marks.set(Marks::CANCELLED);
        match request.state {
            RequestState::Receiving => {
                let given_up = self.given_up(idx);
                self.reject(idx, ErrorCode::CANCELLED, sessions, context);
                return given_up;
            }
            RequestState::Detached if is_news => context.tell_given_up(id),
            RequestState::Done => request.fail(ErrorCode::CANCELLED),
            _ => {}
        }
        self.answer_again(idx, sessions, context)
    }

    /// Notes that the client has these responses (rules S9, W10).
    #[inline(never)]
    pub(crate) fn on_acks(&mut self, line: &Line, acks: AckVector, context: &mut Context) {
        for req in acks.0 {
            let at = line.slot_at(req);
            if let Some(idx) = self.current(at, req, RequestState::Done) {
                self.free(idx, context);
            }
        }
    }

    /// Tells the client with a CR that its request has arrived and takes time.
    #[inline(never)]
    pub(super) fn return_credit(
        &mut self,
        idx: RequestIdx,
        flags: Flags,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.at_mut(idx);
        if request.marks.has(Marks::ORPHAN) {
            return;
        }
        let line = sessions.at(request.session);
        let mut header = line.header(PacketType::Cr, request.req);
        header.flags = match request.marks.has(Marks::CONGESTION) {
            true => flags.with(Flags::ECN_ECHO),
            false => flags,
        };
        // Otherwise the final answer would echo the mark again (rule S15).
        request.marks = request.marks.with(Marks::CONGESTION, false);
        // All packets have arrived.
        header.size = Header::arrivals(PktNum(request.packets()), 0);
        header.pkt = PktNum(request.packets() - 1);
        context.stats.on_credit_return();
        let peer = line.terms().peer;
        context.outbox.push(peer, &header, BufRef::EMPTY);
        let burst_time = context.moment.burst_time();
        context.outbox.measure(request.arrived, burst_time);
    }

    /// The number that a server with a planted bug expects as the slot's next.
    #[cfg(feature = "mutants")]
    fn mutate_expected(
        &self,
        packet: &Received<'_>,
        expected: ReqNum,
        context: &Context,
    ) -> ReqNum {
        use crate::mutant::Mutant;
        let (at, header) = (packet.slot(), packet.header);
        let (last, request) = (self.last_at(at), self.request_at(at));
        let duplicate = header.req == last;
        let gone = request.is_none();
        let finished = request.is_some_and(|idx| self.at(idx).state == RequestState::Done);
        let taken = match context.config.mutant {
            Some(Mutant::DuplicateCheckDropped) => duplicate && finished,
            Some(Mutant::RunAgainAfterHold) => {
                duplicate && gone && context.stats.counters().requests_received != 0
            }
            Some(Mutant::FutureAccepted) => last.is_before(header.req),
            _ => false,
        };
        if taken { header.req } else { expected }
    }
}

/// Answers with an error, because the server has discarded the response; the handler never runs
/// again (rule S3).
fn answer_gone(line: &Line, req: ReqNum, context: &mut Context) -> Effect {
    let mut answer = line.header(PacketType::Err, req);
    answer.flags = Flags::RETRANSMISSION;
    answer.aux = Residence::NO_SAMPLE.0;
    answer.size = ErrorCode::RESPONSE_GONE.0;
    let peer = line.terms().peer;
    context.outbox.push(peer, &answer, BufRef::EMPTY);
    Effect::None
}
