//! Typed clients over a channel with layers: `KvClient::over(channel.through(service))`.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
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
use crate::notice::Notice;
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
        #[pin]
        stage: Stage<S>,
        method: PhantomData<fn() -> M>,
    }
}

pin_project! {
    // Two stages, because with three the compiler makes the drop a jump table, which is not inlined
    // (docs/decisions/channel.md).
    #[project = Now]
    enum Stage<S: Service<Outgoing>> {
        Unsent { unsent: Unsent<S> },
        Sent { #[pin] future: S::Future },
    }
}

/// A call, and the service that will get it. Both are absent if the value cannot be encoded, and
/// once the service has the call. [`Self::discard`] drops them.
struct Unsent<S> {
    call: ManuallyDrop<Option<Outgoing>>,
    service: ManuallyDrop<Option<S>>,
    timing: Timing,
}

/// Whether a call has a deadline that has not begun, and its wait for the layers. Not an `enum`,
/// for the reason that `outgoing/stage.rs` gives.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Timing(
    /// 0: no deadline. 1: a deadline. 2 or more: a deadline and a wait; the name of the wait at the
    /// channel's board is this number minus one.
    u64,
);

impl<S: Service<Outgoing>> Unsent<S> {
    /// Gives the call to the service, once that is ready. `None`: there is no call.
    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<S::Future>, S::Error>> {
        let Some(service) = &mut *self.service else {
            return Poll::Ready(Ok(None));
        };
        ready!(service.poll_ready(context))?;
        let Some(call) = self.call.take() else {
            return Poll::Ready(Ok(None));
        };
        // In a variable, the service would have to be dropped after a panic, which costs more.
        let future = service.call(call);
        *self.service = None;
        Poll::Ready(Ok(Some(future)))
    }

    /// Begins a call with a deadline, which counts from now on, so time that the layers take
    /// belongs to it. Calls without a deadline only compare a word.
    #[cold]
    #[inline(never)]
    fn begin(&mut self) {
        self.end_wait();
        if let Some(call) = &*self.call {
            call.fix_deadline();
        }
    }

    /// Makes a call with a deadline wait until then, if the service does not become ready before.
    /// `Some`: that time has passed.
    #[cold]
    #[inline(never)]
    fn wait(&mut self, context: &mut Context<'_>) -> Option<ChannelError> {
        let call = self.call.as_mut().filter(|_| self.timing != Timing::NONE)?;
        let Some(deadline) = call.fix_deadline() else {
            // The channel has refused the call, or its deadline is beyond all times.
            let refusal = call.refusal()?;
            self.discard();
            return Some(refusal);
        };
        let mut name = self.timing.name();
        let waits = call.wait_until(deadline, &mut name, context);
        self.timing = name.map_or(Timing::DEADLINE, |name| Timing(name + 1));
        let late = waits.err()?;
        self.discard();
        Some(late)
    }
}

impl Timing {
    const NONE: Self = Self(0);
    const DEADLINE: Self = Self(1);

    /// The name of the wait at the channel's board.
    const fn name(self) -> Option<u64> {
        match self.0 {
            0 | 1 => None,
            name => Some(name - 1),
        }
    }
}

impl<S> Unsent<S> {
    /// Drops a call that is not sent. Such calls are rare. Because this is a function of its own,
    /// the drop of other calls is small, and becomes a part of its caller.
    #[cold]
    #[inline(never)]
    fn discard(&mut self) {
        self.end_wait();
        drop((self.call.take(), self.service.take()));
    }

    fn end_wait(&mut self) {
        if let (Some(call), Some(name)) = (&*self.call, self.timing.name()) {
            call.end_wait(name);
            self.timing = Timing::DEADLINE;
        }
    }
}

impl<S> Drop for Unsent<S> {
    #[inline]
    fn drop(&mut self) {
        if self.service.is_some() {
            self.discard();
        }
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
    fn with(self, change: impl FnOnce(Outgoing) -> Outgoing) -> Self {
        match self.try_with(|call| Ok::<_, Infallible>(change(call))) {
            Ok(this) => this,
            Err(never) => match never {},
        }
    }

    /// The call may have a deadline now.
    fn timed(mut self) -> Self {
        if let Stage::Unsent { unsent } = &mut self.stage
            && unsent.timing == Timing::NONE
        {
            unsent.timing = Timing::DEADLINE;
        }
        self
    }

    fn try_with<E>(
        mut self,
        change: impl FnOnce(Outgoing) -> Result<Outgoing, E>,
    ) -> Result<Self, E> {
        if let Stage::Unsent { unsent } = &mut self.stage {
            *unsent.call = unsent.call.take().map(change).transpose()?;
        }
        Ok(self)
    }

    /// Ends the call if it has no answer this long after its first poll. The time for which layers
    /// are not ready counts, and so do repeats and hedges by layers. A layer that waits after it
    /// has taken the call, for a pause or in a queue, ends that wait by itself; attempts after the
    /// deadline then end immediately.
    pub fn deadline(self, span: Duration) -> Self {
        self.timed().with(|call| call.deadline(span))
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
    pub fn meta(self, key: &str, value: &str) -> Result<Self, MetaError> {
        self.try_with(|call| call.meta(key, value))
    }

    /// For a call that a handler makes to serve a request: the call ends when the client of that
    /// request stops waiting, if it has no earlier deadline, and belongs to the same trace.
    pub fn under(self, context: &Served<'_>) -> Self {
        self.timed().with(|call| call.under(context))
    }

    /// Makes room for a response of this length.
    pub fn room(self, bytes: usize) -> Self {
        self.with(|call| call.room(bytes))
    }

    /// The key whose server gets the call: see [`Outgoing::hash`].
    pub fn hash<K: Hash + ?Sized>(self, key: &K) -> Self {
        self.with(|call| call.hash(key))
    }

    /// Sends the call to endpoint `index` of the server that is picked: see
    /// [`Outgoing::endpoint`].
    pub fn endpoint(self, index: u16) -> Self {
        self.with(|call| call.endpoint(index))
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
        let mut stage = self.project().stage;
        if let Now::Unsent { unsent } = stage.as_mut().project() {
            if unsent.timing != Timing::NONE {
                unsent.begin();
            }
            let failed = |error| Failure::of(failed(error));
            let Poll::Ready(sent) = unsent.poll_send(context) else {
                return match unsent.wait(context) {
                    Some(late) => Poll::Ready(Err(Failure::of(ThroughError::Channel(late)))),
                    None => Poll::Pending,
                };
            };
            let Some(future) = sent.map_err(failed)? else {
                return Poll::Ready(Err(Failure::BadValue));
            };
            stage.set(Stage::Sent { future });
        }
        let Now::Sent { future } = stage.project() else {
            unreachable!("the call has just been sent")
        };
        future.poll(context).map(|ended| {
            let answer = ended.map_err(|error| Failure::of(failed(error)))?;
            poll::read::<M, ThroughError>(&answer).map(M::Outcome::to_owned)
        })
    }
}

/// A layer's error, or the channel's.
fn failed<E: Into<BoxError>>(error: E) -> ThroughError {
    ThroughError::from(error.into())
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
    type Notice<'a, M: Method>
        = Notice<M>
    where
        S: 'a;

    fn typed<'a, M: Method>(&'a self, (): (), value: &'a M::Request) -> ThroughCall<S, M> {
        let call = outgoing::<M>(&self.channel, value);
        let service = call.is_some().then(|| self.service.clone());
        let timing = match self.channel.handle.deadline() {
            Some(_) => Timing::DEADLINE,
            None => Timing::NONE,
        };
        let stage = Stage::Unsent {
            unsent: Unsent {
                call: ManuallyDrop::new(call),
                service: ManuallyDrop::new(service),
                timing,
            },
        };
        ThroughCall {
            stage,
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

    fn typed_notice<'a, M: Method>(&'a self, (): (), value: &'a M::Request) -> Notice<M> {
        Notice::new(&self.channel, value)
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
