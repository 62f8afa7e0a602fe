//! The common path at the client, for ordinary calls: short, not paced, and without a special case.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Flags, ReqType};

use super::{Bufs, Call, CallMarks, CallState, Calls, Ended, home};
use crate::call::{CallOptions, Tag};
use crate::client::kept::Kept;
use crate::client::slot::Slot;
use crate::congestion::pacer::Pacer;
use crate::context::Context;
use crate::handle::{CallId, CallIdx, Session};
use crate::packet::words::{Words, residence_of};
use crate::session::line::Line;
use crate::session::proof::{Left, Ready};
use crate::session::table::Sessions;
use crate::slab::{Free, Slab};
use crate::transport::{LaneRoom, Source};

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
    /// [`Calls::end_plain`] takes them out last. `LONG`: as for [`Calls::claim`].
    #[inline(always)]
    pub(crate) fn issue<const LONG: bool>(
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
        slot.occupy();
        let left = note_issued(id, ready, context);
        // This comes last, so that few registers are live while a longer message is copied.
        if let Some(request) = call.request() {
            let (peer, len) = (left.peer(), request.len());
            let words = left.words(given.0, len, slot.req());
            let outbox = &mut context.outbox;
            if LONG {
                let source = Source::of_call(index, id.generation());
                outbox.stage_header::<true>(room, peer, words, (len, source));
            } else {
                outbox.stage::<true>(room, peer, words, request.data());
            }
        }
        id
    }
}

impl Calls {
    /// Ends a call with its response. The msgbufs leave the call last: if a panic could happen
    /// while they are in no table, the compiler would have to keep them in memory. `LONE`: the
    /// packet is the only one of its burst.
    #[inline(always)]
    pub(crate) fn end_plain<const LONE: bool>(
        &mut self,
        words: &Words,
        data: &[u8],
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Option<Ended> {
        self.end_with::<LONE>(words, data, sessions, context, |_, _, _| {})
    }

    /// Like [`Self::end_plain`], for a response that states how long its request stayed in the
    /// server. The endpoint must know when it last looked for packets (rule S10).
    #[inline(always)]
    pub(crate) fn end_timed(
        &mut self,
        words: &Words,
        data: &[u8],
        sessions: &mut Sessions,
        pacer: &mut Pacer,
        context: &mut Context,
    ) -> Option<Ended> {
        let residence = residence_of(words);
        self.end_with::<false>(words, data, sessions, context, |call, line, context| {
            #[cfg(feature = "mutants")]
            if context.shows(crate::mutant::Mutant::ResidenceIgnored) {
                return;
            }
            call.take_sample(residence, Flags::NONE, line, pacer, context);
        })
    }

    /// Ends a call with its response; `take_times` gets the call before it ends.
    #[inline(always)]
    fn end_with<const LONE: bool>(
        &mut self,
        words: &Words,
        data: &[u8],
        sessions: &mut Sessions,
        context: &mut Context,
        take_times: impl FnOnce(&Call, &mut Line, &mut Context),
    ) -> Option<Ended> {
        let known = sessions.known(words)?;
        let slot = self.slots.get_mut(known.slot().index())?;
        let idx = slot.awaited(words[2])?;
        let (call, free) = self.table.get_beside_free(idx)?;
        if call.marks.has(CallMarks::UNUSUAL) {
            if !call.can_take(data, context) {
                return None;
            }
            call.let_go(idx, slot, &mut self.kept, free);
        }
        // This is the last check. From here on, state changes.
        if call.response_mut()?.fill(data).is_err() {
            return None;
        }
        slot.vacate_awaited(known.req(), known.window());
        #[cfg(feature = "mutants")]
        slot.stop_number(known.req(), known.window(), context);
        let Context { moment, stats, .. } = context;
        match LONE {
            true => stats.on_lone(Some(moment.at_burst().1.since(call.first_sent))),
            false => stats.on_plain_answer(call.first_sent, || moment.at_burst().1),
        }
        let line = known.release();
        let session = line.handle();
        if line.has_waiting() {
            context.wake(session.index(), line);
        }
        take_times(call, line, context);
        let (tag, bufs) = (call.tag, call.bufs.take()?);
        call.end();
        Some(Ended { session, tag, bufs })
    }

    /// Finds everything that a call with a request of this length needs, if the request can leave
    /// in the lane, the slot keeps an entry, and the call is ordinary. `LONG`: the request is too
    /// long to be copied there.
    #[inline(always)]
    pub(crate) fn claim<'a, const LONG: bool>(
        &'a mut self,
        session: Session,
        len: usize,
        sessions: &'a mut Sessions,
        context: &Context,
    ) -> Option<Claim<'a>> {
        let room = context.outbox.room_for::<LONG>(len)?;
        let ready = sessions.ready(session, len, context.moment.now())?;
        let slot = self.slots.get_mut(ready.slot().index())?;
        let index = slot.kept_or_none();
        let call = self.table.get_mut(index)?;
        Some(Claim {
            ready,
            room,
            slot,
            index,
            call,
        })
    }

    /// Issues an ordinary call for which [`Self::claim`] has found no room in the lane, or no entry
    /// in the slot.
    ///
    /// # Errors
    /// The msgbufs, if the call is not ordinary.
    pub(crate) fn issue_apart(
        &mut self,
        session: Session,
        [request, response]: [MsgBuf; 2],
        given: Given,
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Result<CallId, [MsgBuf; 2]> {
        let (now, len) = (context.moment.now(), request.len());
        let Some(ready) = sessions.ready(session, len, now) else {
            return Err([request, response]);
        };
        let Some(slot) = self.slots.get_mut(ready.slot().index()) else {
            return Err([request, response]);
        };
        let Some((index, marks)) = entry_for(slot, &ready, &mut self.table) else {
            return Err([request, response]);
        };
        slot.occupy();
        let call = self.table.at_mut(index);
        let id = call.begin(index, &ready, given, [request, response], context);
        call.marks = call.marks.with(marks);
        let left = note_issued(id, ready, context);
        let words = left.words(given.0, len, slot.req());
        let (peer, room) = (left.peer(), context.outbox.room(len));
        match (&call.bufs, room) {
            (Some(Bufs { request, .. }), Some(room)) => {
                let message = request.data();
                context.outbox.stage::<true>(room, peer, words, message);
            }
            (Some(Bufs { request, .. }), None) => {
                context.outbox.on_request();
                let end = context.outbox.queue(peer, words, request);
                call.lend_until(end);
            }
            (None, _) => {}
        }
        Ok(id)
    }
}

/// The entry for a call in a free slot, with its first marks: the slot's own entry, or a free one.
#[inline(always)]
fn entry_for(
    slot: &mut Slot,
    ready: &Ready<'_>,
    table: &mut Slab<CallIdx, Call>,
) -> Option<(CallIdx, CallMarks)> {
    if let Some(index) = slot.kept() {
        return Some((index, CallMarks::NONE));
    }
    let (index, call) = table.take_free()?;
    call.home = home(ready.index(), ready.slot());
    slot.keep(index);
    Some((index, CallMarks::LOOSE))
}

/// Notes that a request leaves: takes slot and credit, and makes sure that a scan looks at the
/// call.
#[inline(always)]
fn note_issued<'a>(id: CallId, ready: Ready<'a>, context: &mut Context) -> Left<'a> {
    context.on_ordinary_call(id.index());
    ready.take()
}

impl Call {
    /// Whether the transport has released the request, and `data` fits into the response.
    fn can_take(&self, data: &[u8], context: &Context) -> bool {
        let is_done = context.held.is_done(self.tx_end());
        #[cfg(feature = "mutants")]
        let is_done = is_done || context.shows(crate::mutant::Mutant::ReleasedBeforeDone);
        let response = self.response();
        is_done && response.is_some_and(|it| data.len() <= it.capacity())
    }

    /// Prepares the end of a call whose request was lent, or whose slot does not keep the entry for
    /// its next call yet. Afterwards the slot keeps the entry, or the entry is free.
    #[cold]
    #[inline(never)]
    fn let_go(&mut self, idx: CallIdx, slot: &mut Slot, kept: &mut Kept, free: &mut Free<CallIdx>) {
        if let Some(bufs) = &mut self.bufs {
            bufs.request.revoke();
        }
        if !self.marks.has(CallMarks::LOOSE) {
            return;
        }
        if kept.add(self.at()) {
            self.marks.set(CallMarks::LOOSE, false);
        } else {
            slot.keep(CallIdx::NONE);
            free.put(idx);
        }
    }

    /// Turns a free entry into the call with this index, whose request leaves now. The entry
    /// already has its session and its slot. The fields are written one by one: a struct that is
    /// built first would go through memory, because a panic in between might have to drop it.
    #[inline(always)]
    fn begin(
        &mut self,
        index: CallIdx,
        ready: &Ready<'_>,
        (req_type, tag, options): Given,
        [request, response]: [MsgBuf; 2],
        context: &Context,
    ) -> CallId {
        debug_assert_eq!(self.home, home(ready.index(), ready.slot()));
        let now = context.moment.now();
        self.req_type = req_type;
        self.tag = tag;
        self.put(request, response);
        self.enter(CallState::Sent);
        self.attempts = 0;
        self.marks = CallMarks::NONE;
        self.excuses = 0;
        // It comes after the four constants, which are written as one word, even if the compiler
        // does not know whether there is a deadline.
        if let Some(span) = options.deadline {
            self.marks = self.marks_until(Some(now + span));
        }
        self.sent = now;
        self.first_sent = context.moment.present_now();
        CallId::new(ready.session(), index, self.generation)
    }
}
