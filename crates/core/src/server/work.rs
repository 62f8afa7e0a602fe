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

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqNum, ReqType};

use crate::slab::Slab;
use crate::time::Nanos;
use crate::transport::TxSeq;

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
    /// The client has asked to cancel.
    pub(crate) cancelled: bool,
    /// The request came with a congestion mark, which the answer echoes.
    pub(crate) congestion: bool,
    /// The client wants to know how long the request stayed (rule S10).
    pub(crate) sample: bool,
    /// The session is gone: nobody waits for the answer.
    pub(crate) orphan: bool,
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
}

/// All work of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct WorkTable {
    works: Slab<Work>,
}

impl WorkTable {
    /// One more than the highest index ever used.
    pub(crate) fn len(&self) -> usize {
        self.works.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self) -> WorkIdx {
        WorkIdx(self.works.take())
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

    /// The entry for prefetching, if the index is one.
    #[inline]
    pub(crate) fn peek(&self, index: u32) -> Option<&Work> {
        self.works.get(index)
    }
}
