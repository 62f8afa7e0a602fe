//! Typed calls over a channel. The message is encoded when the call is made, so the call borrows
//! nothing; the metadata in front of it are written for each attempt, because they contain the time
//! that is left.

use std::convert::Infallible;
use std::hash::Hash;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_service::{
    CallFailure, Carrier, Codec, Context as Served, ErrorOf, Failure, MetaError, Method, Outcome,
    SuccessOf, poll,
};
use dunlin_wire::{ErrorCode, Ran, ReqType};

use crate::channel::Channel;
use crate::error::ChannelError;
use crate::notice::Notice;
use crate::outgoing::Outgoing;

/// A typed call: awaiting it gives the value or a failure, dropping it cancels the call. Any thread
/// may poll it.
#[must_use = "a call that is not awaited is not made"]
pub struct TypedCall<M: Method> {
    /// `None`: the value cannot be encoded.
    call: Option<Outgoing>,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> TypedCall<M> {
    fn new(channel: &Channel, value: &M::Request) -> Self {
        Self {
            call: outgoing::<M>(channel, value),
            method: PhantomData,
        }
    }

    fn with(mut self, change: impl FnOnce(Outgoing) -> Outgoing) -> Self {
        self.call = self.call.map(change);
        self
    }

    /// Ends the call if it has no answer this long after its first poll, repeats included. Each
    /// attempt tells the server how much time is left.
    pub fn deadline(self, span: Duration) -> Self {
        self.with(|call| call.deadline(span))
    }

    /// Like [`Self::deadline`], for a call made to serve a request, which has the time `left`.
    pub fn within(self, left: Option<Nanos>) -> Self {
        match left {
            Some(left) => self.deadline(Duration::from_nanos(left.0)),
            None => self,
        }
    }

    /// Sends this key and value with the request: [`Context::metadata`](dunlin_service::Context)
    /// shows them to the handler.
    ///
    /// # Errors
    /// See [`MetaError`].
    pub fn meta(mut self, key: &str, value: &str) -> Result<Self, MetaError> {
        self.call = self.call.map(|call| call.meta(key, value)).transpose()?;
        Ok(self)
    }

    /// For a call that a handler makes to serve a request: the call ends when the client of that
    /// request stops waiting, if it has no earlier deadline, and belongs to the same trace.
    pub fn under(self, context: &Served<'_>) -> Self {
        self.with(|call| call.under(context))
    }

    /// Makes room for a response of this length, if it may be larger than the codec expects. A
    /// response that does not fit ends the call with `ResponseTooLarge`.
    pub fn room(self, bytes: usize) -> Self {
        self.with(|call| call.room(bytes))
    }

    /// The key whose server gets the call: see [`Outgoing::hash`].
    pub fn hash<K: Hash + ?Sized>(self, key: &K) -> Self {
        self.with(|call| call.hash(key))
    }

    /// Sends the call to endpoint `index` of the server that is picked.
    pub fn endpoint(self, index: u16) -> Self {
        self.with(|call| call.endpoint(index))
    }
}

/// The call with an encoded message. `None`: the value cannot be encoded.
pub(crate) fn outgoing<M: Method>(channel: &Channel, value: &M::Request) -> Option<Outgoing> {
    let len = M::Codec::size(value).ok()?;
    let (req_type, room) = (ReqType(M::NUMBER), M::Outcome::ROOM);
    let write = |out: &mut [u8]| M::Codec::encode(value, out);
    let handle = channel.handle.clone();
    let call = Outgoing::typed(handle, req_type, M::IDEMPOTENT, room, len, write);
    Some(call.of_method(M::NAME))
}

impl<M: Method> Future for TypedCall<M> {
    type Output = Result<SuccessOf<M>, Failure<ErrorOf<M>, ChannelError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else {
            return Poll::Ready(Err(Failure::BadValue));
        };
        Pin::new(call).poll(context).map(|ended| {
            let answer = ended.map_err(Failure::of)?;
            poll::read::<M, ChannelError>(&answer).map(M::Outcome::to_owned)
        })
    }
}

impl Carrier for Channel {
    type At = ();
    type Error = ChannelError;
    type Typed<'a, M: Method> = TypedCall<M>;
    type Notice<'a, M: Method> = Notice<M>;

    fn typed<'a, M: Method>(&'a self, (): (), value: &'a M::Request) -> TypedCall<M> {
        TypedCall::new(self, value)
    }

    fn typed_notify<M: Method>(
        &self,
        (): (),
        value: &M::Request,
    ) -> Result<(), Failure<Infallible, ChannelError>> {
        Notice::<M>::new(self, value).send()
    }

    fn typed_notice<'a, M: Method>(&'a self, (): (), value: &'a M::Request) -> Notice<M> {
        Notice::new(self, value)
    }
}

impl CallFailure for ChannelError {
    fn ran(&self) -> Ran {
        self.ran()
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Call { error, .. } => error.code(),
            _ => None,
        }
    }
}

impl<M: Method> std::fmt::Debug for TypedCall<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedCall")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
