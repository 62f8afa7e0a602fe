//! Work: the working state of requests that the other side issued, from acceptance until the
//! response is known to have arrived, or `response_hold` has passed (rule S9).
//!
//! ```text
//! accept ──────────one packet──────────▶ Running ──reply, reject, end of handler──▶ Done
//!   └─first packet──▶ Receiving ──last──────▲
//! Done ──next request, ack, hold──▶ Free
//! ```
//! `Running` has a mode: a dispatch handler ends before the next packet is looked at; deferred and
//! background requests outlive the iteration. When a session closes under running work, the work
//! stays as an orphan until its handler has let go of it: a slot never has two live handlers.

use std::ops::Range;

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqNum, ReqType, Token};

use crate::packet::outbox::Outbox;
use crate::session::table::NONE;
use crate::slab::Slab;
use crate::time::Nanos;
use crate::transport::{PeerId, TxSeq};

/// Names work, for handles that outlive the iteration. Stale ones are recognised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct WorkId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Index of work in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkIdx(pub(crate) u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum WorkState {
    #[default]
    Free,
    /// Some of its packets have arrived.
    Receiving,
    /// A dispatch or batch handler has it, within this iteration.
    Dispatched,
    /// A `Held` handle or a background job has it.
    Detached,
    /// Answered; the answer is kept for duplicates.
    Done,
}

/// One request at the server.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) state: WorkState,
    pub(crate) marks: Marks,
    pub(crate) req_type: ReqType,
    pub(crate) req: ReqNum,
    pub(crate) session: u32,
    pub(crate) generation: u32,
    /// Packets of the request.
    pub(crate) packets: u32,
    /// `Receiving`: which of the requests that are being put together.
    pub(crate) incoming: u32,
    /// `Done`: the error that was answered, or `None` for a response.
    pub(crate) error: Option<ErrorCode>,
    /// The response. It stays here between requests of the slot, to be written again.
    pub(crate) response: Option<MsgBuf>,
    /// When the request came.
    pub(crate) arrived: Nanos,
    /// When it was answered, or while it is `Receiving`: when the last packet came.
    pub(crate) answered: Nanos,
    /// The transport is done with the response once it has come this far.
    pub(crate) tx_end: TxSeq,
    pub(crate) answer: Template,
}

/// The common part of the answers to all requests of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Template {
    /// The first word of the header of a response of one packet.
    pub(crate) head: u64,
    pub(crate) token: Token,
    pub(crate) peer: PeerId,
    /// Longest response that is a single packet.
    pub(crate) single: u32,
}

/// Yes or no questions about a request, in one byte: most answers are no to all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    /// The client has asked to cancel.
    pub(crate) const CANCELLED: Self = Self(1);
    /// The request came with a congestion mark, which the answer echoes.
    pub(crate) const CONGESTION: Self = Self(2);
    /// The client wants to know how long the request stayed (rule S10).
    pub(crate) const SAMPLE: Self = Self(4);
    /// The session is gone: no client waits for the answer.
    pub(crate) const ORPHAN: Self = Self(8);
    /// Nothing is unusual.
    pub(crate) const NONE: Self = Self(0);

    #[inline]
    pub(crate) const fn any_of(self, marks: Self) -> bool {
        self.0 & marks.0 != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn with(self, marks: Self, on: bool) -> Self {
        match on {
            true => Self(self.0 | marks.0),
            false => Self(self.0 & !marks.0),
        }
    }

    #[inline]
    pub(crate) const fn set(&mut self, marks: Self, on: bool) {
        *self = self.with(marks, on);
    }
}

/// A request as it is known when its first packet comes.
pub(crate) struct Begun {
    pub(crate) session: u32,
    pub(crate) req: ReqNum,
    pub(crate) req_type: ReqType,
    pub(crate) marks: Marks,
    /// When its packet came.
    pub(crate) arrived: Nanos,
}

impl Work {
    /// A request of one packet, as far as is known, has come.
    #[inline(always)]
    pub(crate) fn begin(&mut self, begun: &Begun) {
        self.state = WorkState::Dispatched;
        self.marks = begun.marks;
        self.generation = self.generation.wrapping_add(1);
        self.req_type = begun.req_type;
        self.req = begun.req;
        self.packets = 1;
        self.session = begun.session;
        self.error = None;
        self.arrived = begun.arrived;
    }

    /// No client waits for the answer any more.
    #[inline]
    pub(crate) fn is_unwanted(&self) -> bool {
        self.marks
            .any_of(Marks(Marks::CANCELLED.0 | Marks::ORPHAN.0))
    }
}

/// A slot in which the other side issues requests.
#[derive(Clone, Copy, Debug)]
struct ServerSlot {
    /// Number of the last request that was accepted (rule S2).
    last: ReqNum,
    /// Its work, or [`NONE`] if its response was given back.
    work: u32,
}

/// The requests of the other sides: their slots, and the working state of those that are not over.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    works: Slab<Work>,
    slots: Vec<ServerSlot>,
}

impl Requests {
    /// One more than the highest index ever used.
    pub(crate) fn len(&self) -> usize {
        self.works.len()
    }

    /// Gives the entry back; its response must have been taken.
    pub(crate) fn remove(&mut self, index: WorkIdx) {
        let work = self.at_mut(index);
        debug_assert!(work.response.is_none());
        work.state = WorkState::Free;
        work.generation = work.generation.wrapping_add(1);
        self.works.release(index.0);
    }

    #[inline]
    pub(crate) fn at(&self, index: WorkIdx) -> &Work {
        self.works.at(index.0)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: WorkIdx) -> &mut Work {
        self.works.at_mut(index.0)
    }

    #[inline]
    pub(crate) fn id(&self, index: WorkIdx) -> WorkId {
        WorkId {
            index: index.0,
            generation: self.at(index).generation,
        }
    }

    /// The work that a handle names, if it is still unanswered.
    pub(crate) fn find(&self, id: WorkId) -> Option<WorkIdx> {
        let work = self.works.get(id.index)?;
        let live = work.generation == id.generation
            && matches!(work.state, WorkState::Dispatched | WorkState::Detached);
        live.then_some(WorkIdx(id.index))
    }
}

/// Slots (rules S1, S2).
impl Requests {
    /// A session has these slots now, whose request numbers start at `first_req`. `all`: slots of
    /// all sessions.
    pub(crate) fn open_slots(&mut self, slots: Range<u32>, first_req: ReqNum, all: usize) {
        let empty = ServerSlot {
            last: ReqNum(0),
            work: NONE,
        };
        self.slots.resize(all.max(self.slots.len()), empty);
        let window = slots.end - slots.start;
        for (number, at) in slots.enumerate() {
            let number = u32::try_from(number).expect("at most 64 slots");
            let req = ReqNum(first_req.0.wrapping_add(number));
            self.slots[at as usize] = ServerSlot {
                last: req.previous(window),
                work: NONE,
            };
        }
    }

    /// Number of the last request that was accepted in the slot.
    #[inline]
    pub(crate) fn last_at(&self, at: usize) -> ReqNum {
        self.slots[at].last
    }

    /// The work of the last request that was accepted in the slot, unless it was given back.
    #[inline]
    pub(crate) fn work_at(&self, at: usize) -> Option<WorkIdx> {
        let work = self.slots[at].work;
        (work != NONE).then_some(WorkIdx(work))
    }

    /// The work of the slot's last request if that has this number and state.
    #[inline]
    pub(crate) fn current(&self, at: usize, req: ReqNum, state: WorkState) -> Option<WorkIdx> {
        let work = self.work_at(at).filter(|_| self.last_at(at) == req)?;
        (self.at(work).state == state).then_some(work)
    }

    /// The work for the slot's next request: that of its last one, if that is over, or new one.
    /// `None` if the last one is not over.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        at: usize,
        req: ReqNum,
        answer: impl FnOnce() -> Template,
    ) -> Option<WorkIdx> {
        let idx = WorkIdx(match self.slots[at].work {
            NONE => self.furnish(at, answer()),
            work => work,
        });
        if !matches!(
            self.works.at(idx.0).state,
            WorkState::Free | WorkState::Done
        ) {
            return None;
        }
        self.slots[at].last = req;
        Some(idx)
    }

    /// The work for a request that has the slot's next number, if nothing is unusual about the
    /// slot's last one: it is over, and the transport is done with its response.
    #[inline(always)]
    pub(crate) fn plain_next(
        &mut self,
        at: usize,
        req: ReqNum,
        window: u32,
        outbox: &Outbox,
        answer: impl FnOnce() -> Template,
    ) -> Option<WorkIdx> {
        let slot = self.slots.get_mut(at)?;
        if slot.last.next(window) != req {
            return None;
        }
        let idx = match slot.work {
            NONE => self.furnish(at, answer()),
            work => work,
        };
        let work = self.works.get(idx)?;
        let over = matches!(work.state, WorkState::Free | WorkState::Done);
        (over && outbox.is_done(work.tx_end)).then_some(WorkIdx(idx))
    }

    /// Gives the slot work of its own.
    #[cold]
    fn furnish(&mut self, at: usize, answer: Template) -> u32 {
        let work = self.works.take();
        self.works.at_mut(work).answer = answer;
        self.slots[at].work = work;
        work
    }

    /// The request, which [`Self::plain_next`] has seen, is the slot's current one.
    #[inline(always)]
    pub(crate) fn begin_plain(&mut self, at: usize, idx: WorkIdx, begun: &Begun) {
        self.slots[at].last = begun.req;
        let work = self.works.at_mut(idx.0);
        work.begin(begun);
        if let Some(response) = &mut work.response {
            response.revoke();
        }
    }

    /// The slot's work was given back; the slot keeps its number.
    pub(crate) fn vacate(&mut self, at: usize) {
        self.slots[at].work = NONE;
    }

    /// Asks for the memory of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, at: usize) {
        dunlin_msgbuf::prefetch_slice(&self.slots, at);
    }

    /// Asks for the memory of the work in a slot.
    #[inline]
    pub(crate) fn prefetch_work(&self, at: usize) {
        if let Some(work) = self
            .slots
            .get(at)
            .and_then(|slot| self.works.get(slot.work))
        {
            dunlin_msgbuf::prefetch_lines(work, 2);
        }
    }
}
