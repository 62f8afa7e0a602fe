//! The endpoint as users see it: core's `Rpc` with the real clock, connected to the nexus, and with
//! a thread that blocks when there is nothing to do.
//!
//! One iteration handles messages of the control thread and results of the workers, runs core's
//! iteration, handles sessions that have ended, and may block. While packets flow, the additions to
//! core's iteration cost one relaxed load, one check of an empty queue, one counter and one
//! comparison. `rpc/builder.rs` makes an endpoint, `rpc/engine.rs` has handlers and calls, and
//! `rpc/handshakes.rs` the handshakes of sessions.

mod builder;
mod engine;
mod handshakes;
mod offers;

pub use builder::EndpointBuilder;

use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use dunlin_control::{ConnectFailure, Event, FailedConnect, Wish};
use dunlin_core::{
    Cx, Endpoint as Engine, Facts, HandleError, Nanos, Progress, Session, SessionOptions,
};
use dunlin_transport::connect::Arm;
use dunlin_transport::counters::Counters;
use dunlin_wire::control::{EndpointIndex, Serving};

use crate::clock::TscClock;
use crate::error::ConnectError;
use crate::events::on_wrong_stage;
use crate::idle::{Look, MIN_BLOCK, Sleeper};
use crate::mailbox::{Mailbox, Request};
use crate::nexus::Nexus;
use crate::publisher::{OwnFn, Publisher};
use crate::pulse::Pulse;
use crate::transports::Open;
use handshakes::{Handshakes, Ways};
use offers::place_of;

/// The most addresses of one server that are tried.
const MAX_ADDRESSES: usize = 8;

/// The most messages of the control thread that are handled between two iterations of the protocol.
/// A peer that asks for sessions as fast as they are refused keeps the mailbox full; other peers'
/// packets must not wait until it is empty.
const MAX_EVENTS: usize = 16;

/// Which endpoints of a session's peer process serve, and whether that process drains (rule C14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerServing {
    /// The session at this side.
    pub session: Session,
    /// The number of the process, which is the same for all sessions with it.
    pub process: u64,
    /// The latest announcement of the process.
    pub serving: Serving,
}

/// Called when the process of a session's peer announces which of its endpoints serve, or that it
/// drains.
pub type ServingFn<App> = fn(&mut App, PeerServing, &mut Cx<'_>);

/// Called when a session could not be made.
pub type FailedFn<App> = fn(&mut App, FailedConnect, &mut Cx<'_>);

/// The options of a new session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectOptions {
    /// Index of the endpoint in its nexus; `None`: any endpoint.
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

/// An endpoint over transport `T`, with the user's state `App`. One thread uses it, to serve
/// requests and to issue calls. Handlers are registered on it by request type, calls are issued on
/// sessions, and functions of the user run only within [`Self::run_once`].
///
/// ```
/// use dunlin_core::{Done, Tag};
/// use dunlin_nexus::{Nexus, Rpc};
/// use dunlin_transport::shm::Shm;
/// use dunlin_wire::ReqType;
///
/// const REVERSE: ReqType = ReqType(1);
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let mut rpc: Rpc<Shm, Option<Done>> = nexus.endpoint(None)?;
/// rpc.on(REVERSE, |_, request, cx| {
///     let answer: Vec<u8> = request.data().iter().rev().copied().collect();
///     request.reply_bytes(cx, &answer);
/// });
/// rpc.on_completion(|last, done, _| *last = Some(done));
///
/// // An endpoint may call itself.
/// let session = rpc.connect_blocking(nexus.address())?;
/// let (request, response) = (rpc.cx().copy(b"hello")?, rpc.buf(64)?);
/// rpc.call(session, REVERSE, request, response, Tag(0))?;
/// rpc.run_until(|rpc| rpc.app().is_some());
/// let done = rpc.app_mut().take().expect("the loop waited for it");
/// assert_eq!(done.response.data(), b"olleh");
/// # Ok(())
/// # }
/// ```
pub struct Rpc<T: Open, App> {
    engine: Engine<T, TscClock, App>,
    sleeper: Sleeper,
    events: Arc<Mailbox<Event<OwnedFd>>>,
    requests: Arc<Mailbox<Request>>,
    handshakes: Handshakes,
    index: EndpointIndex,
    serving: ServingFn<App>,
    failed: FailedFn<App>,
    /// The names of the registered services.
    services: Vec<&'static str>,
    /// Facts about these services.
    facts: Vec<Facts>,
    publisher: Publisher,
    own: OwnFn<App>,
    pulse: Pulse,
    /// The last field, so that the control thread ends after all other fields are dropped.
    nexus: Nexus,
}

impl<T: Open, App> Rpc<T, App> {
    /// The index by which others connect to this endpoint.
    pub const fn index(&self) -> u16 {
        self.index.0
    }

    /// The nexus of this endpoint.
    pub const fn nexus(&self) -> &Nexus {
        &self.nexus
    }

    /// The counters of the transport.
    pub fn transport_counters(&mut self) -> Counters {
        let (rx, tx) = self.engine.lifecycle().halves_mut();
        T::counters(rx, tx)
    }

    /// Runs one iteration of the event loop. It blocks only if the endpoint is idle, until a packet
    /// or an event comes or a timer is due.
    #[inline]
    pub fn run_once(&mut self) -> Progress {
        self.iterate(|_| Nanos::MAX)
    }

    /// Runs one iteration that blocks at most until `limit`, a time of [`Rpc::now`]. It calls
    /// `limit` only when it is about to block; with [`Nanos::ZERO`] it does not block.
    #[inline]
    pub fn iterate(&mut self, limit: impl FnOnce(&App) -> Nanos) -> Progress {
        if self.events.doorbell.is_rung() {
            self.on_rung();
        }
        let progress = self.engine.run_once();
        if self.engine.lifecycle().has_reports() {
            self.on_reports();
        }
        if self.publisher.is_due(self.engine.last_now()) {
            self.publish();
        }
        if progress.frames != 0 {
            self.sleeper.on_activity();
        } else if self.sleeper.on_quiet(|| look(&mut self.engine)) {
            let limit = limit(self.engine.app());
            self.sleep(limit);
        }
        progress
    }

    /// Runs until `done` returns true. It calls `done` after every iteration.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            self.run_once();
        }
    }

    /// Runs for this span of time.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.engine.now() + span.into();
        while self.engine.now() < end {
            self.iterate(|_| end);
        }
    }

    /// Begins to open a session with the first endpoint of the nexus at `address`, and returns
    /// without waiting for it: calls on the session wait until it is connected. `on_session` gets
    /// the outcome. If `address` has a host name, looks it up first, which may block for long.
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
        // The control thread must learn that a session has ended before the session's number is
        // used again.
        self.on_reports();
        let deadline = self.engine.now() + options.patience.into();
        let target = options.endpoint.map_or(EndpointIndex::ANY, EndpointIndex);
        let wish = Wish {
            to,
            target,
            deadline,
        };
        let (now, ways) = (self.engine.now(), &mut Ways(&self.requests));
        let (engine, options) = (&mut self.engine, &options.session);
        Ok(self.handshakes.connect(engine, ways, options, wish, now)?)
    }

    /// Opens a session and waits until it is connected.
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
    /// The reason of the failure; `Closed`, if the session had already ended or its failure is no
    /// longer stored; or `WrongEndpoint`.
    pub fn wait_connected(&mut self, session: Session) -> Result<(), ConnectError> {
        loop {
            match self.engine.session_info(session) {
                Ok(info) if info.open => return Ok(()),
                Ok(_) => self.run_once(),
                Err(HandleError::Ended) => {
                    return Err(self
                        .failure(session)
                        .map_or(ConnectError::Closed, Into::into));
                }
                Err(HandleError::WrongEndpoint) => return Err(ConnectError::WrongEndpoint),
            };
        }
    }

    /// Returns why a session could not be connected. `None` if it did not fail, or if its failure
    /// is no longer stored.
    pub fn failure(&self, session: Session) -> Option<ConnectFailure> {
        self.handshakes.failure(session)
    }

    /// Returns a waker, which any thread may use. It wakes the thread of this endpoint if that
    /// thread sleeps in an iteration or waits for the descriptor.
    pub fn waker(&self) -> Waker {
        Arc::clone(&self.events.doorbell).into()
    }

    /// Prepares a wait in another event loop, until the endpoint's descriptor ([`AsFd`]) is
    /// readable, but not longer than the returned span. `None`: there is already work to do. Until
    /// [`Self::unpark`], only the clock and the user's state may be used.
    pub fn park(&mut self) -> Option<Duration> {
        let span = self.engine.next_wakeup().since(self.engine.now());
        if span == Nanos::ZERO {
            return None;
        }
        self.publish();
        let (rx, tx) = self.engine.lifecycle().halves_mut();
        if T::arm(rx, tx) == Arm::Wait && self.sleeper.park() {
            self.pulse.on_park();
            return Some(span.into());
        }
        self.unpark();
        None
    }

    /// Ends the wait that [`Self::park`] prepared, whatever ended it.
    pub fn unpark(&mut self) {
        self.sleeper.unpark();
        self.engine.wake_up();
        let (rx, tx) = self.engine.lifecycle().halves_mut();
        T::disarm(rx, tx);
        self.pulse.on_turn(self.engine.now());
    }

    /// Shows other threads whether this endpoint's thread still runs its event loop.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Publishes the endpoint's counters, and the time of this turn.
    #[cold]
    fn publish(&mut self) {
        self.pulse.on_turn(self.engine.now());
        let places = |peer| place_of(self.handshakes.whereabouts(peer));
        self.publisher
            .publish(&mut self.engine, self.index.0, self.own, places);
    }

    /// Makes tools show the program's own figures for this endpoint. `figures` appends a value for
    /// each name that the nexus was built with ([`own_figures`](crate::NexusBuilder::own_figures)),
    /// counters first; with any other number of values, none is shown. The endpoint calls it about
    /// ten times a second.
    pub fn publish_own(&mut self, figures: OwnFn<App>) {
        self.own = figures;
    }

    #[cold]
    fn on_rung(&mut self) {
        self.sleeper.on_bell();
        self.events.doorbell.take();
        for _ in 0..MAX_EVENTS {
            let Some(event) = self.events.receive() else {
                return;
            };
            self.on_peer_serving(&event);
            let (now, ways) = (self.engine.now(), &mut Ways(&self.requests));
            if let Err(wrong) = self
                .handshakes
                .handle_event(&mut self.engine, ways, event, now)
            {
                on_wrong_stage(&wrong);
            }
            self.on_failed();
        }
        self.events.doorbell.ring();
    }

    fn on_peer_serving(&mut self, event: &Event<OwnedFd>) {
        let Event::Serving {
            key,
            process,
            serving,
        } = event
        else {
            return;
        };
        let named = self.engine.lifecycle();
        if let Some(session) = named.session_named(key.session, key.token) {
            let news = PeerServing {
                session,
                process: process.0,
                serving: *serving,
            };
            let (app, mut cx) = self.engine.with();
            (self.serving)(app, news, &mut cx);
        }
    }

    /// Passes on core's reports: sessions that have ended at this side, or have a question for
    /// their peer.
    #[cold]
    fn on_reports(&mut self) {
        while let Some(report) = self.engine.lifecycle().take_report() {
            let (now, ways) = (self.engine.now(), &mut Ways(&self.requests));
            self.handshakes.report(&mut self.engine, ways, report, now);
        }
        self.on_failed();
    }

    fn on_failed(&mut self) {
        while let Some(failed) = self.handshakes.take_failed() {
            let (app, mut cx) = self.engine.with();
            (self.failed)(app, failed, &mut cx);
        }
    }

    /// Blocks, unless work is due soon or comes just before the thread would block.
    #[cold]
    fn sleep(&mut self, limit: Nanos) {
        let span = self
            .engine
            .next_wakeup()
            .min(limit)
            .since(self.engine.now());
        if span < MIN_BLOCK {
            return;
        }
        self.publish();
        let span = span.min(self.publisher.longest_rest());
        let (rx, tx) = self.engine.lifecycle().halves_mut();
        if T::arm(rx, tx) == Arm::Wait {
            self.pulse.on_park();
            self.sleeper.block(span);
        }
        // If packets have come, the next iteration finds them; if not, the thread blocks again
        // soon.
        T::disarm(rx, tx);
        self.engine.wake_up();
        self.pulse.on_turn(self.engine.now());
    }
}

/// Returns the facts by which the sleeper decides whether the thread has spun for long enough.
fn look<T: Open, App>(engine: &mut Engine<T, TscClock, App>) -> Look {
    Look {
        now: engine.now(),
        requests: engine.counters().requests_sent,
    }
}

impl<T: Open, App> AsFd for Rpc<T, App> {
    /// A descriptor that is readable when an event has come for a parked endpoint.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sleeper.as_fd()
    }
}

impl<T: Open, App> std::fmt::Debug for Rpc<T, App> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rpc")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl<T: Open, App> Drop for Rpc<T, App> {
    /// Sends the queued packets, and ends the sessions, so that their peers are informed.
    fn drop(&mut self) {
        self.engine.flush();
        self.requests.send(Request::Remove(self.index));
    }
}

#[cfg(test)]
mod tests;
