//! Sends requests of one packet: the first time, paced, or with an acknowledgement vector.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ACK_VECTOR_LEN, Flags, Header, PacketType, ReqNum, ReqType};

use super::{CallMarks, CallState, Calls, home};
use crate::call::{CallOptions, Tag};
use crate::congestion::Way;
use crate::congestion::pacer::Pacer;
use crate::congestion::wheel::Paced;
use crate::context::Context;
use crate::error::{CallError, CallErrorKind, HandleError};
use crate::handle::{CallId, CallIdx, Session, SlotIdx};
use crate::packet::words::HEADER_BYTES;
use crate::session::line::Line;
use crate::session::table::Sessions;
use crate::time::Nanos;

/// An acknowledgement vector is sent once it is full.
const ACK_VECTOR_ENTRIES: usize = ACK_VECTOR_LEN / size_of::<ReqNum>();

/// A call as its user issues it.
pub(crate) struct Wish {
    pub(crate) session: Session,
    pub(crate) req_type: ReqType,
    pub(crate) request: MsgBuf,
    pub(crate) response: MsgBuf,
    pub(crate) tag: Tag,
    pub(crate) options: CallOptions,
}

/// A call that has an entry in the table.
pub(crate) struct Issued {
    pub(crate) id: CallId,
    /// It need not wait for a slot or a credit.
    pub(crate) starts: bool,
}

/// How a call has started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Started {
    /// The request's only packet is on the way, or the pacer delays it.
    Whole,
    /// The request has this number of bytes and needs several packets, none of which has left.
    InParts(u32),
}

impl Wish {
    fn refuse<T>(self, kind: CallErrorKind) -> Result<T, CallError> {
        Err(CallError {
            kind,
            request: self.request,
            response: self.response,
        })
    }
}

impl Calls {
    /// Enters a call into the table. The call waits if the session has no slot or credit for it.
    pub(crate) fn issue(
        &mut self,
        wish: Wish,
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Result<Issued, CallError> {
        let Some(index) = sessions.find(wish.session) else {
            let kind = match sessions.stray(wish.session) {
                HandleError::Ended => CallErrorKind::NoSession,
                HandleError::WrongEndpoint => CallErrorKind::WrongEndpoint,
            };
            return wish.refuse(kind);
        };
        let line = sessions.at_mut(index);
        let limit = line.terms().max_message;
        if wish.request.len() > limit as usize {
            return wish.refuse(CallErrorKind::TooLarge { limit });
        }
        let starts = line.can_send() && !line.has_waiting();
        if !starts && self.waiting(index) >= context.config.backlog {
            return wish.refuse(CallErrorKind::Overloaded);
        }
        // A call that starts gets the entry that its slot keeps.
        let kept = match starts {
            true => self.kept_at(line.next_slot()),
            false => None,
        };
        let idx = kept.unwrap_or_else(|| self.table.take());
        let call = self.at_mut(idx);
        call.home = home(index, SlotIdx::NONE);
        call.req_type = wish.req_type;
        call.tag = wish.tag;
        call.put(wish.request, wish.response);
        let now = context.moment.now();
        let deadline = wish.options.deadline.map(|span| now + span);
        call.marks = call.marks_until(deadline).with(CallMarks::LOOSE);
        let id = CallId::new(wish.session, idx, call.generation);
        if !starts {
            self.enqueue(idx, line, context);
        }
        Ok(Issued { id, starts })
    }

    /// Gives the call a slot and a credit, and sends its request if that is one packet (rules S1,
    /// S7).
    #[inline]
    pub(crate) fn start(
        &mut self,
        idx: CallIdx,
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) -> Started {
        let moment = &context.moment;
        let (now, present) = (moment.now(), moment.present_now());
        let at = line.take_slot();
        self.occupy(at, idx);
        let call = self.at_mut(idx);
        call.enter(CallState::Sent);
        (call.attempts, call.excuses) = (0, 0);
        call.home = home(call.session(), at);
        call.sent = now;
        call.first_sent = present;
        let sample = line.ask_for_sample(now, pacer.sample_interval(line.flow()));
        call.marks.set(CallMarks::SAMPLE, sample);
        call.marks.set(CallMarks::LENT, false);
        #[cfg(feature = "mutants")]
        if sample && context.shows(crate::mutant::Mutant::SampleUnsettled) {
            line.spoil_plain(false);
        }
        context.outbox.on_request();
        context.expect_scan();
        let flags = match sample {
            true => Flags::SAMPLE,
            false => Flags::NONE,
        };
        let size = call.request().map_or(0, message_size);
        if size > line.terms().data_size {
            // In parts of a request the flag has another meaning, and each part is timed by itself.
            self.at_mut(idx).marks.set(CallMarks::SAMPLE, false);
            return Started::InParts(size);
        }
        if line.is_paced() {
            self.pace_request(idx, line, flags, pacer, context);
        } else {
            self.send_first(idx, line, flags, context);
        }
        Started::Whole
    }

    /// Sends a request for the first time. The noted time is the start of the iteration. It is
    /// corrected later if the request leaves between two iterations, or asks for a round-trip
    /// sample, which needs the exact time.
    #[inline]
    fn send_first(&mut self, idx: CallIdx, line: &mut Line, flags: Flags, context: &mut Context) {
        let samples = flags != Flags::NONE;
        if samples && self.owes_acks(idx, line, context.moment.now()) {
            return self.send_request_with_acks(idx, line, flags, context);
        }
        self.push_request(idx, line, flags, context);
        if samples || context.moment.is_between_iterations() {
            context.outbox.tell_when_sent(idx);
        }
    }

    /// Sends a request of one packet, the first time or again, and notes when it leaves.
    pub(super) fn send_request(
        &mut self,
        idx: CallIdx,
        line: &mut Line,
        flags: Flags,
        context: &mut Context,
    ) {
        if self.owes_acks(idx, line, context.moment.now()) {
            return self.send_request_with_acks(idx, line, flags, context);
        }
        self.push_request(idx, line, flags, context);
        context.outbox.tell_when_sent(idx);
    }

    #[inline]
    fn push_request(&mut self, idx: CallIdx, line: &Line, flags: Flags, context: &mut Context) {
        if let Some((header, request)) = self.request_packet(idx, line, flags) {
            let peer = line.terms().peer;
            let end = context.outbox.push_message(peer, &header, request);
            self.at_mut(idx).lend_until(end);
        }
    }

    /// Sends the request, for the first time or again, when the session's rate permits.
    #[cold]
    pub(crate) fn pace_request(
        &mut self,
        idx: CallIdx,
        line: &mut Line,
        flags: Flags,
        pacer: &mut Pacer,
        context: &mut Context,
    ) {
        let len = self.at(idx).request().map_or(0, message_size);
        let bytes = len.saturating_add(HEADER_BYTES);
        match pacer.take_place(line, Way::Out, bytes, context) {
            Some(at) => {
                // The timeout begins when the packet leaves.
                self.at_mut(idx).sent = at;
                let entry = Paced {
                    session: line.handle(),
                    req: self.req_of(idx),
                    packet: 0,
                    at,
                };
                pacer.wait(entry, context);
            }
            None => self.send_request(idx, line, flags, context),
        }
    }

    /// Sends a paced request whose time has come, if the call still waits to send it.
    pub(crate) fn on_place(
        &mut self,
        idx: CallIdx,
        at: Nanos,
        line: &mut Line,
        context: &mut Context,
    ) {
        let call = self.at(idx);
        if call.state != CallState::Sent || call.sent != at {
            return;
        }
        let flags = match (call.attempts, call.marks.has(CallMarks::SAMPLE)) {
            (0, true) => Flags::SAMPLE,
            (0, false) => Flags::NONE,
            _ => Flags::RETRANSMISSION,
        };
        self.send_request(idx, line, flags, context);
    }

    /// Sends a request that also tells the server which responses have arrived (rules S9 and W10).
    #[cold]
    fn send_request_with_acks(
        &mut self,
        idx: CallIdx,
        line: &mut Line,
        flags: Flags,
        context: &mut Context,
    ) {
        let acks = self.take_acks(line, context.moment.now());
        let flags = flags.with(Flags::ACK_VECTOR);
        if let Some((header, request)) = self.request_packet(idx, line, flags) {
            let data = request.lend();
            let end = context.outbox.push(line.terms().peer, &header, data);
            self.at_mut(idx).lend_until(end);
            context.outbox.tell_when_sent(idx);
            context.outbox.add_acks(acks);
        }
    }

    /// Whether the server should learn which responses have arrived, and the request's packet has
    /// room for an acknowledgement vector.
    #[inline]
    fn owes_acks(&self, idx: CallIdx, line: &Line, now: Nanos) -> bool {
        let is_time = line.may_send_acks(now);
        is_time && self.to_acknowledge(line).count() >= ACK_VECTOR_ENTRIES && {
            let len = self.at(idx).request().map_or(0, MsgBuf::len);
            len + ACK_VECTOR_LEN <= line.terms().data_size as usize
        }
    }

    /// Header and message of a call's request; `None` if the call no longer has a request.
    #[inline]
    fn request_packet(&self, idx: CallIdx, line: &Line, flags: Flags) -> Option<(Header, &MsgBuf)> {
        let call = self.at(idx);
        let request = call.request()?;
        let header = Header {
            flags,
            aux: call.req_type.0,
            size: message_size(request),
            ..line.header(PacketType::Req, self.req_of(idx))
        };
        Some((header, request))
    }
}

/// The bytes of a message whose length was checked against the session's limit.
#[inline]
pub(super) fn message_size(message: &MsgBuf) -> u32 {
    u32::try_from(message.len()).unwrap_or(u32::MAX)
}
