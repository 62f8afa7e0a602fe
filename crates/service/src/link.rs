//! Typed methods for futures, on any executor: an endpoint implements [`Link`], and its requests
//! implement [`IncomingRequest`].

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use dunlin_core::{CallOptions, Facts, Nanos, Session};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use crate::codec::{Codec, DecodeError};
use crate::context::Context;
use crate::error::{Error, Failure};
use crate::frame::Front;
use crate::meta::{Meta, MetaError};
use crate::method::{Method, ViewOf};
use crate::outcome::{ErrorOf, Outcome, SuccessOf, ValueOf};
use crate::poll;
use crate::under::trace_under;

/// A client stub's access to an endpoint: `dunlin::Caller`.
pub trait Link {
    /// A call in flight.
    type Call: Future<Output = Result<Self::Reply, Self::Failed>> + Unpin;
    /// The response of a call.
    type Reply: AsRef<[u8]>;
    /// The failure of a call.
    type Failed: Into<Error>;

    /// A msgbuf of `len` bytes.
    ///
    /// # Errors
    /// If there is no memory.
    fn buf(&self, len: usize) -> Result<MsgBuf, Error>;

    /// The time now, on the endpoint's clock.
    fn now(&self) -> Nanos;

    /// Makes a call with room for a response of `room` bytes. The first poll issues it.
    fn begin(
        &self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        room: usize,
        options: CallOptions,
    ) -> Self::Call;

    /// Issues a call without waiting for its end.
    ///
    /// # Errors
    /// If it is refused.
    fn notify(
        &self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
    ) -> Result<(), Self::Failed>;
}

/// A request for an asynchronous service: `dunlin::ServiceRequest`, or one for another executor.
///
/// For Dunlin's own crates and the code that `#[service]` makes. It may change in any release.
#[doc(hidden)]
pub trait IncomingRequest {
    /// The request's bytes.
    fn data(&self) -> &[u8];

    /// The request's type.
    fn req_type(&self) -> ReqType;

    /// The session on which the request came.
    fn session(&self) -> Session;

    /// The time now, on the endpoint's clock.
    fn now(&self) -> Nanos;

    /// Answers with `len` bytes that `write` fills.
    ///
    /// # Errors
    /// If the endpoint is gone.
    fn reply(self, len: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Error>;

    /// Answers with an error code, as if the handler had returned it.
    ///
    /// # Errors
    /// If the endpoint is gone.
    fn reject(self, code: ErrorCode) -> Result<(), Error>;

    /// Answers that no method ran, and why.
    ///
    /// # Errors
    /// If the endpoint is gone.
    fn refuse(self, why: Refusal) -> Result<(), Error>;
}

/// Why no method runs for a request.
///
/// For Dunlin's own crates and the code that `#[service]` makes. It may change in any release.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The service has no method of this number.
    UnknownMethod,
    /// The request is not a valid message of the method.
    Undecodable,
    /// The request is larger than its service accepts.
    TooLarge,
    /// The server has no room for the request.
    Overloaded,
    /// The threads that run the service's methods have ended.
    ShuttingDown,
}

impl Refusal {
    /// The code that the client gets.
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::UnknownMethod => ErrorCode::UNKNOWN_TYPE,
            Self::Undecodable => ErrorCode::UNDECODABLE,
            Self::TooLarge => ErrorCode::TOO_LARGE,
            Self::Overloaded => ErrorCode::OVERLOADED,
            Self::ShuttingDown => ErrorCode::SHUTTING_DOWN,
        }
    }
}

/// A service whose methods are futures; the attribute implements it.
///
/// For Dunlin's own crates and the code that `#[service]` makes. It may change in any release.
#[doc(hidden)]
pub trait AsyncService<R: IncomingRequest>: 'static {
    /// The service's name: the name of its trait.
    const NAME: &'static str;

    /// The numbers of the service's methods.
    const METHODS: &'static [u16];
    /// The names of the methods, in the same order, such as `Kv.get`.
    const NAMES: &'static [&'static str] = &[];
    /// Facts for the endpoint to keep: the reflection of the service, if it has one.
    const FACTS: Option<Facts> = None;

    /// Answers a request for one of these methods, with or without metadata.
    fn answer(self: Rc<Self>, request: R) -> impl Future<Output = Result<(), Error>> + 'static;
}

/// A service whose methods are futures that any thread may run; the attribute with the option
/// `send` implements it.
pub trait SendService<R: IncomingRequest>: Send + Sync + 'static {
    /// The service's name: the name of its trait.
    const NAME: &'static str;

    /// The numbers of the service's methods.
    const METHODS: &'static [u16];
    /// The names of the methods, in the same order, such as `Kv.get`.
    const NAMES: &'static [&'static str] = &[];
    /// Facts for the endpoint to keep: the reflection of the service, if it has one.
    const FACTS: Option<Facts> = None;

    /// Answers a request for one of these methods, with or without metadata.
    fn answer(
        self: Arc<Self>,
        request: R,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static;
}

/// A typed call: awaiting it gives the value or a failure. Dropping it cancels the call.
#[must_use = "a call that is not awaited is not made"]
pub struct Unary<'a, L: Link, M: Method> {
    link: &'a L,
    session: Session,
    value: &'a M::Request,
    options: CallOptions,
    /// The time at which the client of the served request stops waiting; no deadline of the call
    /// is later. [`Nanos::MAX`]: there is none. Read only for calls with a deadline.
    limit: Nanos,
    room: usize,
    /// `None`: the call has no metadata.
    meta: Option<Meta>,
    call: Option<L::Call>,
}

impl<'a, L: Link, M: Method> Unary<'a, L, M> {
    /// Makes a call of this method.
    pub fn new(link: &'a L, session: Session, value: &'a M::Request) -> Self {
        Self {
            link,
            session,
            value,
            options: CallOptions::default(),
            limit: Nanos::MAX,
            room: M::Outcome::ROOM,
            meta: None,
            call: None,
        }
    }

    /// Ends the call with an error if no response has come this long after it was issued. The
    /// request carries this time to the server.
    pub fn deadline(mut self, span: Duration) -> Self {
        self.options.deadline = Some(span.into());
        self
    }

    /// Like [`Self::deadline`], for a call that a handler makes to serve a request: `left` is how
    /// much longer the client of that request waits.
    pub fn within(mut self, left: Option<Nanos>) -> Self {
        self.options.deadline = left.or(self.options.deadline);
        self
    }

    /// Makes room for a response of this length, if it may be larger than the codec expects
    /// ([`Codec::ROOM`]). A response that does not fit ends the call with `ResponseTooLarge`.
    pub fn room(mut self, bytes: usize) -> Self {
        self.room = bytes;
        self
    }

    /// Sends this key and value with the request: [`Context::metadata`] shows them to the handler.
    ///
    /// # Errors
    /// See [`MetaError`].
    #[inline]
    pub fn meta(mut self, key: &str, value: &str) -> Result<Self, MetaError> {
        self.meta.get_or_insert_default().add(key, value)?;
        Ok(self)
    }

    /// For a call that a handler makes to serve a request. The call belongs to that request's
    /// trace, and ends at the latest when that request's client stops waiting.
    pub fn under(mut self, context: &Context<'_>) -> Self {
        if let Some(end) = context.deadline {
            self.limit = end.min(self.limit);
            self.options.deadline.get_or_insert(Nanos::MAX);
        }
        if trace_under(context).is_some() {
            self.meta.get_or_insert_default().under(context);
        }
        self
    }

    fn begin(&mut self) -> Result<L::Call, Failure<Infallible>> {
        if let Some(span) = &mut self.options.deadline
            && self.limit != Nanos::MAX
        {
            *span = self.limit.since(self.link.now()).min(*span);
        }
        let options = self.options;
        let front = match &self.meta {
            None => Front::new(options.deadline),
            Some(meta) => Front::with(options.deadline, meta),
        };
        let request = encoded::<L, M>(self.link, self.value, &front)?;
        let req_type = front.type_of(ReqType(M::NUMBER));
        Ok(self
            .link
            .begin(self.session, req_type, request, self.room, options))
    }
}

impl<L: Link, M: Method> Future for Unary<'_, L, M> {
    type Output = Result<SuccessOf<M>, Failure<ErrorOf<M>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let call = match &mut this.call {
            Some(call) => call,
            None => match this.begin() {
                Ok(call) => this.call.insert(call),
                Err(failure) => return Poll::Ready(Err(failure.widen())),
            },
        };
        Pin::new(call).poll(context).map(|ended| {
            let reply = ended.map_err(|failed| Failure::from(failed.into()))?;
            poll::read::<M, Error>(reply.as_ref()).map(M::Outcome::to_owned)
        })
    }
}

pub(crate) fn encoded<L: Link, M: Method>(
    link: &L,
    value: &M::Request,
    front: &Front<'_>,
) -> Result<MsgBuf, Failure<Infallible>> {
    let mut request = link.buf(poll::len_of::<M>(value, front)?)?;
    M::Codec::encode(value, front.write(request.data_mut()));
    Ok(request)
}

/// Reads a request: the message and the metadata.
///
/// # Errors
/// If the request is not a valid message of this method.
pub fn open<M: Method, R: IncomingRequest>(
    request: &R,
) -> Result<(ViewOf<'_, M>, Context<'_>), DecodeError> {
    let (session, req_type) = (request.session(), request.req_type());
    poll::read_request::<M>(session, req_type, request.data(), || request.now())
}

/// Reads the facts about a request, for code that does not know the type of its message. `method`
/// is the method's name.
///
/// # Errors
/// If the request has no valid front.
pub fn context_of<'a, R: IncomingRequest>(
    request: &'a R,
    method: &'static str,
) -> Result<Context<'a>, DecodeError> {
    message_of(request, method).map(|(context, _)| context)
}

/// Like [`context_of`], but also returns the bytes of the message.
///
/// # Errors
/// As for [`context_of`].
pub fn message_of<'a, R: IncomingRequest>(
    request: &'a R,
    method: &'static str,
) -> Result<(Context<'a>, &'a [u8]), DecodeError> {
    let (session, req_type) = (request.session(), request.req_type());
    poll::split(session, req_type, request.data(), || request.now(), method)
}

/// Like [`open`], but returns a message that the handler owns.
///
/// # Errors
/// As for [`open`].
pub fn open_owned<M: Method, R: IncomingRequest>(
    request: &R,
) -> Result<(M::Request, Context<'_>), DecodeError> {
    let (view, context) = open::<M, R>(request)?;
    Ok((M::Codec::to_owned(view), context))
}

/// Answers a request with what its method returned.
///
/// # Errors
/// If the endpoint is gone.
pub fn answer<M: Method, R: IncomingRequest>(request: R, value: &ValueOf<M>) -> Result<(), Error> {
    match M::Outcome::size(value) {
        Ok(len) => request.reply(len, |out| M::Outcome::encode(value, out)),
        Err(_) => request.reject(ErrorCode::HANDLER_FAILED),
    }
}

impl<L: Link, M: Method> std::fmt::Debug for Unary<'_, L, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unary")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
