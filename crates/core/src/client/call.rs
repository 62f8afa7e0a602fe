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

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ReqNum, ReqType};

use crate::error::RpcError;
use crate::session::table::Session;
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
    /// The calls before and behind it in the session's backlog.
    pub(crate) previous: u32,
    pub(crate) next: u32,
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

/// All calls of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct CallTable {
    calls: Slab<Call>,
}

impl CallTable {
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

    /// The entry for prefetching, if the index is one.
    #[inline]
    pub(crate) fn peek(&self, index: u32) -> Option<&Call> {
        self.calls.get(index)
    }
}
