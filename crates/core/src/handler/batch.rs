//! Batch handlers: all requests of one type in an RX burst at once, so that the handler can hide
//! memory latency across them (HERD §4.1.1, design §5).
//!
//! Items are disjoint and own their reply buffers, so a handler may work on several at a time. The
//! entries live in a vector that is reused, so a batch costs no allocation.

use std::ops::Range;

use dunlin_msgbuf::{MsgBuf, TooLong};
use dunlin_wire::{ErrorCode, ReqType};

use crate::handle::{RequestId, RequestIdx, Session, Ticket};
use crate::handler::context::Cx;
use crate::handler::refusal::{Refuse, of_handler};
use crate::handler::request::DeferredRequest;
use crate::server::events::Server;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    None,
    Reply,
    Reject(ErrorCode),
    /// The request is answered, or will be.
    Deferred,
    /// The handler continues with the request later.
    Again,
}

/// A request that waits for the end of the burst: the place of its data, and its answer.
#[derive(Debug)]
pub(crate) struct BatchEntry {
    pub(crate) response: Option<MsgBuf>,
    pub(crate) session: Session,
    pub(crate) frame: usize,
    pub(crate) data: Range<usize>,
    /// The most bytes of the answer. The response's buffer may have more.
    pub(crate) max_response: usize,
    pub(crate) inbound: RequestIdx,
    pub(crate) answer: Answer,
    pub(crate) req_type: ReqType,
}

impl BatchEntry {
    /// Stands for the frame of a request with which the handler may continue later: the request
    /// came in several packets, and lies in a msgbuf of its own.
    pub(crate) const NO_FRAME: usize = usize::MAX;

    /// Sends the answer that the handler has left. Each branch borrows the server by itself: a
    /// shared borrow would go through memory for each item, because the cold branch is a call.
    #[inline(always)]
    pub(crate) fn settle<'a>(&mut self, server: impl FnOnce() -> Server<'a>) {
        if self.answer == Answer::Deferred && self.response.is_none() {
            return;
        }
        match (self.answer, self.response.take()) {
            (Answer::Reply, Some(response)) => server().reply_with(self.inbound, response),
            (answer, unused) => end_without_reply(server(), self.inbound, answer, unused),
        }
    }

    /// Answers immediately, if the common path has not done so. With the server of another endpoint
    /// (`is_home` is false), the request stays unanswered.
    #[inline(never)]
    fn reply_apart(
        &mut self,
        (is_home, mut server): (bool, Server<'_>),
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) {
        if !is_home {
            return;
        }
        if let Some(unused) = self.response.take() {
            server.keep_response(self.inbound, unused);
        }
        server.reply_otherwise(self.inbound, len, write);
        self.answer = Answer::Deferred;
    }
}

/// Ends an item that has no response.
#[cold]
#[inline(never)]
fn end_without_reply(
    mut server: Server<'_>,
    inbound: RequestIdx,
    answer: Answer,
    unused: Option<MsgBuf>,
) {
    if let Some(response) = unused {
        server.keep_response(inbound, response);
    }
    match answer {
        Answer::Reject(code) => server.reject(inbound, code),
        Answer::Deferred | Answer::Again => {}
        Answer::Reply => server.reply_otherwise(inbound, 0, |_| {}),
        Answer::None => server.after_handler(inbound),
    }
}

/// Requests of one type, at most [`crate::config::MAX_BATCH`].
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) entries: &'a mut [BatchEntry],
    pub(crate) data: &'a [&'a [u8]],
}

impl<'a> Batch<'a> {
    /// The bytes of all requests, in order of arrival: in their RX frames, or in the msgbuf of a
    /// request that came in several packets.
    #[inline]
    pub fn data(&self) -> &'a [&'a [u8]] {
        self.data
    }

    /// The number of requests, at least one.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Never true: a handler is not called without requests.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The request with this index, unless it is answered or there is none.
    #[inline(always)]
    pub fn item(&mut self, index: usize) -> Option<BatchItem<'_>> {
        let (entry, data) = (self.entries.get_mut(index)?, self.data.get(index)?);
        (entry.answer == Answer::None).then_some(BatchItem { entry, data })
    }

    /// The requests that are not yet answered, in order of arrival. They are disjoint: a handler
    /// can hold all of them at the same time. They borrow the batch and nothing else, so a function
    /// of the user can return them.
    #[inline]
    pub fn iter_mut<'b>(&'b mut self) -> impl Iterator<Item = BatchItem<'b>> + use<'b> {
        let data: &'b [&'b [u8]] = self.data;
        self.entries
            .iter_mut()
            .zip(data)
            .filter(|(entry, _)| entry.answer == Answer::None)
            .map(|(entry, data)| BatchItem { entry, data })
    }
}

/// One request of a batch. A request fails if it has no answer when the handler returns.
#[derive(Debug)]
pub struct BatchItem<'a> {
    entry: &'a mut BatchEntry,
    data: &'a [u8],
}

impl<'a> BatchItem<'a> {
    /// The request's bytes, in the RX frame.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The session of the request.
    pub fn session(&self) -> Session {
        self.entry.session
    }

    /// Answers with `len` bytes, which `write` fills. The buffer holds old bytes at first.
    ///
    /// # Errors
    /// If `len` is more than the handler was registered for; the client gets
    /// [`ErrorCode::RESPONSE_TOO_LARGE`].
    #[inline]
    pub fn reply(self, len: usize, write: impl FnOnce(&mut [u8])) -> Result<(), TooLong> {
        let capacity = self.entry.max_response;
        let response = self.entry.response.as_mut();
        if len > capacity || response.is_some_and(|it| it.resize(len).is_err()) {
            self.entry.answer = Answer::Reject(ErrorCode::RESPONSE_TOO_LARGE);
            return Err(TooLong { len, capacity });
        }
        // Only an answer of 0 bytes has no buffer.
        let response = self.entry.response.as_mut();
        write(response.map_or(&mut [], MsgBuf::data_mut));
        self.entry.answer = Answer::Reply;
        Ok(())
    }

    /// Answers with `len` bytes, which `write` fills, immediately; see
    /// [`Request::reply`](crate::Request::reply). The answer may have any length. In a handler that
    /// was registered for answers of 0 bytes, this is faster than [`Self::reply`], because no
    /// buffers are taken beforehand; in others, it is slower.
    ///
    /// If the server has no memory for the answer, the client gets the error
    /// `NO_RESPONSE_MEMORY`, and the handler has run. A handler that is registered for longer
    /// answers does not run then.
    #[inline(always)]
    pub fn reply_now(self, cx: &mut Cx<'_>, len: usize, write: impl FnOnce(&mut [u8])) {
        let Self { entry, .. } = self;
        let core = &mut *cx.core;
        if entry.response.is_some() {
            let is_home = core.sessions.is_home(entry.session);
            return entry.reply_apart((is_home, core.server()), len, write);
        }
        // As in `Request::reply`, the common path need not compare endpoints.
        let plain = core
            .requests
            .reply_plain(entry.inbound, len, write, &mut core.context);
        if let Err(write) = plain {
            let is_home = core.sessions.is_home(entry.session);
            return entry.reply_apart((is_home, core.server()), len, write);
        }
        entry.answer = Answer::Deferred;
    }

    /// Answers with an error code; see [`Request::reject`](crate::Request::reject).
    pub fn reject(self, code: ErrorCode) {
        self.entry.answer = Answer::Reject(of_handler(code));
    }

    /// A handle of the request: the same in each call of the handler ([`Self::again`]), and
    /// different from those of the endpoint's other unanswered requests.
    pub fn ticket(&self, cx: &Cx<'_>) -> Ticket {
        let home = cx.core.sessions.is_home(self.entry.session);
        let id = match home {
            true => cx.core.requests.id(self.entry.inbound),
            false => RequestId::NONE,
        };
        cx.ticket(id)
    }

    /// Lets the handler continue with this request later: once the endpoint has handled the packets
    /// that have come, it calls the handler with this request alone. So a handler that needs a long
    /// time for a large request can do a part of the work in each call, and other requests wait
    /// only for one part. The handler must answer in the end, even if the client has given up
    /// meanwhile. With [`Self::ticket`] it finds the state of its work.
    ///
    /// # Errors
    /// Returns the request in three cases: it came in one packet, whose bytes are gone after the
    /// burst; 16 requests already wait; or those that wait would, together with this one, hold more
    /// than a sixteenth of the endpoint's receive budget. The handler must then answer now.
    pub fn again(self) -> Result<(), Self> {
        if self.entry.frame != BatchEntry::NO_FRAME {
            return Err(self);
        }
        self.entry.answer = Answer::Again;
        Ok(())
    }

    /// Keeps the request to be answered later. With the `cx` of another endpoint, the request is
    /// not kept, and the client gets an error.
    pub fn defer(self, cx: &mut Cx<'_>) -> DeferredRequest {
        let deferred = cx.defer(self.entry.inbound, self.entry.session);
        if deferred.dropped.is_some() {
            self.entry.answer = Answer::Deferred;
        }
        deferred
    }
}

impl Refuse for BatchItem<'_> {
    fn refuse(self, _: &mut Cx<'_>, code: ErrorCode) {
        self.entry.answer = Answer::Reject(code);
    }
}
