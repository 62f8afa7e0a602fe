//! The server side of the protocol: which packets start a handler, and what is answered to those
//! that do not (rules S2, S3, S4, S6, S9).
//!
//! Called by the loop for REQ, RFR and CANCEL, by requests and held handles for their answers,
//! and by `endpoint/scan.rs` when time has passed. Nothing here calls user code.

use dunlin_msgbuf::BufRef;
use dunlin_wire::{AckVector, ErrorCode, Flags, Header, PacketType, PktNum, Residence};

use crate::endpoint::proto::Proto;
use crate::observe::counters::DropReason;
use crate::packet::receive::{Data, Packet};
use crate::server::work::{Begun, Marks, WorkId, WorkIdx, WorkState};
use crate::transport::TxSeq;

impl Proto {
    /// REQ: returns the work to run a handler for, if the request is new (rule S2).
    #[inline(always)]
    pub(crate) fn on_request(
        &mut self,
        session: u32,
        packet: &Packet<'_>,
        congestion: bool,
    ) -> Option<WorkIdx> {
        let header = &packet.header;
        let line = self.sessions.at(session);
        let at = line.slot_at(header.req);
        if !line.is_single(header.size) {
            self.on_large_request(session, header, Data::Here(packet.data), congestion);
            return None;
        }
        let expected = self.works.last_at(at).next(line.terms().window);
        #[cfg(feature = "mutants")]
        let expected = self.mutate_expected(at, expected, header);
        if header.req != expected {
            self.on_repeated(session, at, header);
            return None;
        }
        let idx = self.accept_number(session, at, header, congestion)?;
        self.stats.on_request_accepted();
        Some(idx)
    }

    /// Makes the request the slot's current one, with work of its own.
    #[inline(always)]
    pub(crate) fn accept_number(
        &mut self,
        session: u32,
        at: usize,
        header: &Header,
        congestion: bool,
    ) -> Option<WorkIdx> {
        let line = self.sessions.at(session);
        let answer = || line.answer_template();
        // A client that keeps the protocol does not send this before it has an answer.
        let Some(idx) = self.works.begin(at, header.req, answer) else {
            self.stats.on_drop(DropReason::Busy);
            return None;
        };
        let work = self.works.at_mut(idx);
        work.begin(&Begun {
            session,
            req: header.req,
            req_type: header.req_type(),
            marks: Marks::NONE
                .with(Marks::CONGESTION, congestion)
                .with(Marks::SAMPLE, header.flags.has(Flags::SAMPLE)),
            arrived: self.moment.burst_time(),
        });
        let unfinished = !self.outbox.is_done(work.tx_end);
        #[cfg(feature = "mutants")]
        let unfinished =
            unfinished && self.config.mutant != Some(crate::mutant::Mutant::SkippedFlush);
        if unfinished {
            self.replace_response(idx);
        } else if let Some(response) = &mut work.response {
            response.revoke();
        }
        Some(idx)
    }

    /// Sets the old response aside, because the transport still reads it.
    #[cold]
    #[inline(never)]
    fn replace_response(&mut self, idx: WorkIdx) {
        let work = self.works.at_mut(idx);
        let tx_end = std::mem::take(&mut work.tx_end);
        if let Some(response) = work.response.take() {
            self.recycle_sent(response, tx_end);
        }
    }

    /// A request that does not start anything: a duplicate, or not of this time (rules S2, S3).
    #[cold]
    pub(crate) fn on_repeated(&mut self, session: u32, at: usize, header: &Header) {
        let last = self.works.last_at(at);
        if header.req == last {
            self.answer_again(session, self.works.work_at(at), header);
        } else if header.req.is_before(last) {
            self.stats.on_drop(DropReason::Stale);
        } else {
            self.stats.on_drop(DropReason::Future);
        }
    }

    /// Answers a duplicate or a probe of the slot's current request (rules S3, S5).
    #[inline(never)]
    fn answer_again(&mut self, session: u32, work: Option<WorkIdx>, header: &Header) {
        let Some(idx) = work else {
            return self.answer_gone(session, header);
        };
        match self.works.at(idx).state {
            WorkState::Free => {}
            WorkState::Receiving => self.owe(idx),
            WorkState::Dispatched | WorkState::Detached => {
                self.return_credit(idx, Flags::RETRANSMISSION);
            }
            WorkState::Done => {
                self.stats.on_response_resent();
                self.send_answer(idx, Flags::RETRANSMISSION);
            }
        }
    }

    /// The response was given back: an error, never a second run (rule S3).
    fn answer_gone(&mut self, session: u32, header: &Header) {
        let line = self.sessions.at(session);
        let mut answer = line.header(PacketType::Err, header.req);
        answer.flags = Flags::RETRANSMISSION;
        answer.aux = Residence::NO_SAMPLE.0;
        answer.size = ErrorCode::RESPONSE_GONE.0;
        let peer = line.terms().peer;
        self.outbox.push(peer, &answer, BufRef::EMPTY);
    }

    /// RFR: the client asks how its accepted request is doing (rule S5), or for packets of the
    /// response (rule S13).
    #[inline(never)]
    pub(crate) fn on_probe(&mut self, session: u32, header: &Header, congestion: bool) {
        let at = self.sessions.at(session).slot_at(header.req);
        if header.aux != 0
            && let Some(idx) = self.works.current(at, header.req, WorkState::Done)
        {
            return self.send_asked(session, idx, header, congestion);
        }
        self.on_repeated(session, at, header);
    }

    /// CANCEL: nobody waits for the response any more (rule S6).
    #[inline(never)]
    pub(crate) fn on_cancel(&mut self, session: u32, header: &Header) {
        let line = self.sessions.at(session);
        let at = line.slot_at(header.req);
        let last = self.works.last_at(at);
        if header.req == last.next(line.terms().window) {
            // The request never came. Its number is used up, so that it cannot run later.
            if let Some(idx) = self.accept_number(session, at, header, false) {
                self.reject(idx, ErrorCode::CANCELLED);
            }
            return;
        }
        let Some(idx) = self.works.work_at(at).filter(|_| header.req == last) else {
            return self.on_repeated(session, at, header);
        };
        self.give_up(idx);
        let work = self.works.at_mut(idx);
        let is_news = !work.marks.any_of(Marks::CANCELLED);
        work.marks.set(Marks::CANCELLED, true);
        if is_news && work.state == WorkState::Detached {
            self.tell_given_up(idx);
        }
        let work = self.works.at_mut(idx);
        if work.state == WorkState::Receiving {
            return self.reject(idx, ErrorCode::CANCELLED);
        }
        if work.state == WorkState::Done {
            work.error = Some(ErrorCode::CANCELLED);
        }
        self.answer_again(session, Some(idx), header);
    }

    /// The client has these responses (rules S9, W10).
    #[inline(never)]
    pub(crate) fn on_acks(&mut self, session: u32, acks: AckVector) {
        for req in acks.0 {
            let at = self.sessions.at(session).slot_at(req);
            if let Some(idx) = self.works.current(at, req, WorkState::Done) {
                self.free_work(idx);
            }
        }
    }

    /// Answers with a response of `len` bytes that `write` fills.
    #[inline(always)]
    pub(crate) fn reply(&mut self, idx: WorkIdx, len: usize, write: impl FnOnce(&mut [u8])) {
        if let Err(write) = self.plain_reply(idx, len, write) {
            self.reply_otherwise(idx, len, write);
        }
    }

    #[inline(never)]
    fn reply_otherwise(&mut self, idx: WorkIdx, len: usize, write: impl FnOnce(&mut [u8])) {
        let work = self.works.at_mut(idx);
        if work.is_unwanted() {
            return self.reply_to_nobody(idx);
        }
        let terms = self.sessions.at(work.session).terms();
        if len > terms.max_message as usize {
            return self.reject(idx, ErrorCode::RESPONSE_TOO_LARGE);
        }
        let fits = match &mut work.response {
            Some(response) => response.resize(len).is_ok(),
            None => false,
        };
        if !fits && !self.grow_response(idx, len) {
            return self.reject(idx, ErrorCode::OVERLOADED);
        }
        let work = self.works.at_mut(idx);
        if let Some(response) = &mut work.response {
            write(response.data_mut());
        }
        work.state = WorkState::Done;
        work.answered = self.moment.now();
        self.expect_sweep();
        self.send_answer(idx, Flags::NONE);
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::SpareBuffer)
            && let Ok(spare) = self.pool.alloc(len)
        {
            self.recycle_sent(spare, self.works.at(idx).tx_end);
        }
    }

    /// A response that nobody waits for.
    #[cold]
    #[inline(never)]
    fn reply_to_nobody(&mut self, idx: WorkIdx) {
        if self.works.at(idx).marks.any_of(Marks::ORPHAN) {
            self.free_orphan(idx);
        } else {
            self.reject(idx, ErrorCode::CANCELLED);
        }
    }

    /// Gets a response buffer of `len` bytes for the work. False if there is no memory.
    #[cold]
    #[inline(never)]
    fn grow_response(&mut self, idx: WorkIdx, len: usize) -> bool {
        let Ok(response) = self.pool.alloc(len) else {
            return false;
        };
        if let Some(old) = self.works.at_mut(idx).response.replace(response) {
            self.pool.recycle(old);
        }
        true
    }

    /// Answers with an error.
    #[inline(never)]
    pub(crate) fn reject(&mut self, idx: WorkIdx, code: ErrorCode) {
        let work = self.works.at_mut(idx);
        if work.marks.any_of(Marks::ORPHAN) {
            return self.free_orphan(idx);
        }
        work.error = Some(code);
        work.state = WorkState::Done;
        work.answered = self.moment.now();
        self.expect_sweep();
        self.send_answer(idx, Flags::NONE);
    }

    /// Takes over a response that a worker thread has written.
    pub(crate) fn reply_with(&mut self, idx: WorkIdx, response: dunlin_msgbuf::MsgBuf) {
        let work = self.works.at_mut(idx);
        let old = work.response.replace(response);
        let len = work.response.as_ref().map_or(0, dunlin_msgbuf::MsgBuf::len);
        if let Some(old) = old {
            self.pool.recycle(old);
        }
        self.reply(idx, len, |_| {});
    }

    /// Queues the answer of finished work.
    #[inline]
    pub(crate) fn send_answer(&mut self, idx: WorkIdx, flags: Flags) {
        let work = self.works.at_mut(idx);
        let line = self.sessions.at(work.session);
        let terms = line.terms();
        let mut header = line.header(PacketType::Resp, work.req);
        header.flags = if work.marks.any_of(Marks::CONGESTION) {
            flags.with(Flags::ECN_ECHO)
        } else {
            flags
        };
        // What took longer than an iteration says so in any case, for the client's patience.
        header.aux = Residence::NO_SAMPLE.0;
        let end = match (work.error, &work.response) {
            (None, Some(response)) => {
                header.size = u32::try_from(response.len()).unwrap_or(u32::MAX);
                if header.size > terms.data_size {
                    // The client asks for the others.
                    let first = response.lend_range(0, terms.data_size as usize);
                    let first = first.unwrap_or(BufRef::EMPTY);
                    self.outbox.push(terms.peer, &header, first)
                } else {
                    self.outbox.push_message(terms.peer, &header, response)
                }
            }
            (error, _) => {
                header.kind = PacketType::Err;
                header.size = error.unwrap_or(ErrorCode::HANDLER_FAILED).0;
                self.outbox.push(terms.peer, &header, BufRef::EMPTY)
            }
        };
        // A response that was lent once stays as long as it is, and is lent again.
        debug_assert!(end >= work.tx_end || self.outbox.is_done(work.tx_end));
        work.tx_end = end;
        if work.marks.any_of(Marks::SAMPLE) || work.arrived != self.moment.burst_time() {
            self.outbox.measure(work.arrived, self.moment.burst_time());
        }
    }

    /// Tells the client that its request is here and takes its time.
    #[inline(never)]
    fn return_credit(&mut self, idx: WorkIdx, flags: Flags) {
        let work = self.works.at(idx);
        if work.marks.any_of(Marks::ORPHAN) {
            return;
        }
        let (session, arrived) = (work.session, work.arrived);
        let line = self.sessions.at(session);
        let mut header = line.header(PacketType::Cr, work.req);
        header.flags = if work.marks.any_of(Marks::CONGESTION) {
            flags.with(Flags::ECN_ECHO)
        } else {
            flags
        };
        // All packets have arrived.
        header.size = Header::arrivals(PktNum(work.packets), 0);
        header.pkt = PktNum(work.packets - 1);
        self.stats.on_credit_return();
        let peer = line.terms().peer;
        self.outbox.push(peer, &header, BufRef::EMPTY);
        self.outbox.measure(arrived, self.moment.burst_time());
    }

    /// Tells the client before a slow dispatch handler starts, because nothing can be sent while
    /// it runs (rule S4).
    pub(crate) fn announce_slow(&mut self, idx: WorkIdx) {
        // The client must learn how long it takes, whether it asked or not.
        self.works.at_mut(idx).marks.set(Marks::SAMPLE, true);
        self.return_credit(idx, Flags::NONE);
    }

    /// Lets the request outlive its handler, if that has answered neither way yet.
    #[inline]
    pub(crate) fn detach(&mut self, idx: WorkIdx) -> WorkId {
        if self.works.at(idx).state == WorkState::Dispatched {
            self.detach_unanswered(idx);
        }
        self.works.id(idx)
    }

    #[inline(never)]
    fn detach_unanswered(&mut self, idx: WorkIdx) {
        let work = self.works.at_mut(idx);
        work.state = WorkState::Detached;
        if work.marks.any_of(Marks::ORPHAN) {
            // The handler itself has closed the session.
            self.tell_given_up(idx);
        }
        let at = self.moment.now() + self.config.ack_delay;
        #[cfg(feature = "mutants")]
        let at = at + crate::time::Nanos(self.shows(crate::mutant::Mutant::OneLater).into());
        self.agenda.acknowledge_at(at, self.works.id(idx));
    }

    /// Acknowledges detached work that is due (rule S4).
    pub(crate) fn acknowledge_due(&mut self) {
        while let Some(id) = self.agenda.pop_acknowledgement(self.moment.now()) {
            if let Some(idx) = self.works.find(id) {
                self.return_credit(idx, Flags::NONE);
            }
        }
    }

    /// A dispatch handler has returned. Work that it left unanswered fails.
    #[inline]
    pub(crate) fn after_handler(&mut self, idx: WorkIdx) {
        if self.works.at(idx).state == WorkState::Dispatched {
            self.stats.on_unanswered();
            self.reject(idx, ErrorCode::HANDLER_FAILED);
        }
    }

    /// Gives finished work and its response back; the slot keeps its number.
    #[inline(never)]
    pub(crate) fn free_work(&mut self, idx: WorkIdx) {
        let work = self.works.at_mut(idx);
        let (session, req, tx_end) = (work.session, work.req, work.tx_end);
        if let Some(response) = work.response.take() {
            self.recycle_sent(response, tx_end);
        }
        self.works.at_mut(idx).tx_end = TxSeq(0);
        self.works.remove(idx);
        self.works.vacate(self.sessions.at(session).slot_at(req));
    }

    fn free_orphan(&mut self, idx: WorkIdx) {
        let work = self.works.at_mut(idx);
        work.marks.set(Marks::ORPHAN, false);
        let tx_end = std::mem::take(&mut work.tx_end);
        if let Some(response) = work.response.take() {
            self.recycle_sent(response, tx_end);
        }
        self.works.remove(idx);
    }

    /// The session closes: finished work goes, running work becomes an orphan.
    pub(crate) fn orphan_works(&mut self, session: u32) {
        for at in self.sessions.at(session).slots() {
            let at = at as usize;
            let Some(idx) = self.works.work_at(at) else {
                continue;
            };
            self.give_up(idx);
            if matches!(
                self.works.at(idx).state,
                WorkState::Done | WorkState::Receiving
            ) {
                self.free_work(idx);
            } else {
                let work = self.works.at_mut(idx);
                work.marks.set(Marks::ORPHAN, true);
                if work.state == WorkState::Detached && !work.marks.any_of(Marks::CANCELLED) {
                    self.tell_given_up(idx);
                }
                self.works.vacate(at);
            }
        }
    }

    /// What a server with a planted bug takes for the slot's next number.
    #[cfg(feature = "mutants")]
    fn mutate_expected(
        &self,
        at: usize,
        expected: dunlin_wire::ReqNum,
        header: &Header,
    ) -> dunlin_wire::ReqNum {
        use crate::mutant::Mutant;
        let (last, work) = (self.works.last_at(at), self.works.work_at(at));
        let duplicate = header.req == last;
        let gone = work.is_none();
        let finished = work.is_some_and(|idx| self.works.at(idx).state == WorkState::Done);
        let taken = match self.config.mutant {
            Some(Mutant::DuplicateCheckDropped) => duplicate && finished,
            Some(Mutant::RunAgainAfterHold) => {
                duplicate && gone && self.stats.counters().requests_received != 0
            }
            Some(Mutant::FutureAccepted) => last.is_before(header.req),
            _ => false,
        };
        if taken { header.req } else { expected }
    }
}
