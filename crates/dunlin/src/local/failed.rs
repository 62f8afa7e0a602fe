//! A call that failed, with its msgbufs.

use dunlin_msgbuf::MsgBuf;
use dunlin_service::Error;

/// A call that failed, with its msgbufs.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: Error,
    /// The request, unchanged.
    pub request: MsgBuf,
    /// The buffer for the response, if there was one.
    pub response: Option<MsgBuf>,
}

impl From<Failed> for Error {
    /// The msgbufs go back to their pool.
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failed {}
