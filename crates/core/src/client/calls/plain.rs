//! The common path at the client: calls about which nothing is unusual.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use super::{Call, CallState, Calls, home};
use crate::call::{CallOptions, Done, Tag};
use crate::context::Context;
use crate::handle::{CallId, CallIdx, Session, SessionIdx};
use crate::packet::outbox::Outbox;
use crate::packet::words::Words;
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transport::TxSeq;

/// A call that has its slot and is about to leave. Its fields are written one by one: put together
/// first, they would go through memory, because a panic between might have to drop them.
struct Beginning<'a> {
    call: &'a mut Call,
    index: CallIdx,
}

impl Calls {
    /// A response: the call that it ends, and its session. Only [`Self::plain_done`] is left.
    #[inline(always)]
    pub(crate) fn on_plain_answer(
        &mut self,
        words: &Words,
        data: &[u8],
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Option<(Session, CallIdx)> {
        let known = sessions.known(words)?;
        let waits = known.has_waiting();
        let (at, window) = (known.slot(), known.window());
        let idx = self.plain_in_slot(at, words[2], data.len(), &context.outbox)?;
        let first_sent = self.end_plain(at, idx, window);
        #[cfg(feature = "mutants")]
        self.stop_numbers(at, known.req(), window, context);
        let came = context.moment.present(context.moment.burst_time());
        context.stats.on_answered(came.since(first_sent));
        context.stats.on_completion();
        let session = known.release();
        if waits {
            let line = sessions.at_mut(session.index());
            context.wake(session.index(), line);
        }
        Some((session, idx))
    }

    /// Issues a short request.
    ///
    /// # Errors
    /// The msgbufs, if anything is unusual.
    #[inline(always)]
    pub(crate) fn issue_plain(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        (tag, options): (Tag, CallOptions),
        (sessions, context): (&mut Sessions, &mut Context),
    ) -> Result<CallId, [MsgBuf; 2]> {
        let (now, len) = (context.moment.now(), request.len());
        let ready = match context.config.bypasses.common {
            true => sessions.ready(session, len, now),
            false => None,
        };
        let Some(ready) = ready else {
            return Err([request, response]);
        };
        let at = ready.slot();
        #[expect(clippy::cast_possible_truncation, reason = "a single packet")]
        let words = ready.words(req_type, len as u32, self.req_at(at));
        let tx_end = context.outbox.push_words(ready.peer(), words, &request);
        let deadline = options.deadline.map_or(Nanos::MAX, |span| now + span);
        let mut call = self.begin_plain(at, ready.index());
        call.carry(req_type, [request, response], tag, deadline);
        let id = call.leave(now, context.moment.present(now), tx_end);
        ready.take();
        if context.moment.is_between_iterations() {
            context.outbox.tell_when_sent(id.index());
        }
        context.stats.on_request_sent();
        context.agenda.on_call(now, context.config.scan_interval);
        Ok(id)
    }

    /// The call in the slot, if a whole response of `len` bytes ends it. `word`: the last one of
    /// the response's header, with the number of its request. The call's user waits, nothing else
    /// of its messages is under way, and the response fits.
    #[inline(always)]
    pub(super) fn plain_in_slot(
        &self,
        at: usize,
        word: u64,
        len: usize,
        outbox: &Outbox,
    ) -> Option<CallIdx> {
        let idx = self.awaited(at, word)?;
        let call = self.table.get(idx)?;
        let room = call.response.as_ref()?.capacity();
        (outbox.is_done(call.tx_end) && len <= room).then_some(idx)
    }

    /// The call, which [`Self::plain_in_slot`] has seen, is answered: its slot is free. Returns
    /// when its request was first sent.
    #[inline(always)]
    fn end_plain(&mut self, at: usize, idx: CallIdx, window: u32) -> Nanos {
        self.vacate(at, window);
        self.at(idx).first_sent
    }

    /// The completion of a call whose response is `data`, which [`Self::plain_in_slot`] has seen to
    /// fit. Its slot is free already.
    #[inline(always)]
    pub(crate) fn plain_done(&mut self, idx: CallIdx, session: Session, data: &[u8]) -> Done {
        let call = self.at_mut(idx);
        let taken = "a call that its user waits for has its msgbufs";
        let mut request = call.request.take().expect(taken);
        let mut response = call.response.take().expect(taken);
        let tag = call.tag;
        request.revoke();
        let filled = response.fill(data);
        debug_assert!(filled.is_ok());
        self.remove(idx);
        Done {
            session,
            tag,
            result: Ok(()),
            request,
            response,
        }
    }

    /// A call takes the free slot.
    #[inline(always)]
    fn begin_plain(&mut self, at: usize, session: SessionIdx) -> Beginning<'_> {
        let index = self.table.take();
        self.occupy(at, index);
        let call = self.table.at_mut(index);
        call.home = home(session, place(at));
        Beginning { call, index }
    }
}

impl Beginning<'_> {
    /// The parts that its user has given.
    #[inline(always)]
    fn carry(
        &mut self,
        req_type: ReqType,
        [request, response]: [MsgBuf; 2],
        tag: Tag,
        deadline: Nanos,
    ) {
        self.call.req_type = req_type;
        self.call.tag = tag;
        self.call.deadline = deadline;
        put(&mut self.call.request, request);
        put(&mut self.call.response, response);
    }

    /// Its request leaves at `now`, which is `present` on the clock that silence is measured on.
    #[inline(always)]
    fn leave(self, now: Nanos, present: Nanos, tx_end: TxSeq) -> CallId {
        let call = self.call;
        call.enter(CallState::Sent);
        call.attempts = 0;
        call.sample = false;
        call.spare = 0;
        call.sent = now;
        call.first_sent = present;
        call.tx_end = tx_end;
        CallId::new(self.index, call.generation)
    }
}

/// The place of a slot, as a call notes it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "2^24 sessions of 64 slots")]
pub(super) const fn place(at: usize) -> u32 {
    at as u32
}

/// Fills an empty place. Saying that it is empty spares looking whether something must be dropped.
#[inline(always)]
pub(super) fn put(place: &mut Option<MsgBuf>, buf: MsgBuf) {
    debug_assert!(place.is_none(), "a free call has no msgbufs");
    std::mem::forget(place.replace(buf));
}
