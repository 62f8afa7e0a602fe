//! A call over a channel, as a future that any thread may poll.

mod stage;
#[cfg(feature = "tower")]
mod waiting;

use std::fmt::Display;
use std::hash::Hash;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dunlin_channel::key_of;
use dunlin_core::{Clock, Nanos, RpcError};
use dunlin_mailbox::{Places, Slot, TakenPlace};
use dunlin_msgbuf::MsgBuf;
use dunlin_nexus::TscClock;
use dunlin_service::spans::{CallSpan, Hops};
use dunlin_service::{CallFailure, Context as Served, Error, Key, MetaError};
use dunlin_wire::control::EndpointIndex;
use dunlin_wire::{Ran, ReqType};

use crate::error::ChannelError;
use crate::handle::Handle;
use crate::letter::Letter;
use crate::orders::Order;

use stage::{Now, Refusal, Stage};

/// The default room for a response, in bytes.
const ROOM: usize = 4096;

const OVER: &str = "a call is not polled after its end";

/// A call. Its first poll sends it; dropping it cancels it, or, before that, discards it.
///
/// Once a slot has been used, it keeps a msgbuf of the endpoint's thread. The caller writes later
/// requests straight into that, so only the transport copies them. A request that is larger than
/// those before it, or than 64 KiB, is copied once more. Only the transport copies the response:
/// the [`Answer`] is its msgbuf.
#[must_use = "a call that is not awaited is not made"]
#[derive(Debug)]
pub struct Outgoing {
    channel: Handle,
    stage: Stage,
    span: CallSpan,
}

/// Room for one call of a channel, reserved by [`Channel::permit`](crate::Channel::permit).
/// Dropping it frees the room.
#[derive(Debug)]
pub struct Permit {
    places: Arc<Places>,
    /// A call has the room.
    is_used: bool,
}

/// A response, in a msgbuf. Any thread may drop it, which returns the msgbuf to its endpoint.
#[derive(Debug)]
pub struct Answer(MsgBuf);

impl Outgoing {
    pub(crate) fn new(channel: Handle, req_type: ReqType, body: &[u8]) -> Self {
        Self::begin(channel, req_type, ROOM, |letter| letter.on_body(body))
    }

    /// A call with a message of `len` bytes, which `write` encodes. If there is no slot, the call
    /// does not run.
    pub(crate) fn typed(
        channel: Handle,
        req_type: ReqType,
        is_idempotent: bool,
        room: usize,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Self {
        let gap = channel.gap();
        Self::begin(channel, req_type, room, |letter| {
            letter.terms.idempotent = is_idempotent;
            letter.on_message(gap, len, write);
        })
    }

    fn begin(
        channel: Handle,
        req_type: ReqType,
        room: usize,
        write: impl FnOnce(&mut Letter),
    ) -> Self {
        let stage = match channel.mailbox().hold() {
            None => Now::Refused(Refusal::Full),
            Some(slot) => Now::New {
                slot,
                has_place: false,
            },
        };
        let outgoing = Self {
            stage: stage.into(),
            channel,
            span: CallSpan::new(),
        };
        // An encoder may panic, so it runs only now that `outgoing` owns the slot.
        outgoing.write(|letter| {
            let channel = &outgoing.channel;
            letter.on_call(channel.id(), req_type, room, channel.deadline());
            write(letter);
        });
        outgoing
    }

    /// Names the method, for the span of the call.
    #[inline(always)]
    pub(crate) fn of_method(mut self, name: &'static str) -> Self {
        self.span.on_method(name);
        self
    }

    /// Ends the call, with all its repeats, if it has no answer this long after its first poll. If
    /// a policy copies the call before its first poll ([`Self::duplicate`]), call and copy end this
    /// long after the copying.
    pub fn deadline(self, span: Duration) -> Self {
        self.write(|letter| letter.span = Some(span));
        self
    }

    /// States that the call may run twice, and late. Only such calls are hedged, and are repeated
    /// after an error that leaves open whether they ran.
    pub fn idempotent(self, is_idempotent: bool) -> Self {
        self.write(|letter| letter.terms.idempotent = is_idempotent);
        self
    }

    /// Makes room for a response of this length; 4096 bytes without this.
    pub fn room(self, bytes: usize) -> Self {
        self.write(|letter| letter.room = bytes);
        self
    }

    /// The key whose server gets the call, for [`Pick::Hash`](crate::Pick::Hash): a number, a text,
    /// bytes, or any other value that can be hashed. Programs with the same servers pick the same
    /// one for equal keys, because the hash is fixed, with the limits that
    /// `dunlin::channel::key_of` names.
    pub fn hash<K: Hash + ?Sized>(self, key: &K) -> Self {
        self.write(|letter| letter.terms.key = Some(key_of(key)));
        self
    }

    /// Sends the call to this endpoint of the server that is picked. Without it, the channel takes
    /// the endpoint of [`ChannelBuilder::endpoint`](crate::ChannelBuilder::endpoint), or chooses
    /// among the first four that the server announces;
    /// [`endpoints_per_server`](crate::ChannelBuilder::endpoints_per_server) changes this number.
    /// No server has an endpoint 65535: the call then fails with [`ChannelError::Endpoint`].
    pub fn endpoint(mut self, index: u16) -> Self {
        self.write(|letter| letter.terms.endpoint = Some(index.into()));
        if index == EndpointIndex::ANY.0 {
            self.refuse(Refusal::Endpoint);
        }
        self
    }

    /// Sends this key and value with the request; the typed handler's `Context::metadata` shows
    /// them. The highest bit of the request's type is then set, as in typed calls with a deadline.
    ///
    /// # Errors
    /// See [`MetaError`].
    #[inline]
    pub fn meta(self, key: &str, value: &str) -> Result<Self, MetaError> {
        self.meta_at(Key::new(key)?, value)
    }

    fn meta_at(mut self, key: Key<'_>, value: &str) -> Result<Self, MetaError> {
        let mut added = Ok(());
        self.write(|letter| added = letter.on_meta(key, value));
        self.span.on_meta(key.text());
        added.map(|()| self)
    }

    /// For a call that a handler makes to serve a request: the call's deadline is at most that of
    /// the request, and the call belongs to the same trace.
    pub fn under(self, context: &Served<'_>) -> Self {
        self.write(|letter| letter.on_under(context));
        self
    }

    /// Uses the room that was reserved for the call. If the permit is from another channel, the
    /// call needs other room, as without a permit.
    pub fn permit(self, mut permit: Permit) -> Self {
        if !Arc::ptr_eq(&permit.places, self.channel.places()) {
            return self;
        }
        permit.is_used = true;
        self.with_place(true)
    }

    /// Uses a place that is reserved in the call's own channel, if there is one.
    #[inline]
    pub(crate) fn with_place(mut self, is_reserved: bool) -> Self {
        if is_reserved {
            match self.stage.now() {
                Now::New {
                    slot,
                    has_place: false,
                } => {
                    self.stage = Now::New {
                        slot,
                        has_place: true,
                    }
                    .into()
                }
                _ => self.channel.places().free(),
            }
        }
        self
    }

    /// Whether the call may run twice, and late.
    pub fn is_idempotent(&self) -> bool {
        let read = |slot| self.channel.mailbox().with(slot, |it| it.terms.idempotent);
        self.stage.new_slot().is_some_and(read)
    }

    /// Another call with the same request, for policies that repeat or hedge. `None`: this call has
    /// already been polled. If the deadline does not count yet, it counts from now on, so all
    /// copies end at the same time; [`Self::deadline`] gives a copy a time of its own. If a policy
    /// repeats a call that has no [time left](Self::left), the repeat fails, and its error states
    /// only that the repeat has not run.
    pub fn duplicate(&self) -> Option<Self> {
        self.fix_deadline();
        self.at(&self.channel)
    }

    /// The time until the deadline of a call that has not been polled. `None`: it has no deadline.
    pub fn left(&self) -> Option<Duration> {
        let now = TscClock::new().now();
        let read = |slot| self.channel.mailbox().with(slot, |it| it.left(now));
        self.stage.new_slot().and_then(read)
    }

    /// Makes the deadline of the call count from now on, unless it already counts, and returns it.
    #[inline]
    pub(crate) fn fix_deadline(&self) -> Option<Nanos> {
        let fix = |letter: &mut Letter| letter.fix_deadline(|| TscClock::new().now());
        let slot = self.stage.new_slot()?;
        self.channel.mailbox().with(slot, fix)
    }

    /// Whether this is a call over `channel`.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn is_over(&self, channel: &Handle) -> bool {
        self.channel.is_same(channel)
    }

    /// A call with the same request over `channel`.
    pub(crate) fn at(&self, channel: &Handle) -> Option<Self> {
        if let Now::Refused(_) = self.stage.now() {
            return Some(Self {
                channel: channel.clone(),
                stage: self.stage,
                span: self.span.of_copy(),
            });
        }
        let slot = self.stage.new_slot()?;
        let mut copied = self.channel.mailbox().with(slot, |letter| {
            Self::begin(channel.clone(), letter.req_type, 0, |copy| {
                copy.on_copy(letter)
            })
        });
        copied.span = self.span.of_copy();
        Some(copied)
    }

    /// Sends the request, and does not wait for a response: see
    /// [`Channel::notify`](crate::Channel::notify). Metadata, key and endpoint are those of the
    /// call; a deadline has no effect.
    ///
    /// # Errors
    /// [`ChannelError::Full`], and [`ChannelError::Endpoint`] for endpoint 65535.
    ///
    /// # Panics
    /// If the call has been polled.
    pub fn notify(mut self) -> Result<(), ChannelError> {
        let (slot, has_place) = match self.stage.now() {
            Now::New { slot, has_place } => (slot, has_place),
            Now::Refused(why) => return self.end_refused(why),
            Now::Posted(_) | Now::Over => panic!("{OVER}"),
        };
        let Some(place) = self.place(slot, has_place) else {
            return self.end_refused(Refusal::Full);
        };
        let mailbox = self.channel.mailbox();
        mailbox.with(slot, |letter| {
            letter.is_notice = true;
            letter.terms.once = true;
            (letter.span, letter.terms.deadline) = (None, None);
            self.span.begin(Some(letter.req_type), letter.metadata());
            letter.on_sent(place, || TscClock::new().now());
        });
        // From here on the slot belongs to the thread.
        self.stage = Now::Over.into();
        mailbox.post(slot, &Context::from_waker(Waker::noop()));
        Ok(())
    }

    /// Takes a place for a call that is about to be sent. If none is free, the call is refused.
    #[inline]
    fn place(&mut self, slot: Slot, has_place: bool) -> Option<TakenPlace> {
        let places = self.channel.places();
        if has_place || places.reserve() {
            // The caller passes the place to the letter, so this call must not free it.
            let (taken, has_place) = (places.taken(), false);
            self.stage = Now::New { slot, has_place }.into();
            return Some(taken);
        }
        self.refuse(Refusal::Full);
        None
    }

    fn write(&self, change: impl FnOnce(&mut Letter)) {
        if let Some(slot) = self.stage.new_slot() {
            self.channel.mailbox().with(slot, change);
        }
    }

    fn refuse(&mut self, why: Refusal) {
        if let Now::New { slot, has_place } = self.stage.now() {
            self.stage = Now::Refused(why).into();
            self.take_back(slot, has_place);
        }
    }

    /// Releases the slot and the place of a call that is not sent.
    fn take_back(&self, slot: Slot, has_place: bool) {
        self.channel.take_back(slot);
        if has_place {
            self.channel.places().free();
        }
    }

    fn post(
        &mut self,
        (slot, has_place): (Slot, bool),
        context: &Context<'_>,
    ) -> Poll<Result<Answer, ChannelError>> {
        let Some(place) = self.place(slot, has_place) else {
            return Poll::Ready(self.end_refused(Refusal::Full));
        };
        let mailbox = self.channel.mailbox();
        mailbox.with(slot, |letter| {
            self.span.begin(Some(letter.req_type), letter.metadata());
            let gap = letter.on_sent(place, || TscClock::new().now());
            self.channel.note_gap(gap);
        });
        self.stage = Now::Posted(slot).into();
        mailbox.post(slot, context);
        self.poll_end(slot, context)
    }

    fn poll_end(
        &mut self,
        slot: Slot,
        context: &Context<'_>,
    ) -> Poll<Result<Answer, ChannelError>> {
        let mailbox = self.channel.mailbox();
        if mailbox.poll_end(slot, context).is_pending() {
            return Poll::Pending;
        }
        let (hops, end) = mailbox.with(slot, |letter| (letter.hops, letter.on_seen()));
        mailbox.release(slot);
        self.stage = Now::Over.into();
        let end = end.expect("a call that has ended says how").map(Answer);
        self.end_span(hops, end.as_ref());
        Poll::Ready(end)
    }

    /// Ends a call that is not sent.
    fn end_refused<T>(&mut self, why: Refusal) -> Result<T, ChannelError> {
        self.stage = Now::Over.into();
        match why {
            Refusal::Full => self.channel.board().on_full(),
            Refusal::Late => self.channel.order(Order::Late(self.channel.id())),
            Refusal::Endpoint | Refusal::Closed => {}
        }
        let refused = Err(why.into());
        self.span.begin(None, None);
        self.end_span(Hops::default(), refused.as_ref());
        refused
    }

    #[inline]
    fn end_span<T>(&self, hops: Hops, end: Result<T, &ChannelError>) {
        let end = end
            .map(drop)
            .map_err(|error| (error as &dyn Display, error.code()));
        self.span.on_end(hops, end);
    }
}

impl From<Refusal> for ChannelError {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::Full => Self::Full,
            Refusal::Endpoint => Self::Endpoint,
            Refusal::Closed => Self::Closed,
            Refusal::Late => Self::Call {
                error: Error::Rpc(RpcError::DeadlinePassed(Ran::No)),
                ran: Ran::No,
            },
        }
    }
}

impl Future for Outgoing {
    type Output = Result<Answer, ChannelError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.stage.now() {
            Now::New { slot, has_place } => self.post((slot, has_place), context),
            Now::Refused(why) => Poll::Ready(self.end_refused(why)),
            Now::Posted(slot) => self.poll_end(slot, context),
            Now::Over => panic!("{OVER}"),
        }
    }
}

impl Drop for Outgoing {
    /// Costs a few atomic operations, whatever the stage of the call.
    fn drop(&mut self) {
        match self.stage.now() {
            Now::New { slot, has_place } => self.take_back(slot, has_place),
            Now::Posted(slot) => {
                self.span.on_drop();
                self.channel.mailbox().give_up(slot);
            }
            Now::Refused(_) | Now::Over => {}
        }
    }
}

impl Permit {
    /// The permit for a place that was reserved.
    pub(crate) fn of_reserved(places: &Arc<Places>) -> Self {
        Self {
            places: Arc::clone(places),
            is_used: false,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_used {
            self.places.free();
        }
    }
}

impl Answer {
    /// The bytes of the response.
    pub fn data(&self) -> &[u8] {
        self.0.data()
    }

    /// The msgbuf of the response.
    pub fn into_buf(self) -> MsgBuf {
        self.0
    }
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}

impl Deref for Answer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.data()
    }
}
