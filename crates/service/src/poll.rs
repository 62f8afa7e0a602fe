//! Typed methods on the poll API: plain functions over `Cx`, which the attribute's stubs and glue
//! call. A handler reads its request in the receive buffer; a call allocates nothing.

use std::convert::Infallible;

use dunlin_core::{
    CallError, CallErrorKind, CallId, CallOptions, Cx, DeferredRequest, DispatchFn, Done, Nanos,
    Refuse, Register, Request, Session, Tag,
};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqType};

use crate::codec::{Codec, DecodeError};
use crate::context::Context;
use crate::error::{Error, Failure, NotSent};
use crate::frame::{self, Front, META};
use crate::meta::Meta;
use crate::metadata::Metadata;
use crate::method::{Method, ViewOf};
use crate::outcome::{ErrorOf, Outcome, ValueOf};
use crate::spans::RequestSpan;

/// The result of a call: the value, in the form in which the client gets it, or a failure.
pub type Response<'a, M, C = Error> = Result<
    <<M as Method>::Outcome as Outcome<<M as Method>::Codec>>::View<'a>,
    Failure<ErrorOf<M>, C>,
>;

/// Registers a handler for both request types of a method, without and with metadata.
pub fn register<M: Method, R: Register<App>, App>(rpc: &mut R, run: DispatchFn<App>) {
    for req_type in M::types() {
        rpc.register(req_type, run);
    }
}

/// Reads a request: the message and the metadata.
///
/// # Errors
/// If the bytes are not a valid message of the method; [`reject_undecodable`] answers the client.
#[inline]
pub fn open<'a, M: Method>(
    request: &Request<'a>,
    cx: &Cx<'_>,
) -> Result<(ViewOf<'a, M>, Context<'a>), DecodeError> {
    let (session, req_type) = (request.session(), request.req_type());
    read_request::<M>(session, req_type, request.data(), || cx.now())
}

/// Splits a request of any method into the facts about it and the bytes of its message.
///
/// # Errors
/// If the request has a front that cannot be read.
pub fn message_of<'a>(
    request: &Request<'a>,
    cx: &Cx<'_>,
) -> Result<(Context<'a>, &'a [u8]), DecodeError> {
    let (session, req_type) = (request.session(), request.req_type());
    split(session, req_type, request.data(), || cx.now(), "")
}

/// Answers a request with what its method returned.
#[inline]
pub fn reply<M: Method>(request: Request<'_>, cx: &mut Cx<'_>, value: &ValueOf<M>) {
    match M::Outcome::size(value) {
        Ok(len) => request.reply(cx, len, |out| M::Outcome::encode(value, out)),
        Err(_) => request.reject(cx, ErrorCode::HANDLER_FAILED),
    }
}

/// Answers a deferred request with what its method returned.
pub fn reply_deferred<M: Method>(deferred: DeferredRequest, cx: &mut Cx<'_>, value: &ValueOf<M>) {
    match M::Outcome::size(value) {
        Ok(len) => deferred.reply(cx, len, |out| M::Outcome::encode(value, out)),
        Err(_) => deferred.reject(cx, ErrorCode::HANDLER_FAILED),
    }
}

/// Runs a method on a request: decodes the request, calls `run`, encodes the result.
#[inline]
pub fn serve<M: Method, App>(
    app: &mut App,
    request: Request<'_>,
    cx: &mut Cx<'_>,
    run: impl FnOnce(&mut App, ViewOf<'_, M>, &mut Cx<'_>, Context<'_>) -> ValueOf<M>,
) {
    let (session, req_type) = (request.session(), request.req_type());
    let span = RequestSpan::begin(M::NAME, req_type, request.data(), || cx.peer(session));
    match open::<M>(&request, cx) {
        Ok((view, context)) => {
            let value = span.run(|| run(app, view, cx, context));
            span.on_response();
            reply::<M>(request, cx, &value);
        }
        Err(_) => {
            span.on_refuse(ErrorCode::UNDECODABLE);
            reject_undecodable(request, cx);
        }
    }
}

/// Tells the client that its request could not be decoded.
#[cold]
pub fn reject_undecodable(request: Request<'_>, cx: &mut Cx<'_>) {
    request.refuse(cx, ErrorCode::UNDECODABLE);
}

/// Issues a call with msgbufs from the pool. The completion returns them, and [`response`] reads
/// it.
///
/// # Errors
/// If the value cannot be encoded, there is no memory, or the call is refused.
pub fn call<M: Method>(
    cx: &mut Cx<'_>,
    session: Session,
    value: &M::Request,
    tag: Tag,
    options: CallOptions,
) -> Result<CallId, NotSent> {
    let bufs = match (cx.buf(0), cx.buf(M::Outcome::ROOM)) {
        (Ok(request), Ok(response)) => [request, response],
        (request, response) => {
            let error = request.as_ref().err().or(response.as_ref().err());
            let error = error.map_or(Error::Unavailable, |error| Error::Memory(*error));
            let bufs = [request.ok(), response.ok()].into_iter().flatten();
            return Err(not_sent(error.into(), bufs));
        }
    };
    call_with_bufs::<M>(cx, session, value, bufs, tag, options)
}

/// Issues a call with msgbufs for request and response that an earlier call gave back. If the
/// request's msgbuf is too small, a larger one takes its place.
///
/// # Errors
/// As for [`call`].
#[inline]
pub fn call_with_bufs<M: Method>(
    cx: &mut Cx<'_>,
    session: Session,
    value: &M::Request,
    bufs: [MsgBuf; 2],
    tag: Tag,
    options: CallOptions,
) -> Result<CallId, NotSent> {
    issue::<M>(
        cx,
        session,
        value,
        bufs,
        tag,
        (options, Front::new(options.deadline)),
    )
}

/// Like [`call_with_bufs`], with metadata.
///
/// # Errors
/// As for [`call`].
#[inline]
pub fn call_with_meta<M: Method>(
    cx: &mut Cx<'_>,
    session: Session,
    value: &M::Request,
    bufs: [MsgBuf; 2],
    tag: Tag,
    options: CallOptions,
    meta: &Meta,
) -> Result<CallId, NotSent> {
    let front = Front::with(options.deadline, meta);
    issue::<M>(cx, session, value, bufs, tag, (options, front))
}

#[inline]
fn issue<M: Method>(
    cx: &mut Cx<'_>,
    session: Session,
    value: &M::Request,
    [mut request, response]: [MsgBuf; 2],
    tag: Tag,
    (options, front): (CallOptions, Front<'_>),
) -> Result<CallId, NotSent> {
    if let Err(failure) = write::<M>(cx, &mut request, value, &front) {
        return Err(not_sent(failure, [request, response]));
    }
    let req_type = front.type_of(ReqType(M::NUMBER));
    match cx.call_with(session, req_type, request, response, tag, options) {
        Ok(id) => Ok(id),
        Err(refused) => Err(on_refused(refused)),
    }
}

/// Reads a completion of this method: the response, or the failure.
///
/// # Errors
/// See [`Failure`].
#[inline]
pub fn response<M: Method>(done: &Done) -> Response<'_, M> {
    match done.result {
        Ok(()) => read::<M, Error>(done.response.data()),
        Err(error) => Err(Error::Rpc(error).into()),
    }
}

/// Reads the bytes of a response.
///
/// # Errors
/// The method's own error, or bytes that are not a response of the method.
#[inline]
pub fn read<M: Method, C>(bytes: &[u8]) -> Response<'_, M, C> {
    match M::Outcome::decode(bytes) {
        Ok(Ok(view)) => Ok(view),
        Ok(Err(error)) => Err(Failure::Method(error)),
        Err(error) => Err(Failure::BadResponse(error)),
    }
}

/// Reads the bytes `data` of a request of this type: returns the message and the facts about the
/// request. Calls `now` only if the request has a deadline.
#[inline]
pub(crate) fn read_request<M: Method>(
    session: Session,
    req_type: ReqType,
    data: &[u8],
    now: impl FnOnce() -> Nanos,
) -> Result<(ViewOf<'_, M>, Context<'_>), DecodeError> {
    let (context, message) = split(session, req_type, data, now, M::NAME)?;
    Ok((M::Codec::decode(message)?, context))
}

/// Splits the bytes of a request into the facts about it and its message. Calls `now` only if the
/// request has a deadline.
#[inline(always)]
pub(crate) fn split<'a>(
    session: Session,
    req_type: ReqType,
    mut data: &'a [u8],
    now: impl FnOnce() -> Nanos,
    method: &'static str,
) -> Result<(Context<'a>, &'a [u8]), DecodeError> {
    let (mut deadline, mut metadata) = (None, Metadata::default());
    if req_type.0 & META != 0 {
        let (left, entries, message) = frame::read(data)?;
        (metadata, data) = (entries, message);
        deadline = left.map(|left| now() + left);
    }
    let context = Context {
        session,
        deadline,
        metadata,
        method,
    };
    Ok((context, data))
}

/// The length of a request with this front.
pub(crate) fn len_of<M: Method>(
    value: &M::Request,
    front: &Front<'_>,
) -> Result<usize, crate::EncodeError> {
    Ok(front.size() + M::Codec::size(value)?)
}

#[inline]
fn write<M: Method>(
    cx: &mut Cx<'_>,
    request: &mut MsgBuf,
    value: &M::Request,
    front: &Front<'_>,
) -> Result<(), Failure<Infallible>> {
    let len = len_of::<M>(value, front)?;
    if request.resize(len).is_err() {
        let larger = cx.buf(len).map_err(Error::Memory)?;
        cx.recycle([std::mem::replace(request, larger)]);
    }
    M::Codec::encode(value, front.write(request.data_mut()));
    Ok(())
}

#[cold]
fn on_refused(refused: CallError) -> NotSent {
    let kind: CallErrorKind = refused.kind;
    not_sent(
        Error::Refused(kind).into(),
        [refused.request, refused.response],
    )
}

#[cold]
fn not_sent(failure: Failure<Infallible>, bufs: impl IntoIterator<Item = MsgBuf>) -> NotSent {
    NotSent {
        failure,
        bufs: bufs.into_iter().collect(),
    }
}
