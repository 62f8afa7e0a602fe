//! The endpoint as a user has it: core's `Rpc` with the real clock, connected to the nexus, and
//! with a thread that blocks when there is nothing to do (design §9 to §11).
//!
//! One iteration: what the control thread and the workers have for it, core's iteration, what has
//! ended, and perhaps a block. While packets flow, all of this costs one relaxed load, one look at
//! an empty queue, one counter and one comparison. The handshakes of sessions are in
//! `endpoint/handshakes.rs`.

mod handshakes;
mod offers;

use std::net::ToSocketAddrs;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::Waker;
use std::time::Duration;

use dunlin_control::{ConnectFailure, Event, Wish};
use dunlin_core::{Closed, Config, Nanos, Progress, Rpc, Session, SessionOptions, Workers};
use dunlin_transport::connect::Arm;
use dunlin_transport::counters::Counters;
use dunlin_wire::control::{EndpointIndex, EndpointUid};

use crate::clock::TscClock;
use crate::error::{ConnectError, EndpointError};
use crate::events::on_wrong_stage;
use crate::idle::{Idle, MIN_BLOCK, Sleeper};
use crate::insight::page::Page;
use crate::insight::place::Place;
use crate::insight::publish::Publisher;
use crate::mailbox::{Mailbox, Request};
use crate::nexus::{Nexus, random};
use crate::{ffi, transports::Open};
use handshakes::{Handshakes, Ways};
use offers::place_of;

/// Addresses of one server that are tried.
const MAX_ADDRESSES: usize = 8;

/// How to make an endpoint.
#[derive(Debug)]
pub struct EndpointBuilder<T: Open> {
    nexus: Nexus,
    index: Option<u16>,
    idle: Idle,
    config: Config,
    transport: T::Options,
}

/// How to make a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectOptions {
    /// Index of the endpoint in its nexus; `None`: whichever the nexus likes.
    pub endpoint: Option<u16>,
    /// How long to try. The server may start within this time.
    pub patience: Duration,
    /// Window and credits.
    pub session: SessionOptions,
}

impl Default for ConnectOptions {
    /// The first endpoint, within five seconds.
    fn default() -> Self {
        Self {
            endpoint: Some(0),
            patience: Duration::from_secs(5),
            session: SessionOptions::default(),
        }
    }
}

/// An endpoint over transport `T` with the user's state `App`. Derefs to [`Rpc`] for handlers,
/// calls and counters.
pub struct Endpoint<T: Open, App> {
    rpc: Rpc<T, TscClock, App>,
    sleeper: Sleeper,
    events: Arc<Mailbox<Event<OwnedFd>>>,
    requests: Arc<Mailbox<Request>>,
    handshakes: Handshakes,
    index: EndpointIndex,
    publisher: Publisher,
    /// Last: the control thread ends after everything above is gone.
    nexus: Nexus,
}

impl<T: Open> EndpointBuilder<T> {
    pub(crate) fn new(nexus: Nexus) -> Self {
        let config = Config {
            failure_timeout: nexus.failure_timeout(),
            ..Config::default()
        };
        let transport = T::defaults(nexus.address().ip(), nexus.advertised());
        Self {
            nexus,
            index: None,
            idle: Idle::default(),
            config,
            transport,
        }
    }

    /// The endpoint's index in its nexus, by which others connect to it. Without one it gets the
    /// lowest that is free.
    #[must_use]
    pub const fn index(mut self, index: u16) -> Self {
        self.index = Some(index);
        self
    }

    /// What its thread does while nothing comes.
    #[must_use]
    pub const fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// Changes the options of the endpoint itself.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Changes the options of the transport.
    #[must_use]
    pub fn transport(mut self, change: impl FnOnce(&mut T::Options)) -> Self {
        change(&mut self.transport);
        self
    }

    /// Makes the endpoint.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn build<App>(self, app: App) -> Result<Endpoint<T, App>, EndpointError> {
        self.config.check()?;
        let halves = T::open_halves(self.transport).map_err(EndpointError::Transport)?;
        let events = Arc::new(Mailbox::new()?);
        let mut fds = Vec::new();
        T::fds(&halves.rx, &halves.tx, &mut fds);
        let sleeper = Sleeper::new(self.idle, Arc::clone(&events.doorbell), &fds)?;
        let workers = self.nexus.pool().handle(Arc::clone(&events.doorbell));
        let workers = workers.map(|handle| Box::new(handle) as Box<dyn Workers>);
        let clock = TscClock::new();
        let mut rpc = Rpc::new(app, clock, halves, self.config, random()?, workers)?;
        rpc.set_waker(Arc::clone(&events.doorbell).into());
        let index = register(&self.nexus, self.index, &events)?;
        let mut publisher = Publisher::new(self.nexus.page().and_then(Page::block));
        publisher.publish(&mut rpc, index.0, |_| Place::default());
        Ok(Endpoint {
            rpc,
            sleeper,
            events,
            requests: Arc::clone(self.nexus.requests()),
            handshakes: Handshakes::new(index),
            index,
            publisher,
            nexus: self.nexus,
        })
    }
}

impl<T: Open, App> Endpoint<T, App> {
    /// The index by which others connect to this endpoint.
    pub const fn index(&self) -> u16 {
        self.index.0
    }

    /// The nexus that it belongs to.
    pub const fn nexus(&self) -> &Nexus {
        &self.nexus
    }

    /// What the transport has counted.
    pub fn transport_counters(&mut self) -> Counters {
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        T::counters(rx, tx)
    }

    /// One iteration of the event loop. It blocks only if the endpoint is idle, and only as long
    /// as nothing comes and nothing is due.
    #[inline]
    pub fn run_once(&mut self) -> Progress {
        self.iterate(|_| Nanos::MAX)
    }

    /// One iteration that blocks until `limit` at the latest, a time of [`Rpc::now`]. It is asked
    /// when nothing is left but to block; with [`Nanos::ZERO`] the iteration does not.
    #[inline]
    pub fn iterate(&mut self, limit: impl FnOnce(&App) -> Nanos) -> Progress {
        if self.events.doorbell.is_rung() {
            self.on_rung();
        }
        let progress = self.rpc.run_once();
        while let Some(closed) = self.rpc.lifecycle().take_closed() {
            self.on_ended(&closed);
        }
        if self.publisher.is_due(self.rpc.last_now()) {
            self.publish();
        }
        if progress.frames != 0 {
            self.sleeper.on_activity();
        } else if self.sleeper.on_quiet(|| self.rpc.now()) {
            let limit = limit(self.rpc.app());
            self.sleep(limit);
        }
        progress
    }

    /// Runs until `done` says so. It is asked after every iteration.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            self.run_once();
        }
    }

    /// Runs for so long.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.rpc.now() + span.into();
        while self.rpc.now() < end {
            self.iterate(|_| end);
        }
    }

    /// Begins to make a session with the first endpoint of the nexus at `address`, and returns at
    /// once: calls on the session wait until it is connected. `on_session` hears what becomes of
    /// it. A host name is looked up first, which may take its time.
    ///
    /// # Errors
    /// The address cannot be resolved, or this endpoint has too many sessions.
    pub fn connect(&mut self, address: impl ToSocketAddrs) -> Result<Session, ConnectError> {
        self.connect_with(address, &ConnectOptions::default())
    }

    /// Like [`Self::connect`], with options.
    ///
    /// # Errors
    /// As for [`Self::connect`], and options out of range.
    pub fn connect_with(
        &mut self,
        address: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> Result<Session, ConnectError> {
        let to = address.to_socket_addrs()?.take(MAX_ADDRESSES).collect();
        let deadline = self.rpc.now() + options.patience.into();
        let target = options.endpoint.map_or(EndpointIndex::ANY, EndpointIndex);
        let wish = Wish {
            to,
            target,
            deadline,
        };
        let (now, ways) = (self.rpc.now(), &mut Ways(&self.requests));
        let (rpc, options) = (&mut self.rpc, &options.session);
        Ok(self.handshakes.connect(rpc, ways, options, wish, now)?)
    }

    /// Makes a session and waits for it.
    ///
    /// # Errors
    /// As for [`Self::connect`] and [`Self::wait_connected`].
    pub fn connect_blocking(
        &mut self,
        address: impl ToSocketAddrs,
    ) -> Result<Session, ConnectError> {
        let session = self.connect(address)?;
        self.wait_connected(session)?;
        Ok(session)
    }

    /// Runs the event loop until the session is connected or has failed.
    ///
    /// # Errors
    /// Why it failed; or `Closed`, if it had ended before or its failure is long ago.
    pub fn wait_connected(&mut self, session: Session) -> Result<(), ConnectError> {
        loop {
            match self.rpc.session_info(session) {
                Some(info) if info.open => return Ok(()),
                Some(_) => self.run_once(),
                None => {
                    return Err(self
                        .failure(session)
                        .map_or(ConnectError::Closed, Into::into));
                }
            };
        }
    }

    /// Why a session could not be connected, if it is one of the last few that could not.
    pub fn failure(&self, session: Session) -> Option<ConnectFailure> {
        self.handshakes.failure(session)
    }

    /// Wakes the thread of this endpoint, from any thread, if it sleeps in an iteration or waits
    /// for the descriptor.
    pub fn waker(&self) -> Waker {
        Arc::clone(&self.events.doorbell).into()
    }

    /// Prepares a wait outside of the endpoint, beside another event loop: until the descriptor
    /// ([`AsFd`]) is readable, and not longer than the span that this returns. `None`: there is
    /// something to do already. Behind the wait comes [`Self::unpark`], before any other use.
    pub fn park(&mut self) -> Option<Duration> {
        let span = self.rpc.next_wakeup().since(self.rpc.now());
        if span == Nanos::ZERO {
            return None;
        }
        self.publish();
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        if T::arm(rx, tx) == Arm::Wait && self.sleeper.park() {
            return Some(span.into());
        }
        self.unpark();
        None
    }

    /// Ends what [`Self::park`] began, whatever came.
    pub fn unpark(&mut self) {
        self.sleeper.unpark();
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        T::disarm(rx, tx);
    }

    /// Shows how it stands.
    #[cold]
    fn publish(&mut self) {
        let places = |peer| place_of(self.handshakes.whereabouts(peer));
        self.publisher.publish(&mut self.rpc, self.index.0, places);
    }

    #[cold]
    fn on_rung(&mut self) {
        self.sleeper.on_activity();
        self.events.doorbell.take();
        while let Some(event) = self.events.receive() {
            let (now, ways) = (self.rpc.now(), &mut Ways(&self.requests));
            if let Err(wrong) = self.handshakes.hear(&mut self.rpc, ways, event, now) {
                on_wrong_stage(&wrong);
            }
        }
    }

    /// A session has ended at this side, for whatever reason.
    #[cold]
    fn on_ended(&mut self, closed: &Closed) {
        let (now, ways) = (self.rpc.now(), &mut Ways(&self.requests));
        self.handshakes.end(&mut self.rpc, ways, closed, now);
    }

    /// Blocks, if nothing is due soon and nothing comes at the last moment.
    #[cold]
    fn sleep(&mut self, limit: Nanos) {
        let span = self.rpc.next_wakeup().min(limit).since(self.rpc.now());
        if span < MIN_BLOCK {
            return;
        }
        self.publish();
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        if T::arm(rx, tx) == Arm::Wait {
            self.sleeper.block(span);
        }
        // What has come shows in the next iteration; if nothing has, the next block follows soon.
        T::disarm(rx, tx);
    }
}

impl<T: Open, App> Deref for Endpoint<T, App> {
    type Target = Rpc<T, TscClock, App>;

    fn deref(&self) -> &Self::Target {
        &self.rpc
    }
}

impl<T: Open, App> DerefMut for Endpoint<T, App> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.rpc
    }
}

impl<T: Open, App> AsFd for Endpoint<T, App> {
    /// Readable when something has come for an endpoint that is parked.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sleeper.as_fd()
    }
}

impl<T: Open, App> std::fmt::Debug for Endpoint<T, App> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl<T: Open, App> Drop for Endpoint<T, App> {
    /// Sends what is queued; the other sides of its sessions are told.
    fn drop(&mut self) {
        self.rpc.flush();
        self.requests.send(Request::Remove(self.index));
    }
}

/// Makes the endpoint known to the control thread.
fn register(
    nexus: &Nexus,
    index: Option<u16>,
    events: &Arc<Mailbox<Event<OwnedFd>>>,
) -> Result<EndpointIndex, EndpointError> {
    let (answer, added) = sync_channel(1);
    nexus.requests().send(Request::Add {
        index: index.map(EndpointIndex),
        uid: EndpointUid(ffi::random_bytes()?),
        events: Arc::clone(events),
        answer,
    });
    // The control thread answers at once; if it has panicked, nobody does.
    let added = added.recv_timeout(Duration::from_secs(10));
    Ok(added.map_err(|_| EndpointError::NexusGone)??)
}

#[cfg(test)]
mod tests;
