//! The client side of the protocol: issuing requests, and what their answers do (rules S1, S5,
//! S6, S7, S8, S10, S12).
//!
//! Called by `Cx` (call, cancel), by the loop for CR, RESP and ERR, and by `endpoint/scan.rs` when
//! time has passed. Nothing here calls user code: completions are returned or queued.

use dunlin_msgbuf::{BufRef, MsgBuf};
use dunlin_wire::{
    ACK_VECTOR_LEN, AckVector, ErrorCode, Flags, Header, PacketType, ReqNum, ReqType, Residence,
};

use crate::client::call::{Call, CallId, CallIdx, CallOptions, CallState, Done, Tag, put};
use crate::endpoint::proto::Proto;
use crate::error::{CallError, CallErrorKind, RpcError};
use crate::observe::counters::DropReason;
use crate::packet::receive::Data;
use crate::session::line::Line;
use crate::session::rtt::away_limit;
use crate::session::table::Session;
use crate::time::Nanos;
use crate::transport::TxSeq;

/// A call whose answer has come, and that nothing but its completion is left of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    session: Session,
    idx: CallIdx,
}

impl Proto {
    /// Takes a request. It is sent when the session has a slot and a credit for it.
    #[inline(always)]
    pub(crate) fn call(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        match self.plain_call(session, req_type, request, response, tag, options) {
            Ok(id) => Ok(id),
            Err([request, response]) => {
                self.call_otherwise(session, req_type, request, response, tag, options)
            }
        }
    }

    #[inline(never)]
    fn call_otherwise(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        let refuse = |kind, request, response| {
            Err(CallError {
                kind,
                request,
                response,
            })
        };
        let Some(line) = self.sessions.find_line(session) else {
            return refuse(CallErrorKind::NoSession, request, response);
        };
        let limit = line.terms().max_message;
        if request.len() > limit as usize {
            return refuse(CallErrorKind::TooLarge { limit }, request, response);
        }
        let direct = line.can_send() && !line.has_waiting();
        if !direct && self.calls.waiting(session.index()) >= self.config.backlog {
            return refuse(CallErrorKind::Overloaded, request, response);
        }
        let (idx, call) = self.calls.insert();
        call.session = session.index();
        call.req_type = req_type;
        call.tag = tag;
        put(&mut call.request, request);
        put(&mut call.response, response);
        call.deadline = options
            .deadline
            .map_or(Nanos::MAX, |span| self.moment.now() + span);
        let id = CallId::new(idx.0, call.generation);
        if direct {
            self.start(session.index(), idx);
        } else {
            self.enqueue(session.index(), idx);
        }
        Ok(id)
    }

    /// Gives the call a slot and a credit, and sends its request (rules S1, S7).
    #[inline]
    pub(crate) fn start(&mut self, session: u32, idx: CallIdx) {
        let (now, present) = (self.moment.now(), self.moment.present(self.moment.now()));
        let line = self.sessions.at_mut(session);
        let at = line.take_slot();
        let req = self.calls.occupy(at, idx);
        let call = self.calls.at_mut(idx);
        call.state = CallState::Sent;
        call.req = req;
        call.attempts = 0;
        call.sent = now;
        call.sample = line.ask_for_sample(now, self.pacer.sample_interval());
        let flags = match call.sample {
            true => Flags::SAMPLE,
            false => Flags::NONE,
        };
        call.first_sent = present;
        self.stats.on_request_sent();
        self.agenda.on_call(now, self.config.scan_interval);
        if line.is_paced() {
            return self.start_paced(session, idx, flags);
        }
        if call.sample && owes_acks(line, call, now) {
            return self.send_request_with_acks(session, idx, flags);
        }
        if let Some((header, request)) = request_packet(line, call, flags) {
            let terms = line.terms();
            if header.size > terms.data_size {
                return self.start_large(session, idx, header.size);
            }
            call.tx_end = self.outbox.push_message(terms.peer, &header, request);
            if call.sample || self.moment.is_between_iterations() {
                self.outbox.tell_when_sent(idx);
            }
        }
    }

    /// The same for a session that is held to a rate.
    #[cold]
    fn start_paced(&mut self, session: u32, idx: CallIdx, flags: Flags) {
        let call = self.calls.at_mut(idx);
        call.tx_end = TxSeq(0);
        let size = call.request.as_ref().map_or(0, message_size);
        if size > self.sessions.at(session).terms().data_size {
            self.start_large(session, idx, size);
        } else {
            self.pace_request(session, idx, flags);
        }
    }

    /// Sends a request of one packet, the first time or again, and notes when it leaves.
    pub(crate) fn send_request(&mut self, session: u32, idx: CallIdx, flags: Flags) {
        let line = self.sessions.at(session);
        let call = self.calls.at_mut(idx);
        if owes_acks(line, call, self.moment.now()) {
            return self.send_request_with_acks(session, idx, flags);
        }
        if let Some((header, request)) = request_packet(line, call, flags) {
            let end = self
                .outbox
                .push_message(line.terms().peer, &header, request);
            call.tx_end = call.tx_end.max(end);
            self.outbox.tell_when_sent(idx);
        }
    }

    /// Tells the server beside a request which responses have arrived (rules S9 and W10).
    #[cold]
    fn send_request_with_acks(&mut self, session: u32, idx: CallIdx, flags: Flags) {
        let acks = self.take_acks(session);
        let line = self.sessions.at(session);
        let call = self.calls.at_mut(idx);
        let flags = flags.with(Flags::ACK_VECTOR);
        if let Some((header, request)) = request_packet(line, call, flags) {
            let data = request.lend();
            call.tx_end = self.outbox.push(line.terms().peer, &header, data);
            self.outbox.tell_when_sent(idx);
            self.outbox.add_acks(acks);
        }
    }

    /// Four of the completed requests that the server may not know of.
    fn take_acks(&mut self, session: u32) -> AckVector {
        let line = self.sessions.at_mut(session);
        let (start, window) = (line.slots().start, line.terms().window);
        let slots = line.take_acks(self.moment.now());
        AckVector(slots.map(|slot| {
            let at = (start + slot) as usize;
            self.calls.req_at(at).previous(window)
        }))
    }

    /// The pending call that an answer with this request number is for.
    #[inline]
    fn answered_call(&mut self, session: u32, req: ReqNum) -> Option<CallIdx> {
        let at = self.sessions.at(session).slot_at(req);
        let idx = self.calls.in_slot(at, req);
        if idx.is_none() {
            self.stats.on_drop(DropReason::Unexpected);
        }
        idx
    }

    /// The request of the slot has been answered: slot and credit are free, and the slot steps to
    /// its next number (rules S1, S7).
    #[inline(always)]
    pub(crate) fn release_slot(&mut self, session: u32, req: ReqNum) {
        let line = self.sessions.at_mut(session);
        line.release_slot(req);
        let (at, window) = (line.slot_at(req), line.terms().window);
        let wakes = line.has_waiting();
        self.calls.vacate(at, window);
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::WrongWrap) {
            self.calls.stop_numbers(at, req, window);
        }
        if wakes {
            self.wake(session);
        }
    }

    /// RESP or ERR: the call is over. Returns it, for [`Self::finish`], unless the user has had its
    /// completion already or the transport still reads the request.
    #[inline(always)]
    pub(crate) fn on_answer(
        &mut self,
        session: u32,
        header: &Header,
        data: &[u8],
    ) -> Option<Answered> {
        let is_response = header.kind == PacketType::Resp;
        let line = self.sessions.at(session);
        let Some(idx) = self.calls.in_slot(line.slot_at(header.req), header.req) else {
            self.stats.on_drop(DropReason::Unexpected);
            return None;
        };
        if is_response && !line.is_single(header.size) {
            self.on_large_answer(session, header, Data::Here(data));
            return None;
        }
        if self.calls.at(idx).state.has_transfer() {
            return self.on_answer_amid(session, idx, header, data);
        }
        let handle = self.sessions.handle(session);
        self.release_slot(session, header.req);
        #[cfg(feature = "mutants")]
        if !is_response && self.shows(crate::mutant::Mutant::CreditLeaked) {
            self.sessions.at_mut(session).take_credit();
        }
        if header.aux != Residence::NO_SAMPLE.0 || header.flags.has(Flags::ECN_ECHO) {
            self.take_sample(session, idx, header);
        }
        let answered = Answered {
            session: handle,
            idx,
        };
        let call = self.calls.at_mut(idx);
        let unfinished = !self.outbox.is_done(call.tx_end);
        #[cfg(feature = "mutants")]
        let unfinished =
            unfinished && self.config.mutant != Some(crate::mutant::Mutant::ReleasedBeforeDone);
        match &mut call.request {
            Some(request) if !unfinished => request.revoke(),
            _ => {
                self.finish_later(answered, header, data);
                return None;
            }
        }
        self.stats.on_completion();
        self.note_answered(idx);
        Some(answered)
    }

    /// A call that its user waits for was answered: how long that took.
    #[inline(always)]
    pub(crate) fn note_answered(&mut self, idx: CallIdx) {
        let took = self
            .moment
            .present(self.moment.burst_time())
            .since(self.calls.at(idx).first_sent);
        #[cfg(feature = "mutants")]
        let took = took + Nanos(self.shows(crate::mutant::Mutant::MeasuredLonger).into());
        self.stats.on_answered(took);
    }

    /// An answer of one packet while packets of a large message are on their way: the request was
    /// large, or the request failed. A response that has begun as a large one cannot become small.
    #[cold]
    fn on_answer_amid(
        &mut self,
        session: u32,
        idx: CallIdx,
        header: &Header,
        data: &[u8],
    ) -> Option<Answered> {
        let is_response = header.kind == PacketType::Resp;
        if is_response && self.calls.at(idx).state == CallState::Receiving {
            self.stats.on_drop(DropReason::Size);
            return None;
        }
        self.end_transfer(session, idx);
        self.on_answer(session, header, data)
    }

    /// Ends an answered call that has no completion now.
    #[cold]
    fn finish_later(&mut self, answered: Answered, header: &Header, data: &[u8]) {
        let call = self.calls.at(answered.idx);
        if call.request.is_none() {
            // A zombie: the user has been told.
            return self.calls.remove(answered.idx);
        }
        let tx_end = call.tx_end;
        self.note_answered(answered.idx);
        let done = self.finish(answered, header, data);
        self.end(done, tx_end);
    }

    /// The completion of an answered call, whose slot is free again already.
    #[inline(always)]
    pub(crate) fn finish(&mut self, answered: Answered, header: &Header, data: &[u8]) -> Done {
        let call = self.calls.at_mut(answered.idx);
        let taken = "a call that is not a zombie has its msgbufs";
        let (session, tag) = (answered.session, call.tag);
        let request = call.request.take().expect(taken);
        let mut response = call.response.take().expect(taken);
        self.calls.remove(answered.idx);
        let is_response = header.kind == PacketType::Resp;
        // The success has a way of its own: a result that is chosen first and then moved is read
        // in one piece right after it was written in two, which stalls.
        if is_response && response.fill(data).is_ok() {
            return Done {
                session,
                tag,
                result: Ok(()),
                request,
                response,
            };
        }
        let error = match is_response {
            true => RpcError::ResponseTooLarge {
                size: u32::try_from(data.len()).unwrap_or(u32::MAX),
            },
            false => RpcError::Rejected(ErrorCode(header.size)),
        };
        Done {
            session,
            tag,
            result: Err(error),
            request,
            response,
        }
    }

    /// Takes what an answer says of time: how long the request stayed, and with it the round trip,
    /// if that was asked for and can be trusted (rule S10).
    #[inline(never)]
    pub(crate) fn take_sample(&mut self, session: u32, idx: CallIdx, header: &Header) {
        let line = self.sessions.at_mut(session);
        let call = self.calls.at(idx);
        let mut sample = None;
        if !header.flags.has(Flags::RETRANSMISSION)
            && let Some(residence_ns) = header.residence().to_nanos()
        {
            line.rtt_mut().on_residence(residence_ns);
            let rtt = self
                .moment
                .burst_time()
                .since(call.sent)
                .since(Nanos(residence_ns));
            if !call.sample {
                // It left at an uncertain time, or more than once.
            } else if self.moment.away() <= away_limit(rtt) {
                line.rtt_mut().on_sample(rtt);
                self.stats.on_rtt(rtt);
                sample = Some(rtt);
            } else {
                self.stats.on_rtt_away();
            }
        }
        if sample.is_some() || header.flags.has(Flags::ECN_ECHO) {
            self.learn(session, sample, 1, header.flags.has(Flags::ECN_ECHO));
        }
    }

    /// CR: the server has the request and will answer in its own time (rule S5).
    #[inline(never)]
    pub(crate) fn on_credit_return(&mut self, session: u32, header: &Header, bytes: &[u8]) {
        let Some(idx) = self.answered_call(session, header.req) else {
            return;
        };
        if self.calls.at(idx).state == CallState::Sending {
            return self.on_arrivals(session, idx, header, Self::bitmap_of(header, bytes));
        }
        if self.calls.at(idx).state == CallState::Sent {
            // It has one packet: what speaks of others comes from the future (rule W7).
            if header.pkt.0 != 0 || header.cumulative().0 > 1 {
                self.stats.on_drop(DropReason::PacketNumber);
                return;
            }
            self.take_sample(session, idx, header);
            let call = self.calls.at_mut(idx);
            call.state = CallState::Accepted;
            call.attempts = 0;
            call.sent = self.moment.now();
        }
        // What comes later measures the handler, not the network.
        self.calls.at_mut(idx).sample = false;
    }

    /// Sends the request again after a timeout (rule S8).
    pub(crate) fn retransmit(&mut self, idx: CallIdx) {
        let call = self.calls.at_mut(idx);
        let session = call.session;
        call.attempts = call.attempts.saturating_add(1);
        call.sample = false;
        self.stats.on_retransmission(1);
        self.expect_word(session);
        self.learn_timeout(session);
        let flags = Flags::RETRANSMISSION;
        #[cfg(feature = "mutants")]
        let flags = match self.shows(crate::mutant::Mutant::OtherByte) {
            true => Flags::NONE,
            false => flags,
        };
        match self.sessions.at(session).is_paced() {
            true => self.pace_request(session, idx, flags),
            false => self.send_request(session, idx, flags),
        }
    }

    /// Asks for the first response packet of an accepted request (rule S5).
    pub(crate) fn probe(&mut self, idx: CallIdx) {
        self.stats.on_probe();
        self.send_bare(idx, PacketType::Rfr);
    }

    /// Tells the server that nobody waits any more (rule S6).
    pub(crate) fn send_cancel(&mut self, idx: CallIdx) {
        self.stats.on_cancel();
        self.send_bare(idx, PacketType::Cancel);
    }

    /// Something is sent because nothing came: from now on the session notes what comes (rule S11).
    pub(crate) fn expect_word(&mut self, session: u32) {
        let present = self.moment.present(self.moment.now());
        self.sessions.at_mut(session).on_asked(present);
    }

    fn send_bare(&mut self, idx: CallIdx, kind: PacketType) {
        let call = self.calls.at_mut(idx);
        call.attempts = call.attempts.saturating_add(1);
        let (session, req) = (call.session, call.req);
        self.expect_word(session);
        let line = self.sessions.at(session);
        let header = line.header(kind, req);
        let peer = line.terms().peer;
        self.outbox.push(peer, &header, BufRef::EMPTY);
        self.outbox.tell_when_sent(idx);
    }
}

/// The server should know which responses have arrived, and the request leaves room for that in a
/// packet.
#[inline]
fn owes_acks(line: &Line, call: &Call, now: Nanos) -> bool {
    line.owes_acks(now) && {
        let len = call.request.as_ref().map_or(0, MsgBuf::len);
        len + ACK_VECTOR_LEN <= line.terms().data_size as usize
    }
}

/// Header and message of a call's request; `None` if the call has no request any more.
#[inline]
fn request_packet<'a>(line: &Line, call: &'a Call, flags: Flags) -> Option<(Header, &'a MsgBuf)> {
    let request = call.request.as_ref()?;
    let header = Header {
        flags,
        aux: call.req_type.0,
        size: message_size(request),
        ..line.header(PacketType::Req, call.req)
    };
    Some((header, request))
}

/// Bytes of a message whose length was checked against the session's limit.
#[inline]
fn message_size(message: &MsgBuf) -> u32 {
    u32::try_from(message.len()).unwrap_or(u32::MAX)
}
