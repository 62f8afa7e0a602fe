//! Calls: the working state of requests that this side issued, from `call` to completion.
//!
//! ```text
//!          no slot or credit          slot and credit
//! call ──▶ Queued ─────────────▶ Sent ──CR──▶ Accepted ──RESP/ERR──▶ (completion) Free
//!            │ deadline, cancel    │ RESP/ERR       │ deadline, cancel
//!            ▼                     ▼                ▼
//!   (completion) Free     (completion) Free      Zombie ──RESP/ERR──▶ Free
//! ```
//! A call whose messages have more than one packet is `Sending` before it is `Accepted`, and
//! `Receiving` before its completion; it then has a transfer as well (`transfer/client.rs`).
//!
//! A zombie has been completed to the user; it keeps slot and credit and resends CANCEL until the
//! server has answered (rule S6).

use std::ops::Range;

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ReqNum, ReqType};

use crate::error::RpcError;
use crate::packet::outbox::Outbox;
use crate::session::table::{NONE, Session};
use crate::slab::Slab;
use crate::time::Nanos;
use crate::transport::TxSeq;

/// What the user gives with a call and gets back with its completion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tag(pub u64);

/// Names a call, to cancel it. Identifiers of completed calls are recognised, not reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallId {
    /// The index in the lower half, the generation in the upper: one word, because it is moved
    /// right after it was made.
    word: u64,
}

impl CallId {
    #[inline]
    pub(crate) const fn index_at(self) -> CallIdx {
        CallIdx(self.index())
    }

    #[inline]
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        let word = (generation as u64) << 32 | index as u64;
        Self { word }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    const fn index(self) -> u32 {
        self.word as u32
    }

    #[inline]
    const fn generation(self) -> u32 {
        (self.word >> 32) as u32
    }
}

/// What a call may be told beside its message.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// Complete with [`RpcError::DeadlinePassed`] when this span has passed without a response.
    /// It is checked once per `scan_interval`.
    pub deadline: Option<Nanos>,
}

/// The end of a call. Exactly one comes for each call that was taken.
#[derive(Debug)]
pub struct Done {
    /// The session of the call.
    pub session: Session,
    /// What the user gave with the call.
    pub tag: Tag,
    /// `Ok` if `response` holds the response.
    pub result: Result<(), RpcError>,
    /// The request's buffer, unchanged.
    pub request: MsgBuf,
    /// The response, or the untouched buffer if `result` is an error.
    pub response: MsgBuf,
}

/// Index of a call in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallIdx(pub(crate) u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum CallState {
    #[default]
    Free,
    Queued,
    Sent,
    Accepted,
    Zombie,
    /// Packets of the request are on their way.
    Sending,
    /// Packets of the response are.
    Receiving,
}

impl CallState {
    /// The call holds a slot and a credit.
    pub(crate) fn has_slot(self) -> bool {
        !matches!(self, Self::Free | Self::Queued)
    }

    /// The call has a [`Transfer`](crate::transfer::scoreboard::Transfer).
    #[inline]
    pub(crate) fn has_transfer(self) -> bool {
        self >= Self::Sending
    }

    /// The user waits for the call.
    pub(crate) fn is_pending(self) -> bool {
        !matches!(self, Self::Free | Self::Zombie)
    }
}

/// One call.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) state: CallState,
    /// Retransmissions, probes or CANCELs since the state was entered.
    pub(crate) attempts: u8,
    /// The request was sent once, and asked for a round-trip sample.
    pub(crate) sample: bool,
    pub(crate) req_type: ReqType,
    pub(crate) req: ReqNum,
    pub(crate) session: u32,
    pub(crate) generation: u32,
    /// `Sending`, `Receiving`: which transfer.
    pub(crate) transfer: u32,
    /// The calls before and after it among those of the session that wait.
    previous: u32,
    next: u32,
    pub(crate) tag: Tag,
    pub(crate) request: Option<MsgBuf>,
    pub(crate) response: Option<MsgBuf>,
    /// When the last packet was sent.
    pub(crate) sent: Nanos,
    /// When the first was, on the clock that silence is measured on.
    pub(crate) first_sent: Nanos,
    pub(crate) deadline: Nanos,
    /// The transport is done with the request once it has come this far.
    pub(crate) tx_end: TxSeq,
}

/// A slot in which this side issues requests.
#[derive(Clone, Copy, Debug)]
struct ClientSlot {
    /// Number of the current request, or of the next one if there is none.
    req: ReqNum,
    /// The call in the slot, or [`NONE`].
    call: u32,
}

/// The calls of a session that wait for a slot or a credit: a doubly linked list through the table
/// of calls, so that a call can leave from anywhere.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    first: u32,
    last: u32,
    len: u32,
}

const NONE_WAIT: Waiting = Waiting {
    first: NONE,
    last: NONE,
    len: 0,
};

/// All calls of an endpoint, the slots that they are in, and those that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Slab<Call>,
    slots: Vec<ClientSlot>,
    /// By session.
    waiting: Vec<Waiting>,
}

impl Calls {
    /// Calls that are not free.
    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.calls.live()
    }

    /// One more than the highest index ever used.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// A free entry, whose fields are those of its last call.
    #[inline]
    pub(crate) fn insert(&mut self) -> (CallIdx, &mut Call) {
        let index = self.calls.take();
        (CallIdx(index), self.calls.at_mut(index))
    }

    /// Gives the entry back; its buffers must have been taken.
    #[inline]
    pub(crate) fn remove(&mut self, index: CallIdx) {
        let call = self.at_mut(index);
        debug_assert!(call.request.is_none() && call.response.is_none());
        call.state = CallState::Free;
        call.generation = call.generation.wrapping_add(1);
        self.calls.release(index.0);
    }

    #[inline]
    pub(crate) fn at(&self, index: CallIdx) -> &Call {
        self.calls.at(index.0)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: CallIdx) -> &mut Call {
        self.calls.at_mut(index.0)
    }

    /// The call that an identifier names, unless it has completed.
    pub(crate) fn find(&self, id: CallId) -> Option<CallIdx> {
        let call = self.calls.get(id.index())?;
        let live = call.generation == id.generation() && call.state.is_pending();
        live.then_some(CallIdx(id.index()))
    }
}

/// Slots (rule S1).
impl Calls {
    /// A session has these slots now, whose request numbers start at `first_req`. `all`: slots of
    /// all sessions; `sessions`: how many there ever were.
    pub(crate) fn open_slots(
        &mut self,
        slots: Range<u32>,
        first_req: ReqNum,
        all: usize,
        sessions: u32,
    ) {
        let empty = ClientSlot {
            req: ReqNum(0),
            call: NONE,
        };
        self.slots.resize(all.max(self.slots.len()), empty);
        let room = self.waiting.len().max(sessions as usize);
        self.waiting.resize(room, NONE_WAIT);
        for (number, at) in slots.enumerate() {
            let number = u32::try_from(number).expect("at most 64 slots");
            let req = ReqNum(first_req.0.wrapping_add(number));
            self.slots[at as usize] = ClientSlot { req, call: NONE };
        }
    }

    /// The call in the slot, if its request has this number.
    #[inline]
    pub(crate) fn in_slot(&self, at: usize, req: ReqNum) -> Option<CallIdx> {
        let slot = self.slots[at];
        (slot.call != NONE && slot.req == req).then_some(CallIdx(slot.call))
    }

    /// Puts the call into the free slot; returns the request number that it gets.
    #[inline]
    pub(crate) fn occupy(&mut self, at: usize, call: CallIdx) -> ReqNum {
        let slot = &mut self.slots[at];
        debug_assert!(slot.call == NONE);
        slot.call = call.0;
        slot.req
    }

    /// The request in the slot is over. The slot steps to its next number.
    #[inline]
    pub(crate) fn vacate(&mut self, at: usize, window: u32) {
        let slot = &mut self.slots[at];
        slot.req = slot.req.next(window);
        slot.call = NONE;
    }

    /// A planted bug: request numbers stop instead of wrapping.
    #[cfg(feature = "mutants")]
    pub(crate) fn stop_numbers(&mut self, at: usize, req: ReqNum, window: u32) {
        self.slots[at].req = ReqNum(req.0.saturating_add(window));
    }

    /// A planted bug: the slot's next request has the number of its last one.
    #[cfg(feature = "mutants")]
    pub(crate) fn repeat_number(&mut self, at: usize, req: ReqNum) {
        self.slots[at].req = req;
    }

    /// Number of the current request of the slot, or of the next one.
    pub(crate) fn req_at(&self, at: usize) -> ReqNum {
        self.slots[at].req
    }

    /// The calls in these slots.
    pub(crate) fn in_slots(&self, slots: Range<u32>) -> impl Iterator<Item = CallIdx> {
        let slots = &self.slots[slots.start as usize..slots.end as usize];
        let calls = slots.iter().filter(|slot| slot.call != NONE);
        calls.map(|slot| CallIdx(slot.call))
    }

    /// The call in the slot at this place, if there is one.
    pub(crate) fn call_at(&self, at: u32) -> Option<CallIdx> {
        let call = self.slots[at as usize].call;
        (call != NONE).then_some(CallIdx(call))
    }

    /// Asks for the memory of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, at: usize) {
        dunlin_msgbuf::prefetch_slice(&self.slots, at);
    }

    /// Asks for the memory of the call in a slot.
    #[inline]
    pub(crate) fn prefetch_call(&self, at: usize) {
        if let Some(call) = self
            .slots
            .get(at)
            .and_then(|slot| self.calls.get(slot.call))
        {
            dunlin_msgbuf::prefetch_lines(call, 2);
        }
    }
}

/// The common path: calls about which nothing is unusual.
impl Calls {
    /// The call in the slot, if a whole response of `len` bytes to this request ends it: its user
    /// waits, nothing else of its messages is under way, and the response fits.
    #[inline(always)]
    pub(crate) fn plain_in_slot(
        &self,
        at: usize,
        req: ReqNum,
        len: usize,
        outbox: &Outbox,
    ) -> Option<CallIdx> {
        let slot = self.slots.get(at).filter(|slot| slot.req == req)?;
        let call = self.calls.get(slot.call)?;
        let waits = matches!(call.state, CallState::Sent | CallState::Accepted);
        let room = call.response.as_ref()?.capacity();
        (waits && outbox.is_done(call.tx_end) && len <= room).then_some(CallIdx(slot.call))
    }

    /// When the call's request was first sent.
    #[inline(always)]
    pub(crate) fn first_sent(&self, idx: CallIdx) -> Nanos {
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

    /// A request that leaves now in the free slot; returns its call.
    #[inline(always)]
    pub(crate) fn begin_plain(&mut self, at: usize, begun: Begun) -> CallId {
        let index = self.calls.take();
        let slot = &mut self.slots[at];
        slot.call = index;
        let call = self.calls.at_mut(index);
        call.state = CallState::Sent;
        call.attempts = 0;
        call.sample = false;
        call.req_type = begun.req_type;
        call.req = slot.req;
        call.session = begun.session;
        call.tag = begun.tag;
        call.deadline = begun.deadline;
        call.sent = begun.now;
        call.first_sent = begun.present;
        call.tx_end = begun.tx_end;
        put(&mut call.request, begun.request);
        put(&mut call.response, begun.response);
        CallId::new(index, call.generation)
    }
}

/// A request as it is known when it leaves.
pub(crate) struct Begun {
    pub(crate) session: u32,
    pub(crate) req_type: ReqType,
    pub(crate) tag: Tag,
    pub(crate) request: MsgBuf,
    pub(crate) response: MsgBuf,
    pub(crate) deadline: Nanos,
    pub(crate) now: Nanos,
    /// The same on the clock that silence is measured on.
    pub(crate) present: Nanos,
    pub(crate) tx_end: TxSeq,
}

/// Fills an empty place. Saying that it is empty spares looking whether something must be dropped.
#[inline(always)]
pub(crate) fn put(place: &mut Option<MsgBuf>, buf: MsgBuf) {
    debug_assert!(place.is_none(), "a free call has no msgbufs");
    std::mem::forget(place.replace(buf));
}

/// Calls that wait for a slot or a credit, in order.
impl Calls {
    /// How many calls of the session wait.
    pub(crate) fn waiting(&self, session: u32) -> u32 {
        self.waiting[session as usize].len
    }

    /// The call of the session that waits for longest.
    pub(crate) fn first_waiting(&self, session: u32) -> Option<CallIdx> {
        let first = self.waiting[session as usize].first;
        (first != NONE).then_some(CallIdx(first))
    }

    /// The call that waits next after this one.
    pub(crate) fn next_waiting(&self, idx: CallIdx) -> Option<CallIdx> {
        let next = self.at(idx).next;
        (next != NONE).then_some(CallIdx(next))
    }

    /// Puts the call at the end of those that wait.
    pub(crate) fn enqueue(&mut self, session: u32, idx: CallIdx) {
        let waiting = &mut self.waiting[session as usize];
        let last = std::mem::replace(&mut waiting.last, idx.0);
        waiting.len += 1;
        match last {
            NONE => waiting.first = idx.0,
            last => self.calls.at_mut(last).next = idx.0,
        }
        let call = self.calls.at_mut(idx.0);
        call.state = CallState::Queued;
        call.previous = last;
        call.next = NONE;
    }

    /// Takes the call out of those that wait. True if none is left.
    pub(crate) fn unlink(&mut self, session: u32, idx: CallIdx) -> bool {
        let (previous, next) = (self.at(idx).previous, self.at(idx).next);
        let waiting = &mut self.waiting[session as usize];
        waiting.len -= 1;
        match previous {
            NONE => waiting.first = next,
            previous => self.calls.at_mut(previous).next = next,
        }
        match next {
            NONE => waiting.last = previous,
            next => self.calls.at_mut(next).previous = previous,
        }
        waiting.len == 0
    }
}
