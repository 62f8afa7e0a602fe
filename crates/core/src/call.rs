//! A call as its user sees it: what is given with it, its name, and its end.

use dunlin_msgbuf::MsgBuf;

use crate::error::RpcError;
use crate::handle::Session;
use crate::time::Nanos;

/// A number of the user's for a call: its completion brings it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tag(pub u64);

/// Options of a single call.
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
    /// The tag of the call.
    pub tag: Tag,
    /// `Ok` if `response` holds the response.
    pub result: Result<(), RpcError>,
    /// The request's buffer, unchanged.
    pub request: MsgBuf,
    /// The response, or the untouched buffer if `result` is an error.
    pub response: MsgBuf,
}
