//! Events of the server side, each brought to the parts that it concerns: requests, and the
//! reassembly of requests that come in several packets. `protocol.rs` lends both for an event.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{AckVector, ErrorCode, Flags, Header};

use crate::context::Context;
use crate::handle::{RequestId, RequestIdx, SessionIdx};
use crate::packet::receive::{Data, Packet};
use crate::server::inbound::{Effect, Large, Partial, Received};
use crate::server::requests::Requests;
use crate::session::table::Sessions;
use crate::transfer::reassembly::Reassembly;
use crate::transfer::reassembly::Taken;
use crate::transfer::scoreboard::packets_of;

/// The server side of an endpoint, borrowed for an event.
pub(crate) struct Server<'a> {
    requests: &'a mut Requests,
    reassembly: &'a mut Reassembly,
    sessions: &'a Sessions,
    context: &'a mut Context,
}

impl<'a> Server<'a> {
    #[inline(always)]
    pub(crate) fn new(
        requests: &'a mut Requests,
        reassembly: &'a mut Reassembly,
        sessions: &'a Sessions,
        context: &'a mut Context,
    ) -> Self {
        Self {
            requests,
            reassembly,
            sessions,
            context,
        }
    }
}

/// Packets.
impl Server<'_> {
    /// Handles a REQ: returns the request whose handler must run, if it is new (rule S2).
    #[inline(always)]
    pub(crate) fn on_request(
        &mut self,
        session: SessionIdx,
        packet: &Packet<'_>,
        congestion: bool,
    ) -> Option<RequestIdx> {
        let (line, header) = (self.sessions.at(session), &packet.header);
        if !line.is_single(header.size) {
            self.on_large_request(session, header, Data::Here(packet.data), congestion);
            return None;
        }
        let received = Received::new(session, line, header, congestion);
        let accepted = self
            .requests
            .on_request(&received, self.sessions, self.context);
        accepted.map_err(|effect| self.apply(effect)).ok()
    }

    /// Handles one packet of a request that needs several.
    #[cold]
    pub(crate) fn on_large_request(
        &mut self,
        session: SessionIdx,
        header: &Header,
        data: Data<'_>,
        congestion: bool,
    ) {
        let line = self.sessions.at(session);
        let received = Received::new(session, line, header, congestion);
        let found = self
            .requests
            .on_large_request(&received, self.sessions, self.context);
        let partial = match found {
            Large::New(idx) => self.begin_parts(session, idx, header.size),
            Large::Part(partial) => Some(partial),
            Large::Over(effect) => {
                self.apply(effect);
                None
            }
        };
        if let Some(partial) = partial {
            self.take_part(partial, header, data, congestion);
        }
    }

    /// Handles frames that each hold one packet of the same large request, in order, as
    /// [`Self::on_large_request`] would handle each; returns their number. That function must
    /// handle the request's first and last packet, and packets out of order. `header` is the header
    /// of the first frame.
    #[inline]
    pub(crate) fn on_parts<'f>(
        &mut self,
        session: SessionIdx,
        header: &Header,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> u32 {
        let line = self.sessions.at(session);
        let at = line.slot_at(header.req);
        let Some(partial) = self.requests.partial_at(at, header.req) else {
            return 0;
        };
        let data_size = line.terms().data_size as usize;
        let run = self
            .reassembly
            .take_run(partial.place, header, data_size, frames);
        if run.packets != 0 {
            let marked = self.reassembly.is_marked(partial.place);
            self.requests
                .on_part(partial.request, Taken::New, marked, self.context);
        }
        if run.is_credit_due {
            self.apply(Effect::CreditDue(partial));
        }
        run.packets
    }

    /// Makes room for the request, or refuses it.
    fn begin_parts(&mut self, session: SessionIdx, idx: RequestIdx, size: u32) -> Option<Partial> {
        let terms = self.sessions.at(session).terms();
        if size > terms.max_message {
            self.reject(idx, ErrorCode::TOO_LARGE);
            return None;
        }
        let context = &mut *self.context;
        let message = match self.reassembly.has_room(session, size, &context.config) {
            true => context.pool.alloc_for_parts(size as usize).ok(),
            false => None,
        };
        let Some(message) = message else {
            self.reject(idx, ErrorCode::OVERLOADED);
            return None;
        };
        let packets = packets_of(size, terms.data_size);
        let place = self.reassembly.begin(session, packets, size, message);
        Some(self.requests.begin_parts(idx, place, packets, context))
    }

    fn take_part(&mut self, partial: Partial, header: &Header, data: Data<'_>, congestion: bool) {
        let (idx, place) = (partial.request, partial.place);
        let data_size = self.sessions.at(partial.session).terms().data_size as usize;
        let taken = match self
            .reassembly
            .take(place, header, data, data_size, congestion)
        {
            Ok(taken) => taken,
            Err(reason) => return self.context.stats.on_drop(reason),
        };
        let marked = self.reassembly.is_marked(place);
        self.requests.on_part(idx, taken, marked, self.context);
        match taken {
            Taken::Last => {}
            // The next packet follows immediately, and brings the CR for both (rule S7).
            Taken::New if header.flags.has(Flags::FOLLOWED) => return,
            Taken::New | Taken::Again => return self.apply(Effect::CreditDue(partial)),
        }
        if let Some(message) = self.reassembly.end(place, partial.session) {
            self.reassembly.on_complete(idx, message);
            self.context.agenda.call_attention();
        }
    }

    /// Handles an RFR: the client asks for the state of its accepted request (rule S5), or for
    /// packets of the response (rule S13).
    pub(crate) fn on_probe(&mut self, session: SessionIdx, header: &Header, congestion: bool) {
        let line = self.sessions.at(session);
        let received = Received::new(session, line, header, congestion);
        let effect = self
            .requests
            .on_probe(&received, self.sessions, self.context);
        self.apply(effect);
    }

    /// Handles a CANCEL: the client no longer waits for the response (rule S6).
    pub(crate) fn on_cancel(&mut self, session: SessionIdx, header: &Header) {
        let line = self.sessions.at(session);
        let received = Received::new(session, line, header, false);
        let effect = self
            .requests
            .on_cancel(&received, self.sessions, self.context);
        self.apply(effect);
    }

    /// Notes that the client has these responses (rules S9, W10).
    pub(crate) fn on_acks(&mut self, session: SessionIdx, acks: AckVector) {
        let line = self.sessions.at(session);
        self.requests.on_acks(line, acks, self.context);
    }

    /// Applies an event's effect to reassembly.
    #[cold]
    #[inline(never)]
    pub(crate) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::CreditDue(partial) => {
                self.reassembly
                    .on_credit_due(partial.place, partial.request);
                self.context.agenda.call_attention();
            }
            Effect::GivenUp(partial) => {
                let ended = self.reassembly.end(partial.place, partial.session);
                let Some(message) = ended else { return };
                #[cfg(feature = "mutants")]
                if self.context.shows(crate::mutant::Mutant::BudgetLeaked) {
                    self.reassembly.leak(message.len());
                }
                self.context.pool.recycle(message);
            }
        }
    }

    /// Sends a CR for each large request for which this burst brought packets (rule S7).
    pub(crate) fn return_credits(&mut self) {
        while let Some(idx) = self.reassembly.pop_pending() {
            // The request may have ended, and its entry may hold another one.
            let Some(partial) = self.requests.partial(idx) else {
                continue;
            };
            if let Some(due) = self.reassembly.take_credit_return(partial.place) {
                let context = &mut *self.context;
                self.requests
                    .send_credit_return(idx, &due, self.sessions, context);
            }
        }
    }
}

/// Packets that clients have asked for.
impl Server<'_> {
    /// Sends some of the packets that clients have asked for (rule S13).
    pub(crate) fn send_asked(&mut self) {
        self.requests.send_asked(self.sessions, self.context);
    }
}

/// Handlers, and requests that end without them.
impl Server<'_> {
    /// Answers with a response of `len` bytes that `write` fills.
    #[inline]
    pub(crate) fn reply_otherwise(
        &mut self,
        idx: RequestIdx,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) {
        self.requests
            .reply_otherwise(idx, len, write, self.sessions, self.context);
    }

    /// Answers with a response that was written elsewhere.
    #[inline(always)]
    pub(crate) fn reply_with(&mut self, idx: RequestIdx, response: MsgBuf) {
        self.requests
            .reply_with(idx, response, self.sessions, self.context);
    }

    /// Answers with an error.
    pub(crate) fn reject(&mut self, idx: RequestIdx, code: ErrorCode) {
        self.requests.reject(idx, code, self.sessions, self.context);
    }

    /// Lets the request outlive its handler, if the handler has not answered yet.
    #[inline]
    pub(crate) fn detach(&mut self, idx: RequestIdx) -> RequestId {
        self.requests.detach(idx, self.context)
    }

    /// Answers a request that a worker thread has handled, if its client still waits. `error`, if
    /// there is one, is the answer instead of `response`.
    pub(crate) fn finish_detached(
        &mut self,
        id: RequestId,
        response: MsgBuf,
        error: Option<ErrorCode>,
    ) {
        match (self.requests.find(id), error) {
            (Some(idx), None) => self.reply_with(idx, response),
            (Some(idx), Some(code)) => {
                self.context.pool.recycle(response);
                self.reject(idx, code);
            }
            (None, _) => self.context.pool.recycle(response),
        }
    }

    /// Keeps a handler's unused response buffer for the slot's next request.
    pub(crate) fn keep_response(&mut self, idx: RequestIdx, unused: MsgBuf) {
        self.requests.keep_response(idx, unused, self.context);
    }

    /// Informs the client of a slow dispatch handler that is about to start.
    pub(crate) fn announce_slow(&mut self, idx: RequestIdx) {
        self.requests
            .announce_slow(idx, self.sessions, self.context);
    }

    /// Handles the return of a handler: a request that it left unanswered fails.
    #[inline]
    pub(crate) fn after_handler(&mut self, idx: RequestIdx) {
        self.requests
            .after_handler(idx, self.sessions, self.context);
    }

    /// Sweeps one part of the requests: gives back the responses that were held long enough, and
    /// ends requests whose senders have stopped (rule S9).
    pub(crate) fn sweep_responses(&mut self) {
        let part = self.requests.sweep_part(self.context);
        let end = part.end;
        for index in part {
            let idx = RequestIdx(u32::try_from(index).unwrap_or(u32::MAX));
            let effect = self.requests.sweep(idx, self.sessions, self.context);
            self.apply(effect);
        }
        self.requests.on_swept(end, self.context);
    }

    /// Ends the requests of a session that closes.
    pub(crate) fn end_requests(&mut self, session: SessionIdx) {
        for at in self.sessions.at(session).slots().iter() {
            let effect = self.requests.on_session_closed(at, self.context);
            self.apply(effect);
        }
        self.requests.forget_asked(session);
        self.reassembly.forget_session(session);
    }
}
