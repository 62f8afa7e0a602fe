//! The handle of a channel, and the builder that opens one.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use dunlin_channel::{Counters, Pick, Retry, State};
use dunlin_core::{Clock, Nanos};
use dunlin_mailbox::Waiter as Waiting;
use dunlin_nexus::{Resolve, TscClock};
use dunlin_wire::ReqType;

use crate::board::{Board, ChannelState, Seen};
use crate::error::ChannelError;
use crate::handle::Handle;
use crate::hub::Hub;
use crate::orders::Order;
use crate::outgoing::{Outgoing, Permit};
use crate::plan::{ChannelOptions, Plan};
use crate::resolve::Resolver;

/// A client of one or more servers, for async programs: any task of any runtime can call, and a
/// thread of the [`Hub`] sends. It connects and reconnects by itself, and repeats calls that
/// provably have not run. Clones are handles of the same channel, whose sessions end after its last
/// handle and its last call.
///
/// ```
/// use dunlin_hub::{Channel, ChannelError};
/// use dunlin_wire::ReqType;
///
/// async fn greet(channel: &Channel) -> Result<Vec<u8>, ChannelError> {
///     let answer = channel.call(ReqType(1), b"world").await?;
///     Ok(answer.to_vec())
/// }
///
/// fn open() -> Result<Channel, ChannelError> {
///     Channel::builder().address("127.0.0.1:31850").open()
/// }
/// ```
#[derive(Debug)]
pub struct Channel {
    pub(crate) handle: Handle,
    /// The places that this handle has reserved for a call ([`Self::poll_ready`]): none or one. Not
    /// a `bool`: the compiler would store enum tags in its unused values, which makes moves slower
    /// (`outgoing/stage.rs`).
    reserved: u32,
    /// Dropped by [`Self::leave`].
    waiting: ManuallyDrop<Waiting>,
}

/// The options of a new channel.
#[must_use]
#[derive(Clone, Debug)]
pub struct ChannelBuilder {
    /// `None`: the hub of the process; `open` fails if it cannot be started.
    hub: Option<Hub>,
    addresses: Vec<String>,
    resolvers: Vec<Resolver>,
    options: ChannelOptions,
    endpoint: Option<u16>,
}

/// Shows changes of a channel's state; of several changes since the last look, only the last. It
/// does not keep the channel open.
#[derive(Debug)]
pub struct Watch {
    board: Arc<Board>,
    seen: Option<u64>,
}

/// A task that waits at a board. Dropping it ends the wait.
struct Waiter<'a> {
    board: &'a Board,
    name: Option<u64>,
}

impl Hub {
    /// Begins a channel of this hub.
    pub fn channel(&self) -> ChannelBuilder {
        ChannelBuilder::new(Some(self.clone()), self.options())
    }
}

impl ChannelBuilder {
    pub(crate) fn new(hub: Option<Hub>, options: ChannelOptions) -> Self {
        Self {
            hub,
            addresses: Vec::new(),
            resolvers: Vec::new(),
            options,
            endpoint: None,
        }
    }

    /// Adds a server, as `host:port`; call it again for more. The channel looks names up when it
    /// opens, every 30 s ([`Self::lookup`]) and after it has lost a session, each name in a thread
    /// of its own.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Adds the servers that a resolver of the program finds, to those of [`Self::address`]; call
    /// it again for more resolvers. The channel asks it in a thread of its own, when it opens,
    /// every 30 s ([`Self::lookup`]), and soon after it has lost a session. If the resolver fails,
    /// the channel keeps the addresses that it has, and asks again within 1 s if it has none.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolvers.push(Resolver::new(resolver));
        self
    }

    /// Sets the time after which the channel looks names up and asks resolvers again, if it loses
    /// no session before: 30 s by default.
    pub fn lookup(mut self, span: Duration) -> Self {
        self.options.lookup = span;
        self
    }

    /// Spreads calls that name no endpoint over the first `endpoints` endpoints of each server: by
    /// default four, or fewer if the server announces fewer. Calls that name an endpoint
    /// ([`Outgoing::endpoint`]) may use any.
    pub fn endpoints_per_server(mut self, endpoints: usize) -> Self {
        self.options.endpoints_per_server = endpoints;
        self
    }

    /// Connects only to this endpoint of each server, which gets all calls that name none. So the
    /// channel's state shows only this endpoint. Without this option, the state shows the first
    /// endpoint of each server, or, if servers announce how many they have, all endpoints in use.
    /// This option has priority over [`Self::endpoints_per_server`], which a hub's options may set
    /// for all channels.
    pub fn endpoint(mut self, index: u16) -> Self {
        self.endpoint = Some(index);
        self
    }

    /// Chooses how the channel picks a server for a call. By default it draws two servers at
    /// random, and picks the one with fewer calls.
    pub fn pick(mut self, pick: Pick) -> Self {
        self.options.pick = pick;
        self
    }

    /// Chooses how calls are repeated. `Retry { attempts: 1, ..Retry::default() }` repeats only
    /// requests that were never transmitted, or that a draining server refused. Zero attempts and
    /// a pause whose factor is below 2 are refused by [`Self::open`].
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.attempts = retry.attempts;
        self.options.pause = retry.pause;
        self
    }

    /// Sends an idempotent call to a second server as well, if it has no answer after this time.
    /// A hedge is an attempt, so [`Self::open`] refuses it together with `attempts: 1`.
    pub fn hedge(mut self, after: Duration) -> Self {
        self.options.hedge = Some(after);
        self
    }

    /// Sets how long a call waits for a server to be ready; zero: it fails immediately.
    pub fn patience(mut self, span: Duration) -> Self {
        self.options.patience = span;
        self
    }

    /// Sets the deadline of calls that have none of their own.
    pub fn deadline(mut self, span: Duration) -> Self {
        self.options.deadline = Some(span);
        self
    }

    /// Limits the calls that have not ended. A call that was dropped, or whose deadline has passed,
    /// counts while a server may still hold its request. A further call fails with
    /// [`ChannelError::Full`]. [`Self::open`] refuses zero.
    pub fn queue(mut self, calls: usize) -> Self {
        self.options.queue = calls;
        self
    }

    /// Opens the channel, and does not wait until it has connected.
    ///
    /// # Errors
    /// An address is not a host and a port, there is neither an address nor a resolver, the
    /// endpoint is 65535, options contradict each other, or the hub of the process cannot be
    /// started.
    pub fn open(self) -> Result<Channel, ChannelError> {
        let mut plan = Plan::new(&self.options);
        plan.addresses = self.addresses;
        plan.resolvers = self.resolvers;
        plan.endpoint = self.endpoint;
        plan.check()?;
        let hub = match self.hub {
            Some(hub) => hub,
            None => Hub::of_process()?,
        };
        let (id, post) = hub.place();
        let board = Arc::<Board>::default();
        let order = Order::Open(id, Box::new(plan), Arc::clone(&board));
        post.orders.send(order);
        let handle = Handle::new((id, post), board, self.options, hub);
        Ok(Channel::of(handle))
    }
}

impl Channel {
    /// A channel of the process's hub, which starts with its first channel.
    pub fn builder() -> ChannelBuilder {
        ChannelBuilder::new(None, ChannelOptions::default())
    }

    pub(crate) const fn of(handle: Handle) -> Self {
        Self {
            handle,
            reserved: 0,
            waiting: ManuallyDrop::new(Waiting::new()),
        }
    }

    /// Makes a call: awaiting it gives the response or an error, dropping it cancels it. This
    /// function copies `body`.
    pub fn call(&self, req_type: ReqType, body: &[u8]) -> Outgoing {
        Outgoing::new(self.handle.clone(), req_type, body)
    }

    /// Sends a request whose response the caller does not need, and returns without waiting. The
    /// request waits for a server as calls do, and is tried again only if the failed attempt never
    /// left this side. If the last handle of the channel is dropped before the request has left,
    /// the request is lost.
    ///
    /// # Errors
    /// [`ChannelError::Full`]. Only the channel's state shows later failures.
    pub fn notify(&self, req_type: ReqType, body: &[u8]) -> Result<(), ChannelError> {
        self.call(req_type, body).notify()
    }

    /// Waits until the channel has room for one more call, and reserves it for
    /// [`Outgoing::permit`]. A call without a permit fails with [`ChannelError::Full`] if there is
    /// no room.
    pub async fn permit(&self) -> Permit {
        let mut waiting = Waiting::new();
        let places = self.handle.places();
        let reserved = |()| Permit::of_reserved(places);
        std::future::poll_fn(|context| places.poll_reserve(&mut waiting, context).map(reserved))
            .await
    }

    /// Ready when this handle has reserved room for a call. The handle keeps that room until it
    /// makes a call as a tower service; a clone of the handle does not get it.
    ///
    /// # Errors
    /// None yet.
    #[inline]
    pub fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Result<(), ChannelError>> {
        if self.reserved == 0 {
            let places = self.handle.places();
            ready!(places.poll_reserve(&mut self.waiting, context));
            self.reserved = 1;
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the place that this handle has reserved, for a call. Returns false if it has none.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) const fn take_place(&mut self) -> bool {
        std::mem::replace(&mut self.reserved, 0) != 0
    }

    /// Gives up the place of a handle that is dropped, or its wait for one. Most handles have
    /// neither. Because this is a function of its own, their drop is small, and becomes a part of
    /// its caller.
    #[cold]
    #[inline(never)]
    fn leave(&mut self) {
        let waiting = std::mem::replace(&mut *self.waiting, Waiting::new());
        if self.reserved != 0 {
            self.handle.places().free();
        }
        drop(waiting);
    }

    /// Waits until a server is ready.
    ///
    /// # Errors
    /// [`ChannelError::NoServer`] after the channel's patience, or [`ChannelError::Closed`].
    pub async fn ready(&self) -> Result<(), ChannelError> {
        let until = TscClock::new().now() + self.handle.options().patience.into();
        let mut waiter = Waiter::new(self.handle.board());
        std::future::poll_fn(|context| {
            let is_new = waiter.wait(until, context);
            let Seen {
                state,
                is_closed,
                passed,
                ..
            } = self.handle.board().see();
            if is_closed {
                return Poll::Ready(Err(ChannelError::Closed));
            }
            if matches!(state.state, State::Ready | State::Degraded) {
                return Poll::Ready(Ok(()));
            }
            if passed.max(TscClock::new().now()) >= until {
                return Poll::Ready(Err(ChannelError::NoServer(state.reasons())));
            }
            if is_new {
                let order = Order::Wait(self.handle.id(), until);
                self.handle.order(order);
            }
            Poll::Pending
        })
        .await
    }

    /// The hub whose thread sends its calls.
    pub fn hub(&self) -> &Hub {
        self.handle.hub()
    }

    /// The state of the channel now.
    pub fn state(&self) -> ChannelState {
        self.handle.board().see().state
    }

    /// Counts of calls and links since the channel was opened, as of a tenth of a second ago or
    /// less.
    /// `dunlin top` shows the sums of all channels of a hub's thread.
    pub fn counters(&self) -> Counters {
        self.handle.board().counters()
    }

    /// Follows the channel's state.
    pub fn watch(&self) -> Watch {
        Watch {
            board: Arc::clone(self.handle.board()),
            seen: None,
        }
    }
}

impl Clone for Channel {
    fn clone(&self) -> Self {
        Self::of(self.handle.clone())
    }
}

impl Drop for Channel {
    #[inline]
    fn drop(&mut self) {
        if self.reserved != 0 || self.waiting.is_enrolled() {
            self.leave();
        }
    }
}

impl Watch {
    /// Returns the present state at its first call; later calls wait until the state differs from
    /// the last one. `None`: the channel or its hub has ended.
    pub async fn changed(&mut self) -> Option<ChannelState> {
        let mut waiter = Waiter::new(&self.board);
        std::future::poll_fn(|context| {
            waiter.wait(Nanos::MAX, context);
            let seen = self.board.see();
            if seen.is_closed {
                return Poll::Ready(None);
            }
            if self.seen == Some(seen.version) {
                return Poll::Pending;
            }
            self.seen = Some(seen.version);
            Poll::Ready(Some(seen.state))
        })
        .await
    }
}

impl<'a> Waiter<'a> {
    const fn new(board: &'a Board) -> Self {
        Self { board, name: None }
    }

    /// Returns true if the channel's thread may not know `until`.
    fn wait(&mut self, until: Nanos, context: &std::task::Context<'_>) -> bool {
        self.board.wait(&mut self.name, until, context)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            self.board.forget(name);
        }
    }
}
