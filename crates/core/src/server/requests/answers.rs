//! Answers: replies of handlers, in their iteration and later, errors, and repeated answers (rules
//! S3, S4).

use dunlin_msgbuf::{BufRef, MsgBuf};
use dunlin_wire::{ErrorCode, Flags, PacketType, Residence};

use super::{LyingApart, Marks, RequestState, Requests};
use crate::context::Context;
use crate::handle::{RequestId, RequestIdx};
use crate::session::table::Sessions;

/// Replies and errors.
impl Requests {
    /// Answers with a response of `len` bytes that `write` fills. For requests for which
    /// [`Self::reply_plain`] has failed, or that outlive their handlers. If the request was already
    /// answered, the first answer stays.
    #[inline(never)]
    pub(in crate::server) fn reply_otherwise(
        &mut self,
        idx: RequestIdx,
        len: usize,
        write: impl FnOnce(&mut [u8]),
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.at_mut(idx);
        if !request.state.is_open() {
            return;
        }
        if request.is_unwanted() {
            return self.reject(idx, ErrorCode::CANCELLED, sessions, context);
        }
        let terms = sessions.at(request.session).terms();
        if len > terms.max_message as usize {
            return self.reject(idx, ErrorCode::RESPONSE_TOO_LARGE, sessions, context);
        }
        let fits = match &mut request.response {
            Some(response) => response.resize(len).is_ok(),
            None => false,
        };
        if !fits && !self.grow_response(idx, len, context) {
            return self.reject(idx, ErrorCode::NO_RESPONSE_MEMORY, sessions, context);
        }
        let request = self.at_mut(idx);
        if let Some(response) = &mut request.response {
            write(response.data_mut());
        }
        self.on_answered(idx, context);
        self.send_answer(idx, Flags::NONE, sessions, context);
        #[cfg(feature = "mutants")]
        if context.shows(crate::mutant::Mutant::SpareBuffer)
            && let Ok(spare) = context.pool.alloc(len)
        {
            context.recycle_sent(spare, self.at(idx).tx_end);
        }
    }

    /// Gets a response buffer of `len` bytes for the request. False if there is no memory.
    #[cold]
    #[inline(never)]
    fn grow_response(&mut self, idx: RequestIdx, len: usize, context: &mut Context) -> bool {
        let Ok(response) = context.pool.alloc(len) else {
            return false;
        };
        if let Some(old) = self.at_mut(idx).response.replace(response) {
            context.pool.recycle(old);
        }
        true
    }

    /// Answers with a response that a worker thread or a batch handler has written.
    #[inline(always)]
    pub(crate) fn reply_with(
        &mut self,
        idx: RequestIdx,
        response: MsgBuf,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.at_mut(idx);
        if !request.state.is_open() {
            return context.pool.recycle(response);
        }
        let len = response.len();
        if let Some(old) = request.response.replace(response) {
            context.pool.recycle(old);
        }
        if let Err(write) = self.reply_plain(idx, len, |_| {}, context) {
            self.reply_otherwise(idx, len, write, sessions, context);
        }
    }

    /// Notes that the handler of this request will run. The request lies in a msgbuf of its own,
    /// which may become the answer.
    pub(crate) fn begin_apart(&mut self, request: RequestIdx) {
        self.lying_apart = Some(LyingApart {
            request,
            is_echoed: false,
        });
    }

    /// Makes the msgbuf in which this request lies its answer, once its handler has returned. False
    /// if the request has no msgbuf of its own.
    pub(crate) fn echo_apart(&mut self, request: RequestIdx) -> bool {
        let running = self.lying_apart.as_mut();
        match running.filter(|running| running.request == request) {
            Some(running) => {
                running.is_echoed = true;
                true
            }
            None => false,
        }
    }

    /// Notes that the handler has returned. Returns whether it has answered with the request's
    /// msgbuf.
    pub(crate) fn end_apart(&mut self) -> bool {
        let running = self.lying_apart.take();
        running.is_some_and(|running| running.is_echoed)
    }

    /// Answers with an error. If the request was answered before, the first answer stays.
    #[inline(never)]
    pub(crate) fn reject(
        &mut self,
        idx: RequestIdx,
        code: ErrorCode,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.at_mut(idx);
        if request.state.is_over() {
            return;
        }
        if request.marks.has(Marks::ORPHAN) {
            return self.free_orphan(idx, context);
        }
        request.fail(code);
        self.on_answered(idx, context);
        self.send_answer(idx, Flags::NONE, sessions, context);
    }

    fn on_answered(&mut self, idx: RequestIdx, context: &mut Context) {
        context.agenda.on_answered(self.id(idx));
        let request = self.at_mut(idx);
        request.enter(RequestState::Done);
        if request.arrived != context.moment.burst_time() {
            request.answered = context.moment.now();
        }
        self.expect_sweep(context);
    }

    /// Queues the answer of a finished request.
    #[inline]
    pub(super) fn send_answer(
        &mut self,
        idx: RequestIdx,
        flags: Flags,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        let request = self.table.at_mut(idx);
        let line = sessions.at(request.session);
        let terms = line.terms();
        let mut header = line.header(PacketType::Resp, request.req);
        header.flags = match request.marks.has(Marks::CONGESTION) {
            true => flags.with(Flags::ECN_ECHO),
            false => flags,
        };
        header.aux = Residence::NO_SAMPLE.0;
        let outbox = &mut context.outbox;
        let end = match (request.error(), &request.response) {
            (None, Some(response)) => {
                header.size = u32::try_from(response.len()).unwrap_or(u32::MAX);
                if header.size > terms.data_size {
                    // The server sends the first packet; the client asks for the others.
                    let first = response.lend_range(0, terms.data_size as usize);
                    if line.is_declared() {
                        let (len, now) = (terms.data_size as usize, context.moment.now());
                        self.egress.on_sent(len, &context.limits, now);
                    }
                    outbox.push(terms.peer, &header, first.unwrap_or(BufRef::EMPTY))
                } else {
                    outbox.push_message(terms.peer, &header, response)
                }
            }
            (error, _) => {
                header.kind = PacketType::Err;
                header.size = error.unwrap_or(ErrorCode::HANDLER_FAILED).0;
                outbox.push(terms.peer, &header, BufRef::EMPTY)
            }
        };
        // The lane may have copied a response that is lent this time.
        request.on_sent(end);
        let burst_time = context.moment.burst_time();
        // An answer in a later iteration than its request always states its residence, so that the
        // client waits long enough for the next answer.
        if request.marks.has(Marks::SAMPLE) || request.arrived != burst_time {
            outbox.measure(request.arrived, burst_time);
        }
    }
}

/// Handlers.
impl Requests {
    /// Informs the client before a slow dispatch handler starts, because no packet can leave while
    /// it runs (rule S4).
    pub(crate) fn announce_slow(
        &mut self,
        idx: RequestIdx,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        // The client must learn how long the handler takes, even if the request did not ask.
        self.at_mut(idx).marks.set(Marks::SAMPLE);
        self.return_credit(idx, Flags::NONE, sessions, context);
    }

    /// Lets the request outlive its handler, if the handler has not answered yet.
    #[inline]
    pub(crate) fn detach(&mut self, idx: RequestIdx, context: &mut Context) -> RequestId {
        if self.at(idx).state == RequestState::Dispatched {
            self.detach_unanswered(idx, context);
        }
        self.id(idx)
    }

    #[inline(never)]
    fn detach_unanswered(&mut self, idx: RequestIdx, context: &mut Context) {
        let id = self.id(idx);
        let request = self.at_mut(idx);
        request.enter(RequestState::Detached);
        if request.marks.has(Marks::ORPHAN) {
            // The handler itself has closed the session.
            context.tell_given_up(id);
        }
        let at = context.moment.now() + context.config.ack_delay;
        #[cfg(feature = "mutants")]
        let at = at + crate::time::Nanos(context.shows(crate::mutant::Mutant::OneLater).into());
        context.agenda.acknowledge_at(at, id);
    }

    /// Acknowledges detached requests that are due (rule S4).
    pub(crate) fn acknowledge_due(&mut self, sessions: &Sessions, context: &mut Context) {
        while let Some(id) = context.agenda.pop_acknowledgement(context.moment.now()) {
            if let Some(idx) = self.find(id) {
                self.return_credit(idx, Flags::NONE, sessions, context);
            }
        }
    }

    /// Handles the return of a dispatch handler: a request that it left unanswered fails.
    #[inline]
    pub(crate) fn after_handler(
        &mut self,
        idx: RequestIdx,
        sessions: &Sessions,
        context: &mut Context,
    ) {
        if self.at(idx).state == RequestState::Dispatched {
            context.stats.on_unanswered();
            self.reject(idx, ErrorCode::HANDLER_FAILED, sessions, context);
        }
    }

    /// Takes the request's response buffer, with room for `capacity` bytes, for a handler that has
    /// no access to the pool.
    #[inline(always)]
    pub(crate) fn take_response(
        &mut self,
        idx: RequestIdx,
        capacity: usize,
        context: &mut Context,
    ) -> Option<MsgBuf> {
        let response = &mut self.at_mut(idx).response;
        match response {
            Some(enough) if enough.capacity() >= capacity => response.take(),
            _ => self.take_larger(idx, capacity, context),
        }
    }

    /// Gets another response buffer, because the request has none, or a smaller one.
    #[cold]
    #[inline(never)]
    fn take_larger(
        &mut self,
        idx: RequestIdx,
        capacity: usize,
        context: &mut Context,
    ) -> Option<MsgBuf> {
        if let Some(small) = self.at_mut(idx).response.take() {
            context.pool.recycle(small);
        }
        context.pool.alloc(capacity).ok()
    }

    /// Puts an unused response buffer back for the slot's next request. If the handler kept the
    /// request, the request may have been answered meanwhile. Then the request has another buffer,
    /// which the transport may be reading, or is gone.
    pub(crate) fn keep_response(&mut self, idx: RequestIdx, unused: MsgBuf, context: &mut Context) {
        let request = self.at_mut(idx);
        if request.state == RequestState::Free || request.response.is_some() {
            context.pool.recycle(unused);
        } else {
            request.response = Some(unused);
        }
    }
}
