//! The content of a call's slot: its request on the way to the endpoint's thread, and its end on
//! the way back.

use std::time::Duration;

use dunlin_channel::Terms;
use dunlin_core::Nanos;
use dunlin_mailbox::{Slot, TakenPlace};
use dunlin_msgbuf::MsgBuf;
use dunlin_service::spans::Hops;
use dunlin_service::{Context, Front, Key, Meta, MetaError};
use dunlin_wire::ReqType;

use crate::body::Body;
use crate::error::ChannelError;
use crate::orders::Doorbell;
use dunlin_mailbox as mailbox;

/// A slot keeps up to this many bytes of a request's memory for the next request: in all 8 MiB for
/// a channel that has had 4096 concurrent calls.
const KEPT: usize = 2 << 10;

/// The slots that are used first, and most often, keep more: requests of up to 64 KiB, in all 8
/// MiB.
const KEPT_FIRST: usize = 128 << 10;
const FIRST: usize = 64;

/// The highest request type that has a bit for metadata.
const MAX_TYPE: u16 = dunlin_service::META - 1;

/// A request, and how its call ended.
#[derive(Debug)]
pub(crate) struct Letter {
    /// The channel.
    pub(crate) channel: u32,
    pub(crate) req_type: ReqType,
    /// The largest response, in bytes, that the caller accepts.
    pub(crate) room: usize,
    pub(crate) terms: Terms,
    /// The time that the call has from its first poll, until [`Self::fix_deadline`] has made it
    /// the end that `terms` has.
    pub(crate) span: Option<Duration>,
    /// The time at which the client of the served request stops waiting; no deadline of the call
    /// is later. [`Nanos::MAX`]: there is none. Read only for calls with a deadline.
    limit: Nanos,
    body: Body,
    meta: Meta,
    /// The request has a front, because the call is typed or has metadata.
    has_front: bool,
    /// The call is a notification: no caller waits for its end.
    pub(crate) is_notice: bool,
    pub(crate) hops: Hops,
    pub(crate) end: Option<Result<MsgBuf, ChannelError>>,
    /// The place of the call, unless an attempt has taken it.
    place: Option<TakenPlace>,
}

/// The mailbox of an endpoint's thread.
pub(crate) type Mailbox = mailbox::Mailbox<Letter, Doorbell>;

impl Default for Letter {
    fn default() -> Self {
        Self {
            channel: 0,
            req_type: ReqType(0),
            room: 0,
            terms: Terms::default(),
            span: None,
            limit: Nanos::MAX,
            body: Body::default(),
            meta: Meta::default(),
            has_front: false,
            is_notice: false,
            hops: Hops::default(),
            end: None,
            place: None,
        }
    }
}

impl Letter {
    /// Prepares the slot for a call, whose request follows.
    #[inline]
    pub(crate) fn on_call(
        &mut self,
        channel: u32,
        req_type: ReqType,
        room: usize,
        span: Option<Duration>,
    ) {
        self.place = None;
        self.channel = channel;
        self.req_type = req_type;
        self.room = room;
        self.terms = Terms::default();
        self.span = span;
        self.limit = Nanos::MAX;
        self.end = None;
        self.is_notice = false;
        self.hops = Hops::default();
        self.meta.clear();
    }

    /// Copies request, room, deadline and terms from another call.
    pub(crate) fn on_copy(&mut self, of: &Self) {
        self.room = of.room;
        self.terms = of.terms;
        self.span = of.span;
        self.limit = of.limit;
        self.has_front = of.has_front;
        self.meta.clone_from(&of.meta);
        let message = of.body.message();
        let copy = |out: &mut [u8]| out.copy_from_slice(message);
        self.body.write(of.body.gap(), message.len(), copy);
    }

    /// Copies the request from `body`.
    pub(crate) fn on_body(&mut self, body: &[u8]) {
        self.has_front = false;
        self.body
            .write(0, body.len(), |out| out.copy_from_slice(body));
    }

    /// Encodes the request with `write`: a typed message of `len` bytes. Its front will probably
    /// have `gap` bytes.
    pub(crate) fn on_message(&mut self, gap: usize, len: usize, write: impl FnOnce(&mut [u8])) {
        self.has_front = true;
        self.body.write(gap, len, write);
    }

    /// The call is sent, and has this place from here on. Returns the bytes of the fronts of its
    /// attempts.
    pub(crate) fn on_sent(&mut self, place: TakenPlace, now: impl FnOnce() -> Nanos) -> usize {
        self.place = Some(place);
        let deadline = self.fix_deadline(now);
        let gap = self.front(deadline).size();
        self.body.set_gap(gap);
        gap
    }

    /// Makes the deadline of the call count from now on, unless it already counts. Returns the
    /// deadline, which copies of the call keep.
    pub(crate) fn fix_deadline(&mut self, now: impl FnOnce() -> Nanos) -> Option<Nanos> {
        if let Some(span) = self.span.take() {
            let end = self.limit.min(now() + span.into());
            self.terms.deadline = Some(end).filter(|end| *end != Nanos::MAX);
        }
        self.terms.deadline
    }

    /// The time that the call has from now on.
    pub(crate) fn left(&self, now: Nanos) -> Option<Duration> {
        let until = |end: Nanos| Duration::from_nanos(end.since(now).0);
        let fixed = self.terms.deadline.map(until);
        self.span.map(|span| span.min(until(self.limit))).or(fixed)
    }

    fn front(&self, left: Option<Nanos>) -> Front<'_> {
        match self.has_front {
            true => Front::with(left, &self.meta),
            false => Front::new(None),
        }
    }

    /// Adds metadata to the request.
    pub(crate) fn on_meta(&mut self, key: Key<'_>, value: &str) -> Result<(), MetaError> {
        if self.req_type.0 > MAX_TYPE {
            return Err(MetaError::Type);
        }
        self.meta.add_at(key, value)?;
        self.has_front = true;
        Ok(())
    }

    /// A handler makes this request to serve another request, whose context is `context`. This
    /// request ends at the other request's deadline at the latest, even if its first poll comes
    /// late, and belongs to the other request's trace. A request type without a bit for metadata
    /// has no trace.
    pub(crate) fn on_under(&mut self, context: &Context<'_>) {
        if let Some(end) = context.deadline {
            self.limit = end.min(self.limit);
            match &mut self.terms.deadline {
                Some(fixed) => *fixed = end.min(*fixed),
                None => {
                    self.span.get_or_insert(Duration::MAX);
                }
            }
        }
        if self.req_type.0 <= MAX_TYPE {
            self.meta.under(context);
            self.has_front |= !self.meta.is_empty();
        }
    }

    /// The metadata of the request, unless their place would change its type, which the program has
    /// chosen.
    pub(crate) fn metadata(&mut self) -> Option<&mut Meta> {
        self.has_front.then_some(&mut self.meta)
    }

    /// The request of an attempt that has the time `left`, with its type. A request with a front
    /// carries that time to the server. `hedges`: the channel sends idempotent calls twice; `alloc`
    /// makes a msgbuf.
    pub(crate) fn request<E>(
        &mut self,
        left: Option<Nanos>,
        hedges: bool,
        alloc: impl FnOnce(usize) -> Result<MsgBuf, E>,
    ) -> Result<(ReqType, MsgBuf), E> {
        let may_have_two = hedges && self.terms.idempotent;
        let gap = self.front(left).size();
        self.body.set_gap(gap);
        let mut request = self.body.request(may_have_two, alloc)?;
        let front = self.front(left);
        front.write(request.data_mut());
        Ok((front.type_of(self.req_type), request))
    }

    /// Takes the request back from an attempt that has ended. Returns a msgbuf that the slot does
    /// not need.
    pub(crate) fn return_request(&mut self, request: MsgBuf) -> Option<MsgBuf> {
        self.body.put_back(request)
    }

    /// Ends the call, and frees the memory of a large request; the slot keeps `most` bytes.
    pub(crate) fn on_end(&mut self, end: Result<MsgBuf, ChannelError>, most: usize) {
        self.end = Some(end);
        self.body.end(most);
    }

    /// Takes the place for an attempt that is sent.
    pub(crate) fn take_place(&mut self) -> Option<TakenPlace> {
        self.place.take()
    }

    /// Takes the place back from an attempt that has ended, and whose request no server holds.
    pub(crate) fn return_place(&mut self, place: TakenPlace) {
        self.place = Some(place);
    }

    /// Takes the end, for the caller.
    pub(crate) fn on_seen(&mut self) -> Option<Result<MsgBuf, ChannelError>> {
        self.place = None;
        self.end.take()
    }

    /// Clears the slot, which keeps `most` bytes: the caller has dropped the call. Returns the end,
    /// if there is one.
    pub(crate) fn on_dropped(&mut self, most: usize) -> Option<Result<MsgBuf, ChannelError>> {
        self.body.end(most);
        self.on_seen()
    }
}

/// The bytes of a request's memory that a slot keeps for the next one.
pub(crate) const fn kept_in(slot: Slot) -> usize {
    if slot.index() < FIRST {
        KEPT_FIRST
    } else {
        KEPT
    }
}

/// Ends a call that the thread has taken. If the caller has dropped the call, the thread will find
/// the slot, with its content, in the mailbox.
pub(crate) fn end(mailbox: &Mailbox, slot: Slot, end: Result<MsgBuf, ChannelError>) {
    let is_notice = mailbox.with(slot, |letter| {
        letter.on_end(end, kept_in(slot));
        letter.is_notice
    });
    // After the end the slot belongs to the caller; a notification has no caller, so this releases
    // it.
    if mailbox.end_later(slot) && is_notice {
        mailbox.with(slot, |letter| drop(letter.on_seen()));
        mailbox.release(slot);
    }
}

impl mailbox::Letter for Letter {
    fn on_closed(&mut self) {
        self.place = None;
        self.on_end(Err(ChannelError::Closed), KEPT);
    }
}

#[cfg(test)]
mod tests;
