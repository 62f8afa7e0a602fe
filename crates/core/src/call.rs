//! A call as its user sees it: options, tag and completion.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::Ran;

use crate::error::RpcError;
use crate::handle::Session;
use crate::time::Nanos;

/// A number that the user gives with a call and gets back with its completion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tag(pub u64);

/// Options of a single call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// Complete the call with [`RpcError::DeadlinePassed`] if no response has come within this
    /// time. The endpoint checks once per `scan_interval`.
    pub deadline: Option<Nanos>,
}

/// The end of a call. Each accepted call has exactly one.
#[derive(Debug)]
pub struct Done {
    /// The session of the call.
    pub session: Session,
    /// The tag of the call.
    pub tag: Tag,
    /// `Ok` if `response` holds the response.
    pub result: Result<(), RpcError>,
    /// The request's buffer, unchanged.
    pub request: MsgBuf,
    /// The response, or the untouched buffer if `result` is an error.
    pub response: MsgBuf,
}

impl Done {
    /// Whether a packet of the request may have left this side. A call that never got a slot,
    /// because it waited in the backlog or for its session to open, was not transmitted.
    pub const fn transmitted(&self) -> bool {
        match &self.result {
            Ok(()) => true,
            Err(error) => error.transmitted(),
        }
    }

    /// Whether the handler ran.
    pub const fn ran(&self) -> Ran {
        match &self.result {
            Ok(()) => Ran::Yes,
            Err(error) => error.ran(),
        }
    }
}
