//! A call as its user sees it: what is given with it, its name, and its end.

use dunlin_msgbuf::MsgBuf;

use crate::error::RpcError;
use crate::session::table::Session;
use crate::time::Nanos;

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
    pub(super) const fn index(self) -> u32 {
        self.word as u32
    }

    #[inline]
    pub(super) const fn generation(self) -> u32 {
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
