//! The client side's calls: all calls of an endpoint, their slots, and the calls that wait for a
//! slot (rules S1, S5 to S8, S10, S12).
//!
//! ```text
//!          no slot or credit          slot and credit
//! call ──▶ Queued ─────────────▶ Sent ──CR──▶ Accepted ──RESP/ERR──▶ (completion) Free
//!            │ deadline, cancel    │ RESP/ERR       │ deadline, cancel
//!            ▼                     ▼                ▼
//!   (completion) Free     (completion) Free      Zombie ──RESP/ERR──▶ Free
//! ```
//! A call with a message of more than one packet is also `Sending` before it is `Accepted`, or
//! `Receiving` before its completion. In these two states it has a transfer; when the transfer
//! ends, the call is `Sent` again. A zombie is a call that has completed for the user. It keeps its
//! slot and its credit, and resends CANCEL until the server has answered (rule S6).
//!
//! State is private. `calls/issue.rs` sends requests, `calls/answers.rs` handles their answers,
//! `calls/plain.rs` does both for ordinary calls, `calls/waiting.rs` the backlog,
//! `calls/endings.rs` deadlines, cancellation and failure, `calls/parts.rs` the steps of calls with
//! large messages, and `calls/retransmission.rs` calls that have waited too long for an answer. The
//! endpoint's core routes events here; nothing here calls user code: completions are returned or
//! queued.

pub(crate) mod answers;
mod endings;
pub(crate) mod issue;
pub(crate) mod parts;
pub(crate) mod plain;
pub(crate) mod retransmission;
mod slots;
mod waiting;

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use crate::call::{Done, Tag};
use crate::client::kept::Kept;
use crate::client::slot::Slot;
use crate::error::RpcError;
use crate::handle::{CallId, CallIdx, Session, SessionIdx, SlotIdx, TransferIdx};
use crate::packet::words::{high, low};
use crate::slab::Slab;
use crate::time::Nanos;
use crate::transport::TxSeq;

/// The state of a call between issue and end; see the diagram above.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub(crate) enum CallState {
    #[default]
    Free,
    Queued,
    Sent,
    Accepted,
    Zombie,
    /// Packets of the request are on their way.
    Sending,
    /// Packets of the response are on their way.
    Receiving,
}

impl CallState {
    /// The table of transitions.
    fn may_become(self, next: Self) -> bool {
        use CallState::{Accepted, Free, Queued, Receiving, Sending, Sent, Zombie};
        matches!(
            (self, next),
            (Free, Queued | Sent)
                | (Queued, Sent)
                | (Sent, Accepted | Sending | Receiving | Zombie)
                | (Accepted, Receiving | Zombie)
                | (Sending | Receiving, Sent)
                | (Queued | Sent | Accepted | Zombie, Free)
        )
    }

    /// Whether the user waits for the call.
    fn is_pending(self) -> bool {
        !matches!(self, Self::Free | Self::Zombie)
    }

    /// Whether the call has a [`Transfer`](crate::transfer::scoreboard::Transfer).
    #[inline]
    fn has_transfer(self) -> bool {
        self >= Self::Sending
    }
}

/// Both msgbufs of a call. A call has both or neither, and one word shows which.
#[derive(Debug)]
struct Bufs {
    request: MsgBuf,
    response: MsgBuf,
}

const _: () = assert!(size_of::<Option<Bufs>>() == 2 * size_of::<usize>());

/// A call that has ended, with everything that its user gets back.
pub(crate) struct Ended {
    session: Session,
    tag: Tag,
    bufs: Bufs,
}

impl Ended {
    #[inline(always)]
    pub(crate) fn done(self, result: Result<(), RpcError>) -> Done {
        Done {
            session: self.session,
            tag: self.tag,
            result,
            request: self.bufs.request,
            response: self.bufs.response,
        }
    }
}

/// Flags of a call, in one byte: an ordinary call has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct CallMarks(u8);

impl CallMarks {
    const NONE: Self = Self(0);
    /// The request was sent only once, and asked for a round-trip sample.
    const SAMPLE: Self = Self(1);
    /// The transport reads the request itself, not a copy.
    const LENT: Self = Self(2);
    /// The call has a deadline.
    const TIMED: Self = Self(4);
    /// No slot keeps the entry: it goes back to the table when the call ends.
    const LOOSE: Self = Self(8);
    /// Flags that make the end of a call more expensive.
    const UNUSUAL: Self = Self(Self::LENT.0 | Self::LOOSE.0);

    #[inline(always)]
    const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    #[inline(always)]
    const fn with(self, mark: Self) -> Self {
        Self(self.0 | mark.0)
    }

    #[inline(always)]
    const fn set(&mut self, mark: Self, on: bool) {
        self.0 = if on {
            self.0 | mark.0
        } else {
            self.0 & !mark.0
        };
    }
}

/// One call: two cache lines, of which an ordinary call touches the first.
#[derive(Debug)]
#[repr(C, align(64))]
struct Call {
    bufs: Option<Bufs>,
    tag: Tag,
    /// When the first packet was sent, on the clock that measures silence.
    first_sent: Nanos,
    /// When the last packet was sent.
    sent: Nanos,
    /// The session in the upper half, and in the lower half the index of the slot, which has no
    /// meaning while the call has no slot. They share one word, because both are written at once.
    home: u64,
    generation: u32,
    state: CallState,
    /// Retransmissions, probes or CANCELs since the state was entered.
    attempts: u8,
    marks: CallMarks,
    /// Scans that found the call due but left it alone, because the session was not silent. It
    /// follows the three fields above so that the compiler writes all four as one word.
    excuses: u8,
    req_type: ReqType,

    /// With the mark `TIMED`: when the user stops waiting.
    deadline: Nanos,
    /// With the mark `LENT`: the transport has released the request once its sequence has reached
    /// this number.
    tx_end: TxSeq,
    /// In `Sending` and `Receiving`: the transfer.
    transfer: TransferIdx,
    /// While the call waits: its neighbours among the waiting calls of its session.
    previous: CallIdx,
    next: CallIdx,
}

const _: () = {
    assert!(size_of::<Call>() == 128);
    assert!(std::mem::offset_of!(Call, deadline) == 64);
};

impl Default for Call {
    fn default() -> Self {
        Self {
            bufs: None,
            tag: Tag(0),
            first_sent: Nanos::ZERO,
            sent: Nanos::ZERO,
            home: home(SessionIdx::NONE, SlotIdx::NONE),
            generation: 0,
            state: CallState::Free,
            attempts: 0,
            marks: CallMarks::NONE,
            excuses: 0,
            req_type: ReqType(0),
            deadline: Nanos::MAX,
            tx_end: TxSeq(0),
            transfer: TransferIdx::NONE,
            previous: CallIdx::NONE,
            next: CallIdx::NONE,
        }
    }
}

impl Call {
    #[inline]
    fn session(&self) -> SessionIdx {
        SessionIdx(high(self.home))
    }

    /// The request, unless it has gone back to the user.
    #[inline]
    fn request(&self) -> Option<&MsgBuf> {
        self.bufs.as_ref().map(|bufs| &bufs.request)
    }

    /// The buffer of the response, unless it has gone back to the user.
    #[inline]
    fn response(&self) -> Option<&MsgBuf> {
        self.bufs.as_ref().map(|bufs| &bufs.response)
    }

    /// The buffer of the response, for writing.
    #[inline]
    fn response_mut(&mut self) -> Option<&mut MsgBuf> {
        self.bufs.as_mut().map(|bufs| &mut bufs.response)
    }

    /// Puts msgbufs into a free entry. The old value is `None`; `forget` saves the code that would
    /// drop it.
    #[inline(always)]
    fn put(&mut self, request: MsgBuf, response: MsgBuf) {
        debug_assert!(self.bufs.is_none(), "a free call has no msgbufs");
        std::mem::forget(self.bufs.replace(Bufs { request, response }));
    }

    /// The index of the call's slot.
    #[inline]
    fn at(&self) -> SlotIdx {
        SlotIdx(low(self.home))
    }

    /// When the user stops waiting; [`Nanos::MAX`]: never.
    fn deadline(&self) -> Nanos {
        match self.marks.has(CallMarks::TIMED) {
            true => self.deadline,
            false => Nanos::MAX,
        }
    }

    /// The marks of a call with this deadline. Stores the deadline, if there is one.
    #[inline(always)]
    fn marks_until(&mut self, deadline: Option<Nanos>) -> CallMarks {
        match deadline {
            Some(deadline) => {
                self.deadline = deadline;
                CallMarks::TIMED
            }
            None => CallMarks::NONE,
        }
    }

    /// The transport has released the request once its sequence has reached this number.
    #[inline(always)]
    fn tx_end(&self) -> TxSeq {
        match self.marks.has(CallMarks::LENT) {
            true => self.tx_end,
            false => TxSeq(0),
        }
    }

    /// Notes that the transport may read the request until the transport's sequence reaches `end`.
    /// Zero: the transport has a copy.
    #[inline(always)]
    fn lend_until(&mut self, end: TxSeq) {
        if end != TxSeq(0) {
            self.tx_end = self.tx_end().max(end);
            self.marks.set(CallMarks::LENT, true);
        }
    }

    /// Frees the entry, whose buffers have been taken.
    #[inline(always)]
    fn end(&mut self) {
        debug_assert!(self.bufs.is_none());
        self.enter(CallState::Free);
        self.generation = self.generation.wrapping_add(1);
    }

    /// The only place where a call's state changes.
    #[inline(always)]
    fn enter(&mut self, state: CallState) {
        debug_assert!(
            self.state.may_become(state),
            "a call is {:?} and cannot be {state:?}",
            self.state
        );
        self.state = state;
    }
}

#[inline(always)]
const fn home(session: SessionIdx, at: SlotIdx) -> u64 {
    (session.0 as u64) << 32 | at.0 as u64
}

/// The waiting calls of a session: a doubly linked list through the table of calls, so that any of
/// them can be removed.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    first: CallIdx,
    last: CallIdx,
    len: u32,
}

const NO_CALLS: Waiting = Waiting {
    first: CallIdx::NONE,
    last: CallIdx::NONE,
    len: 0,
};

/// All calls of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    table: Slab<CallIdx, Call>,
    slots: Vec<Slot>,
    kept: Kept,
    /// The waiting calls of each session, by its index.
    waiting: Vec<Waiting>,
}

impl Calls {
    /// The number of live calls.
    pub(crate) fn live(&self) -> usize {
        let is_unused = |at: &SlotIdx| self.call_at(*at).is_none();
        self.table.live() - self.kept.iter().filter(is_unused).count()
    }

    /// One more than the highest index ever used.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The call that an identifier names, unless it has completed. Its session must be live.
    pub(crate) fn find(&self, id: CallId) -> Option<CallIdx> {
        let call = self.table.get(id.index())?;
        let is_it = call.generation == id.generation() && call.session() == id.session().index();
        let live = is_it && call.state.is_pending();
        live.then_some(id.index())
    }

    /// Whether the call that an identifier names has ended at this side, but not at the server,
    /// which has not answered (rule S6).
    pub(crate) fn is_unanswered(&self, id: CallId) -> bool {
        let call = self.table.get(id.index());
        call.is_some_and(|call| {
            call.generation == id.generation() && call.state == CallState::Zombie
        })
    }

    /// The session of a live call.
    #[inline]
    pub(crate) fn session_of(&self, idx: CallIdx) -> SessionIdx {
        self.at(idx).session()
    }

    /// The request of the call with this generation; no bytes if that call is over.
    #[inline(always)]
    pub(crate) fn staged(&self, idx: CallIdx, generation: u32) -> &[u8] {
        let call = self.table.get(idx);
        let call = call.filter(|call| call.generation == generation);
        call.and_then(Call::request).map_or(&[], MsgBuf::data)
    }

    /// Corrects the time at which the call's last packet was sent: its burst left at `leaving`,
    /// which is later than the noted time.
    #[inline]
    pub(crate) fn on_left(&mut self, idx: CallIdx, leaving: Nanos) {
        self.at_mut(idx).sent = leaving;
    }

    #[inline]
    fn at(&self, idx: CallIdx) -> &Call {
        self.table.at(idx)
    }

    #[inline]
    fn at_mut(&mut self, idx: CallIdx) -> &mut Call {
        self.table.at_mut(idx)
    }

    /// Frees the entry; its buffers must have been taken.
    #[inline]
    fn remove(&mut self, idx: CallIdx) {
        let call = self.at_mut(idx);
        call.end();
        if call.marks.has(CallMarks::LOOSE) {
            self.table.release(idx);
        }
    }
}

#[cfg(test)]
mod tests;
