//! The places of long messages whose packets are staged: the endpoint keeps such a message until
//! its call or request ends, so the transport can copy it from there.
//!
//! Invariants: a source names the message of one call or request, and no other, however often its
//! entry is used again. If a call or request ends before its packet has left, its message is copied
//! into the lane first ([`Lane::keep`](super::Lane::keep)). If a message is gone nevertheless,
//! because a peer has answered a request that was not sent yet, the packet leaves without a header,
//! and its peer drops it.
//!
//! Called by `lane`, `packet/outbox.rs`, the end of an iteration, and transports.

use dunlin_wire::ReqNum;

use crate::handle::{CallIdx, RequestIdx};

/// The place of a staged packet's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source(u64);

/// The owner of a message that is not in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// The call with this index and generation, which owns its request.
    Call(CallIdx, u32),
    /// The request with this index and number, which owns its response.
    Request(RequestIdx, ReqNum),
}

/// Finds the messages that are not in a lane.
pub trait Messages<'a>: Copy {
    /// The message; no bytes if it is gone.
    fn message(self, source: Source) -> &'a [u8];
}

/// For a lane that holds all of its messages.
#[derive(Clone, Copy, Debug)]
pub struct InLane;

impl<'a> Messages<'a> for InLane {
    fn message(self, _: Source) -> &'a [u8] {
        &[]
    }
}

/// The bit that distinguishes a request's index from a call's.
const REQUEST: u64 = 1 << 31;

impl Source {
    /// The lane. No entry has this index.
    pub(crate) const LANE: Self = Self(u64::MAX);

    /// The request of a call.
    #[inline(always)]
    pub(crate) fn of_call(index: CallIdx, generation: u32) -> Self {
        let index = u64::from(index.0);
        debug_assert!(index < REQUEST);
        Self(u64::from(generation) << 32 | index)
    }

    /// The response to a request.
    #[inline(always)]
    pub(crate) fn of_request(index: RequestIdx, req: ReqNum) -> Self {
        let index = u64::from(index.0);
        debug_assert!(index < REQUEST - 1);
        Self(u64::from(req.0) << 32 | REQUEST | index)
    }

    /// The owner of the message, which is not in the lane.
    #[inline(always)]
    pub(crate) const fn owner(self) -> Owner {
        let (index, other) = ((self.0 & (REQUEST - 1)) as u32, (self.0 >> 32) as u32);
        match self.0 & REQUEST {
            0 => Owner::Call(CallIdx(index), other),
            _ => Owner::Request(RequestIdx(index), ReqNum(other)),
        }
    }
}
