//! Typed clients over a channel with layers: `KvClient::over(channel.through(service))`.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_service::{
    CallFailure, Carrier, Context as Served, ErrorOf, Failure, MetaError, Method, Outcome,
    SuccessOf, poll,
};
use dunlin_wire::{ErrorCode, Ran};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::channel::Channel;
use crate::error::ChannelError;
use crate::outgoing::{Answer, Outgoing};
use crate::typed::outgoing;

type BoxError = Box<dyn StdError + Send + Sync>;

/// A channel whose typed calls go through a service: layers around the channel, or around several
/// of them. [`Channel::through`] makes it. Notifications go to the channel itself.
#[derive(Clone, Debug)]
pub struct Through<S> {
    channel: Channel,
    service: S,
}

/// The reason why a call through layers has no answer.
#[derive(Debug)]
pub enum ThroughError {
    /// The channel's error.
    Channel(ChannelError),
    /// A layer's error. The layer does not say whether the call ran.
    Layer(BoxError),
}

pin_project! {
    /// A typed call through layers, like [`TypedCall`](crate::TypedCall). It contains the future of
    /// the layers, and allocates nothing.
    #[must_use = "a call that is not awaited is not made"]
    pub struct ThroughCall<S: Service<Outgoing>, M: Method> {
        // The call; absent if the value cannot be encoded, and once the service has the call.
        call: Option<Outgoing>,
        // Present as long as `call` is.
        service: Option<S>,
        // Present once the service has the call.
        #[pin]
        sent: Option<S::Future>,
        method: PhantomData<fn() -> M>,
    }
}

impl Channel {
    /// A channel for typed clients whose calls go through `service`, which is for example layers
    /// around a clone of this channel.
    pub fn through<S>(&self, service: S) -> Through<S> {
        Through {
            channel: self.clone(),
            service,
        }
    }
}

impl<S: Service<Outgoing>, M: Method> ThroughCall<S, M> {
    fn with(mut self, change: impl FnOnce(Outgoing) -> Outgoing) -> Self {
        self.call = self.call.map(change);
        self
    }

    /// Ends the call if it has no answer this long after the layers have sent it.
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

    /// Makes room for a response of this length.
    pub fn room(self, bytes: usize) -> Self {
        self.with(|call| call.room(bytes))
    }

    /// The key whose server gets the call: see [`Outgoing::hash`].
    pub fn hash<K: Hash + ?Sized>(self, key: &K) -> Self {
        self.with(|call| call.hash(key))
    }
}

impl<S, M> Future for ThroughCall<S, M>
where
    S: Service<Outgoing, Response = Answer>,
    S::Error: Into<BoxError>,
    M: Method,
{
    type Output = Result<SuccessOf<M>, Failure<ErrorOf<M>, ThroughError>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let failed = |error: S::Error| Failure::of(ThroughError::from(error.into()));
        let mut this = self.project();
        if let Some(service) = this.service {
            ready!(service.poll_ready(context)).map_err(failed)?;
            if let Some(call) = this.call.take() {
                this.sent.set(Some(service.call(call)));
            }
            *this.service = None;
        }
        let Some(future) = this.sent.as_pin_mut() else {
            return Poll::Ready(Err(Failure::BadValue));
        };
        future.poll(context).map(|ended| {
            let answer = ended.map_err(failed)?;
            poll::read::<M, ThroughError>(&answer).map(M::Outcome::to_owned)
        })
    }
}

impl<S> Carrier for Through<S>
where
    S: Service<Outgoing, Response = Answer> + Clone,
    S::Error: Into<BoxError>,
{
    type At = ();
    type Error = ThroughError;
    type Typed<'a, M: Method>
        = ThroughCall<S, M>
    where
        S: 'a;

    fn typed<'a, M: Method>(&'a self, (): (), value: &'a M::Request) -> ThroughCall<S, M> {
        let call = outgoing::<M>(&self.channel, value);
        ThroughCall {
            service: call.is_some().then(|| self.service.clone()),
            call,
            sent: None,
            method: PhantomData,
        }
    }

    fn typed_notify<M: Method>(
        &self,
        (): (),
        value: &M::Request,
    ) -> Result<(), Failure<Infallible, ThroughError>> {
        let sent = self.channel.typed_notify::<M>((), value);
        sent.map_err(|failure| match failure {
            Failure::Call(error) => Failure::Call(ThroughError::Channel(error)),
            _ => Failure::BadValue,
        })
    }
}

impl From<BoxError> for ThroughError {
    /// Returns the channel's own error, if a layer has passed it on in a box.
    fn from(error: BoxError) -> Self {
        match error.downcast::<ChannelError>() {
            Ok(error) => Self::Channel(*error),
            Err(error) => Self::Layer(error),
        }
    }
}

impl CallFailure for ThroughError {
    fn ran(&self) -> Ran {
        match self {
            Self::Channel(error) => error.ran(),
            Self::Layer(_) => Ran::Unknown,
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Channel(error) => CallFailure::code(error),
            Self::Layer(_) => None,
        }
    }
}

impl fmt::Display for ThroughError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(error) => error.fmt(f),
            Self::Layer(error) => error.fmt(f),
        }
    }
}

impl StdError for ThroughError {}

impl<S: Service<Outgoing>, M: Method> fmt::Debug for ThroughCall<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThroughCall")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
