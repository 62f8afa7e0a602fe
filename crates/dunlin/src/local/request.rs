//! A request as an asynchronous handler has it: with a copy of its bytes, for as long as it likes.

use std::rc::Rc;

use dunlin_core::{Held, Session};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use super::error::Error;
use super::port::{self, Port};

/// A request that belongs to its handler. It is answered once; dropped without an answer, it
/// answers [`ErrorCode::HANDLER_FAILED`].
#[must_use = "dropping it answers the client with an error"]
pub struct OwnedRequest {
    port: Rc<dyn Port>,
    req_type: ReqType,
    session: Session,
    held: Option<Held>,
    body: Option<MsgBuf>,
}

impl OwnedRequest {
    pub(super) fn new(port: Rc<dyn Port>, req_type: ReqType, held: Held, body: MsgBuf) -> Self {
        Self {
            port,
            req_type,
            session: held.session(),
            held: Some(held),
            body: Some(body),
        }
    }

    /// The request's bytes.
    pub fn data(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], MsgBuf::data)
    }

    /// The type that the client gave.
    pub const fn req_type(&self) -> ReqType {
        self.req_type
    }

    /// The session that it came on. The handler may call back on it.
    pub const fn session(&self) -> Session {
        self.session
    }

    /// A msgbuf with a copy of the request's bytes, to pass them on.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn to_buf(&self) -> Result<MsgBuf, Error> {
        let copied = port::with(&*self.port, |cx| cx.copy(self.data()));
        Ok(copied.ok_or(Error::Unavailable)??)
    }

    /// Takes the msgbuf with the request's bytes, to pass them on without a copy. From here on the
    /// request has no bytes.
    ///
    /// # Errors
    /// If it was taken before.
    pub fn take_buf(&mut self) -> Result<MsgBuf, Error> {
        self.body.take().ok_or(Error::Unavailable)
    }

    /// The client has cancelled the request, or its session has closed: an answer reaches nobody.
    pub fn is_cancelled(&self) -> bool {
        let held = self.held.as_ref();
        let asked = port::with(&*self.port, |cx| {
            held.is_none_or(|held| held.is_cancelled(cx))
        });
        asked.unwrap_or(true)
    }

    /// Answers with a copy of `bytes`.
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reply(self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        let bytes = bytes.as_ref();
        self.reply_with(bytes.len(), |out| out.copy_from_slice(bytes))
    }

    /// Answers with `len` bytes, which `write` fills; it must not use the endpoint itself.
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reply_with(mut self, len: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        let (held, body) = (self.held.take(), self.body.take());
        let replied = port::with(&*self.port, |cx| {
            if let Some(held) = held {
                held.reply(cx, len, write);
            }
            cx.recycle(body);
        });
        replied.ok_or(Error::Unavailable)
    }

    /// Answers with an error code.
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reject(mut self, code: ErrorCode) -> Result<(), Error> {
        let held = self.held.take();
        let rejected = port::with(&*self.port, |cx| {
            if let Some(held) = held {
                held.reject(cx, code);
            }
        });
        rejected.ok_or(Error::Unavailable)
    }
}

impl Drop for OwnedRequest {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            port::with(&*self.port, |cx| cx.recycle([body]));
        }
    }
}

impl std::fmt::Debug for OwnedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedRequest")
            .field("req_type", &self.req_type)
            .field("session", &self.session)
            .field("bytes", &self.data().len())
            .finish_non_exhaustive()
    }
}
