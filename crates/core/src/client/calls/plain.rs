//! The common path at the client, for ordinary calls: short, not paced, and without a special case.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use super::{Bufs, Call, CallState, Calls, Ended, home};
use crate::call::{CallOptions, Tag};
use crate::client::slot::Slot;
use crate::context::Context;
use crate::handle::{CallId, CallIdx, Session};
use crate::packet::held_until_done::Held;
use crate::packet::words::Words;
use crate::session::proof::{Left, Ready};
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transport::{LaneRoom, TxSeq};

/// The arguments of a call, without its session and msgbufs.
pub(crate) type Given = (ReqType, Tag, CallOptions);

/// Everything that a short call needs: a slot and a credit of its session, a line of the lane, and
/// an entry of the table.
pub(crate) struct Claim<'a> {
    ready: Ready<'a>,
    room: LaneRoom,
    slot: &'a mut Slot,
    index: CallIdx,
    call: &'a mut Call,
}

impl Claim<'_> {
    /// Issues the call. The msgbufs go into the table first, for the same reason for which
    /// [`Calls::end_plain`] takes them out last.
    #[inline(always)]
    pub(crate) fn issue(
        self,
        request: MsgBuf,
        response: MsgBuf,
        given: Given,
        context: &mut Context,
    ) -> CallId {
        let Self {
            ready,
            room,
            slot,
            index,
            call,
        } = self;
        let id = call.begin(index, &ready, given, [request, response], context);
        call.tx_end = TxSeq(0);
        slot.occupy(index);
        let left = note_issued(id, ready, context);
        // This comes last, so that little has to stay in registers while a longer message is
        // copied.
        if let Some(request) = call.request() {
            let words = left.words(given.0, request.len(), slot.req());
            context.outbox.stage(room, left.peer(), words, request);
        }
        id
    }
}

impl Calls {
    /// Ends a call with its response. The msgbufs leave the call last: if a panic could happen
    /// while they are in no table, the compiler would have to keep them in memory.
    #[inline(always)]
    pub(crate) fn end_plain(
        &mut self,
        words: &Words,
        data: &[u8],
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Option<Ended> {
        let known = sessions.known(words)?;
        let slot = self.slots.get_mut(known.slot().index())?;
        let idx = slot.awaited(words[2])?;
        let (call, free) = self.table.get_beside_free(idx)?;
        // This is the last check, and the first change.
        if !call.take(data, &context.held) {
            return None;
        }
        slot.vacate_awaited(known.window());
        #[cfg(feature = "mutants")]
        slot.stop_number(known.req(), known.window(), context);
        let came = context.moment.came();
        context.stats.on_answered(came.since(call.first_sent));
        context.stats.on_completion();
        free.put(idx);
        let (waits, index) = (known.has_waiting(), known.index());
        let session = known.release();
        if waits {
            let line = sessions.at_mut(index);
            context.wake(index, line);
        }
        let (tag, bufs) = (call.tag, call.bufs.take()?);
        call.end();
        Some(Ended { session, tag, bufs })
    }

    /// Finds everything that a call with a request of this length needs, if the request can leave
    /// in the lane and the call is ordinary.
    #[inline(always)]
    pub(crate) fn claim<'a>(
        &'a mut self,
        session: Session,
        len: usize,
        sessions: &'a mut Sessions,
        context: &Context,
    ) -> Option<Claim<'a>> {
        if !context.config.bypasses.common {
            return None;
        }
        let room = context.outbox.room(len)?;
        let ready = sessions.ready(session, len, context.moment.now())?;
        let slot = self.slots.get_mut(ready.slot().index())?;
        let (index, call) = self.table.take_free()?;
        Some(Claim {
            ready,
            room,
            slot,
            index,
            call,
        })
    }

    /// Issues a short request for which [`Self::claim`] has found no room in the lane.
    ///
    /// # Errors
    /// The msgbufs, if the call is not ordinary.
    #[inline(always)]
    pub(crate) fn issue_queued(
        &mut self,
        session: Session,
        [request, response]: [MsgBuf; 2],
        given: Given,
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Result<CallId, [MsgBuf; 2]> {
        let (now, len) = (context.moment.now(), request.len());
        let ready = match context.config.bypasses.common {
            true => sessions.ready(session, len, now),
            false => None,
        };
        let Some(ready) = ready else {
            return Err([request, response]);
        };
        let (Some(slot), Some((index, call))) = (
            self.slots.get_mut(ready.slot().index()),
            self.table.take_free(),
        ) else {
            return Err([request, response]);
        };
        slot.occupy(index);
        let id = call.begin(index, &ready, given, [request, response], context);
        let left = note_issued(id, ready, context);
        let words = left.words(given.0, len, slot.req());
        if let Some(Bufs { request, .. }) = &call.bufs {
            call.tx_end = context.outbox.queue(left.peer(), words, request);
        }
        Ok(id)
    }
}

/// Notes that a request leaves: takes slot and credit, and makes sure that a scan looks at its
/// call.
#[inline(always)]
fn note_issued<'a>(id: CallId, ready: Ready<'a>, context: &mut Context) -> Left<'a> {
    if context.moment.is_between_iterations() {
        context.outbox.tell_when_sent(id.index());
    }
    context.stats.on_request_sent();
    let now = context.moment.now();
    context.agenda.on_call(now, || context.config.scan_interval);
    ready.take()
}

impl Call {
    /// Makes `data` the response of the call, if it fits and the transport has released the
    /// request. Otherwise it changes nothing.
    #[inline(always)]
    fn take(&mut self, data: &[u8], held: &Held) -> bool {
        let copied = self.was_copied();
        let Some(bufs) = &mut self.bufs else {
            return false;
        };
        if !copied && !held.is_done(self.tx_end) {
            return false;
        }
        let fits = bufs.response.fill(data).is_ok();
        if fits && !copied {
            bufs.request.revoke();
        }
        fits
    }

    /// Whether the transport has a copy of the request, and not the request itself.
    #[inline(always)]
    fn was_copied(&self) -> bool {
        self.tx_end == TxSeq(0)
    }

    /// Turns a free entry into the call with this index, whose request leaves now. It writes the
    /// fields one by one: a struct that is built first would go through memory, because a panic in
    /// between might have to drop it.
    #[inline(always)]
    fn begin(
        &mut self,
        index: CallIdx,
        ready: &Ready<'_>,
        (req_type, tag, options): Given,
        [request, response]: [MsgBuf; 2],
        context: &Context,
    ) -> CallId {
        let now = context.moment.now();
        self.home = home(ready.index(), ready.slot());
        self.req_type = req_type;
        self.tag = tag;
        self.deadline = options.deadline.map_or(Nanos::MAX, |span| now + span);
        self.put(request, response);
        self.enter(CallState::Sent);
        self.attempts = 0;
        self.sample = false;
        self.excuses = 0;
        self.sent = now;
        self.first_sent = context.moment.present_now();
        CallId::new(ready.session(), index, self.generation)
    }
}
