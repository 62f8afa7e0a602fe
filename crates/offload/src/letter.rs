//! The content of a slot: a request on its way to the executor, and its end on the way back.

use dunlin_core::{Nanos, Session};
use dunlin_mailbox as mailbox;
use dunlin_msgbuf::MsgBuf;
use dunlin_service::Refusal;
use dunlin_service::spans::RequestSpan;
use dunlin_wire::{ErrorCode, ReqType};

/// A slot keeps the memory of a long response for the next one if it has at most this many bytes.
const KEPT: usize = 1 << 10;

/// A request as the endpoint passes it on.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) session: Session,
    pub(crate) req_type: ReqType,
    /// The time at which the endpoint passes the request on; zero if the request cannot have a
    /// deadline.
    pub(crate) at: Nanos,
    pub(crate) body: MsgBuf,
    pub(crate) span: RequestSpan,
}

/// The end of a request.
#[derive(Debug)]
pub(crate) enum End {
    /// The response is in this msgbuf.
    Reply(MsgBuf),
    /// The response is in the letter's own memory.
    LongReply,
    Reject(ErrorCode),
    Refuse(Refusal),
}

#[derive(Debug, Default)]
pub(crate) struct Letter {
    request: Option<Arrived>,
    end: Option<End>,
    /// Memory for a response that does not fit into the request's msgbuf.
    long: Vec<u8>,
}

impl Letter {
    /// Prepares the slot for a request.
    pub(crate) fn on_request(&mut self, request: Arrived) {
        self.request = Some(request);
        self.end = None;
    }

    /// The executor takes the request.
    pub(crate) fn take_request(&mut self) -> Option<Arrived> {
        self.request.take()
    }

    /// The executor takes memory for a long response.
    pub(crate) fn take_long(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.long)
    }

    /// The request has the response `long`.
    pub(crate) fn on_long_reply(&mut self, long: Vec<u8>) {
        self.long = long;
        self.end = Some(End::LongReply);
    }

    pub(crate) fn on_end(&mut self, end: End) {
        self.end = Some(end);
    }

    /// The endpoint takes the end. If there is none, no handler has had the request: it is refused.
    pub(crate) fn take_end(&mut self) -> End {
        self.end
            .take()
            .unwrap_or(End::Refuse(Refusal::ShuttingDown))
    }

    /// The content of a long response.
    pub(crate) fn long(&self) -> &[u8] {
        &self.long
    }

    /// Drops the msgbufs, and the memory of a response longer than [`KEPT`]: the call is over.
    pub(crate) fn clear(&mut self) {
        (self.request, self.end) = (None, None);
        if self.long.capacity() > KEPT {
            self.long = Vec::new();
        }
    }
}

impl mailbox::Letter for Letter {
    fn on_closed(&mut self) {
        self.on_end(End::Refuse(Refusal::ShuttingDown));
    }
}
