//! Calls of a client, driven by the owner of an endpoint. The client encodes requests for sessions
//! that the owner has made, and turns the ends of calls into the ends of operations.
//!
//! Invariant: each operation that was begun has exactly one end. The client repeats nothing: the
//! owner decides whether a write may run twice, and over which session it continues.

use std::collections::VecDeque;

use dunlin_core::{CallErrorKind, CallOptions, Cx, Done, Nanos, RpcError, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, Ran, ReqType};

use crate::error::Error;
use crate::wire::{Answer, KEYED, MAX_VALUE, Request, SCAN, SCAN_ROOM, Scan, ScanAnswer};

/// The name of an operation, chosen by the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Token(pub u64);

/// The end of an operation. The answer is still in the message that brought it.
#[derive(Debug)]
pub struct End {
    /// The operation.
    pub token: Token,
    result: Result<MsgBuf, Error>,
}

/// The operations of an endpoint.
#[derive(Debug, Default)]
pub struct Client {
    places: Vec<Option<Call>>,
    free: Vec<u32>,
    ends: VecDeque<End>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    token: Token,
    is_read: bool,
}

/// The mark of this client's tags; the tags of other calls of the endpoint must not have it.
const MARK: u64 = 0x1de8 << 48;

impl End {
    /// The answer to an operation on one key.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Unknown`] a write may have happened.
    pub fn answer(&self) -> Result<Answer<'_>, Error> {
        match Answer::decode(self.bytes()?) {
            Ok(Answer::Refused(status)) => Err(Error::of_status(status)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Error::Incompatible),
        }
    }

    /// The answer to a scan.
    ///
    /// # Errors
    /// [`Error`].
    pub fn scanned(&self) -> Result<ScanAnswer<'_>, Error> {
        match ScanAnswer::decode(self.bytes()?) {
            Ok(ScanAnswer::Refused(status)) => Err(Error::of_status(status)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Error::Incompatible),
        }
    }

    fn bytes(&self) -> Result<&[u8], Error> {
        self.result
            .as_ref()
            .map(MsgBuf::data)
            .map_err(|error| *error)
    }

    /// Returns the memory of the answer to the endpoint's pool, which is faster than dropping it.
    pub fn recycle(self, cx: &mut Cx<'_>) {
        cx.recycle(self.result.ok());
    }
}

impl Client {
    /// Begins an operation on one key, over a session with the server. Its end comes from
    /// [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`], [`Error::TooLong`], [`Error::NoBuffer`],
    /// [`Error::Unavailable`], or [`Error::Incompatible`] if the session does not allow messages of
    /// this length.
    pub fn begin(
        &mut self,
        session: Session,
        request: &Request<'_>,
        token: Token,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        request.check().map_err(Error::of_status)?;
        let mut message = cx.buf(request.size()).map_err(|_| Error::NoBuffer)?;
        request.encode(message.data_mut());
        let room = match request.is_read() {
            true => 1 + MAX_VALUE,
            false => 8,
        };
        let call = Call {
            token,
            is_read: request.is_read(),
        };
        self.issue(session, (KEYED, message, room), call, deadline, cx)
    }

    /// Begins a scan, a count or a sum.
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadRange`], [`Error::BadLimit`], [`Error::NoBuffer`],
    /// [`Error::Unavailable`], or [`Error::Incompatible`] if the session does not allow messages of
    /// this length.
    pub fn begin_scan(
        &mut self,
        session: Session,
        scan: &Scan<'_>,
        token: Token,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        scan.check().map_err(Error::of_status)?;
        let message = cx.copy(&scan.encode()).map_err(|_| Error::NoBuffer)?;
        let call = Call {
            token,
            is_read: true,
        };
        self.issue(session, (SCAN, message, SCAN_ROOM), call, deadline, cx)
    }

    /// The number of operations that have not ended.
    #[must_use]
    pub const fn under_way(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes the next end of an operation.
    pub fn next_end(&mut self) -> Option<End> {
        self.ends.pop_front()
    }

    /// Takes the end of a call of the endpoint. Returns it if the call is not this client's.
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        if done.tag.0 & !u64::from(u32::MAX) != MARK {
            return Some(done);
        }
        let place = u32::try_from(done.tag.0 & u64::from(u32::MAX)).expect("it was masked");
        let call = self.places[place as usize].take();
        let call = call.expect("a call ends once");
        self.free.push(place);
        cx.recycle([done.request]);
        let result = match done.result {
            Ok(()) => Ok(done.response),
            Err(error) => {
                cx.recycle([done.response]);
                Err(call.failure(error))
            }
        };
        let token = call.token;
        self.ends.push_back(End { token, result });
        None
    }

    fn issue(
        &mut self,
        session: Session,
        (req_type, request, room): (ReqType, MsgBuf, usize),
        call: Call,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let Ok(response) = cx.buf(room) else {
            cx.recycle([request]);
            return Err(Error::NoBuffer);
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("memory ends before that")
        });
        let tag = Tag(MARK | u64::from(place));
        let options = CallOptions {
            deadline: Some(deadline.since(cx.now())),
        };
        match cx.call_with(session, req_type, request, response, tag, options) {
            Ok(_) => {
                self.places[place as usize] = Some(call);
                Ok(())
            }
            Err(refused) => {
                self.free.push(place);
                cx.recycle([refused.request, refused.response]);
                Err(match refused.kind {
                    CallErrorKind::TooLarge { .. } => Error::Incompatible,
                    _ => Error::Unavailable,
                })
            }
        }
    }
}

impl Call {
    fn failure(&self, error: RpcError) -> Error {
        match error {
            RpcError::Rejected(ErrorCode::UNDECODABLE | ErrorCode::UNKNOWN_TYPE, _)
            | RpcError::TooLarge { .. }
            | RpcError::ResponseTooLarge { .. } => Error::Incompatible,
            RpcError::DeadlinePassed(_) if self.is_read => Error::DeadlinePassed,
            _ if self.is_read || error.ran() == Ran::No => Error::Unavailable,
            _ => Error::Unknown,
        }
    }
}
