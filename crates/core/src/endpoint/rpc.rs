//! The endpoint: RX and TX halves, the protocol, the user's state and functions (design §3).
//!
//! One endpoint belongs to one thread. The nexus or the simulator makes it, opens its sessions, and
//! calls `run_once` (in `endpoint/event_loop.rs`).

use std::collections::VecDeque;
use std::sync::Arc;

use dunlin_msgbuf::{AllocError, MsgBuf};
use dunlin_wire::{ReqType, SessionNum};

use crate::call::{CallOptions, Tag};
use crate::config::{Config, ConfigError};
use crate::congestion::CongestionControl;
use crate::endpoint::dispatch::{Dispatched, SlowRequest};
use crate::endpoint::tapping::Tapping;
use crate::error::{CallError, HandleError};
use crate::handle::{CallId, EndpointNum, Session, SessionIdx};
use crate::handler::background::{BackgroundFn, BackgroundRequest, Workers};
use crate::handler::batch::BatchEntry;
use crate::handler::context::Cx;
use crate::handler::request::DroppedList;
use crate::handler::table::{
    BatchFn, CompletionFn, DispatchFn, GivenUpFn, Handler, Handlers, SessionFn, TimerFn,
};
use crate::law::Check;
use crate::observe::counters::Counters;
use crate::observe::histogram::Histograms;
use crate::observe::tap::Tap;
use crate::protocol::Core;
use crate::scheme::{Bypasses, Scheme};
use crate::session::lifecycle::SessionInfo;
use crate::session::line::PathTraits;
use crate::time::{Clock, Nanos};
use crate::transport::{Halves, Path, PeerId, Transport, Tx};

/// An endpoint over transport `T` with clock `C` and the user's state `App`.
///
/// The RX half comes first in memory, so an idle iteration, which touches little else, finds it at
/// the endpoint's own address. Without `repr(C)`, the compiler orders the two halves by size; if it
/// puts the RX half last, the idle iteration takes five instructions more.
#[derive(Debug)]
#[repr(C)]
pub struct Endpoint<T: Transport, C, App> {
    pub(super) rx: T::Rx,
    pub(super) engine: Engine<T::Tx, C, App>,
}

/// Everything but the RX half, so that packets can stay borrowed from that half while the engine
/// changes.
pub(crate) struct Engine<X, C, App> {
    pub(super) app: App,
    pub(super) handlers: Handlers<App>,
    pub(super) core: Core,
    pub(super) tx: X,
    pub(super) clock: C,
    pub(super) workers: Option<Box<dyn Workers>>,
    /// Requests of batch handlers within an iteration.
    pub(super) batch: Vec<BatchEntry>,
    /// Requests of slow dispatch handlers, and requests with which batch handlers will continue
    /// later; each iteration runs one.
    pub(super) slow: VecDeque<SlowRequest>,
    pub(super) dropped: Arc<DroppedList>,
    /// The tap that sees packets.
    pub(super) tap: Option<Tapping>,
    pub(super) idle_iterations: u32,
    /// A mask of low bits: an idle iteration reads the clock if these bits of `idle_iterations` are
    /// 0.
    pub(super) idle_mask: u32,
    /// When the endpoint last looked at the RX queue, to the precision of the clock readings.
    pub(super) last_burst: Nanos,
    /// The type whose dispatch handler ran last in this iteration.
    pub(super) dispatched: Dispatched,
    /// The common path is on, no tap sees each packet, the clock is not read for each packet, and
    /// the laws are not checked after each event.
    pub(super) usual: bool,
}

impl<X, C: Clock, App> Engine<X, C, App> {
    /// Reads the clock because the caller uses the endpoint between two iterations: its events
    /// happen now.
    pub(super) fn step_in(&mut self) {
        #[cfg(feature = "mutants")]
        self.core.sessions.unhide();
        self.core.context.leave_iteration(self.clock.now());
    }
}

impl<X: Tx, C, App> Engine<X, C, App> {
    /// Decides whether packets may be handled in the usual way. Lets short packets be staged in a
    /// lane if the transport supports that, unless a tap must see each packet.
    fn choose_ways(&mut self) {
        let unchecked = self.core.context.config.check != Check::Event;
        self.usual = unchecked && self.is_usual_but_checked();
        let used = self.core.context.config.bypasses.lanes && self.tap.is_none();
        let longest = if used { self.tx.lane() } else { 0 };
        self.core.context.outbox.set_lane(longest);
    }

    /// Whether packets may be handled in the usual way, apart from checks of the laws.
    pub(super) fn is_usual_but_checked(&self) -> bool {
        self.tap.is_none() && self.core.context.config.bypasses.are_usual()
    }

    /// The path to a peer, as the transport declares it.
    fn path(&self, peer: PeerId) -> Path {
        self.tx.path(peer).unwrap_or(Path {
            line_rate: self.core.context.limits.line_rate,
            base_rtt: Nanos::ZERO,
            scheme: Scheme::None,
        })
    }

    /// Begins congestion control of a session whose peer is now known.
    pub(super) fn begin_pacing(&mut self, session: Session, peer: PeerId) {
        let path = self.path(peer);
        let traits = PathTraits {
            near: self.tx.path(peer).is_none(),
            reordered: self.tx.reorders(peer),
            declared: path.base_rtt != Nanos::ZERO,
        };
        if let Some(index) = self.core.sessions.find(session) {
            let core = &mut self.core;
            let line = core.sessions.at_mut(index);
            line.on_path(traits);
            core.pacer.begin_scheme(line, &path, &mut core.context);
        }
    }
}

impl<X, C, App> std::fmt::Debug for Engine<X, C, App> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// An endpoint without sessions. `seed` determines its tokens and random numbers; its handles
    /// carry `number`. The transport may have sent packets before.
    ///
    /// # Errors
    /// If an option is out of range, or there is no memory for message buffers.
    pub fn new(
        app: App,
        mut clock: C,
        mut halves: Halves<T::Rx, T::Tx>,
        config: Config,
        seed: u64,
        workers: Option<Box<dyn Workers>>,
        number: EndpointNum,
    ) -> Result<Self, ConfigError> {
        let now = clock.now();
        let mut core = Core::new(config, halves.limits, seed, number, now)?;
        core.context.outbox.begin_at(halves.tx.burst(&[]));
        let mut engine = Engine {
            app,
            handlers: Handlers::default(),
            last_burst: now,
            core,
            tx: halves.tx,
            clock,
            workers,
            batch: Vec::with_capacity(crate::config::MAX_BATCH),
            slow: VecDeque::with_capacity(crate::config::MAX_BATCH),
            dropped: Arc::default(),
            tap: None,
            idle_iterations: 0,
            idle_mask: 0,
            dispatched: Dispatched::NOTHING,
            usual: false,
        };
        engine.choose_ways();
        Ok(Self {
            rx: halves.rx,
            engine,
        })
    }

    /// Registers a handler that runs in this thread, between two packets. Use it for work of up to
    /// a few hundred nanoseconds (eRPC §3.2).
    pub fn on(&mut self, req_type: ReqType, run: DispatchFn<App>) {
        self.engine.handlers.set(req_type, Handler::Dispatch(run));
    }

    /// Registers a handler that gets all requests of its type in an RX burst together. Responses
    /// may have as many bytes as a packet.
    pub fn on_batch(&mut self, req_type: ReqType, run: BatchFn<App>) {
        let max_response = self.engine.core.context.limits.data_size as usize;
        self.on_batch_up_to(req_type, max_response, run);
    }

    /// Like [`Self::on_batch`], with room for responses of `max_response` bytes, which saves
    /// memory if they are small.
    pub fn on_batch_up_to(&mut self, req_type: ReqType, max_response: usize, run: BatchFn<App>) {
        self.engine
            .handlers
            .set(req_type, Handler::Batch { run, max_response });
    }

    /// Registers a handler that worker threads run, with room for responses of `max_response`
    /// bytes. Without workers its requests are rejected as overloaded.
    pub fn on_background(
        &mut self,
        req_type: ReqType,
        max_response: usize,
        run: impl Fn(BackgroundRequest<'_>) + Send + Sync + 'static,
    ) {
        let run: BackgroundFn = Arc::new(run);
        self.engine
            .handlers
            .set(req_type, Handler::Background { run, max_response });
    }

    /// Sets the continuation, which gets the completion of every call. If none is set, the msgbufs
    /// of completed calls go back to the pool.
    pub fn on_completion(&mut self, run: CompletionFn<App>) {
        self.engine.handlers.completion = run;
    }

    /// Sets the function that runs when a session opens or ends, on either side.
    pub fn on_session(&mut self, run: SessionFn<App>) {
        self.engine.handlers.session = run;
    }

    /// Sets the function that runs when the client of a kept or deferred request no longer waits:
    /// the client has cancelled, its deadline has passed, or the session has closed. The request
    /// must nevertheless be answered or abandoned.
    pub fn on_given_up(&mut self, run: GivenUpFn<App>) {
        self.engine.handlers.given_up = run;
    }

    /// Sets the function that timers call.
    pub fn on_timer(&mut self, run: TimerFn<App>) {
        self.engine.handlers.timer = run;
    }

    /// The user's state.
    pub fn app(&self) -> &App {
        &self.engine.app
    }

    /// The user's state, for changes.
    pub fn app_mut(&mut self) -> &mut App {
        &mut self.engine.app
    }

    /// The [`Cx`] that handlers get, for use outside of them. Packets leave with the next
    /// `run_once`.
    pub fn cx(&mut self) -> Cx<'_> {
        self.with().1
    }

    /// The user's state, and the [`Cx`] that handlers get.
    pub fn with(&mut self) -> (&mut App, Cx<'_>) {
        let engine = &mut self.engine;
        engine.step_in();
        (
            &mut engine.app,
            Cx {
                core: &mut engine.core,
                dropped: &engine.dropped,
            },
        )
    }

    /// Like [`Self::cx`], without a new reading of the clock, for uses right after another one.
    pub fn cx_again(&mut self) -> Cx<'_> {
        let engine = &mut self.engine;
        Cx {
            core: &mut engine.core,
            dropped: &engine.dropped,
        }
    }

    /// Issues a request; see [`Cx::call`].
    ///
    /// # Errors
    /// As for [`Cx::call`].
    pub fn call(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
    ) -> Result<CallId, CallError> {
        self.cx().call(session, req_type, request, response, tag)
    }

    /// Issues a request with options; see [`Cx::call`].
    ///
    /// # Errors
    /// As for [`Cx::call`].
    pub fn call_with(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        self.cx()
            .call_with(session, req_type, request, response, tag, options)
    }

    /// A msgbuf of `len` bytes, whose content is arbitrary.
    ///
    /// # Errors
    /// If the pool's memory is used up.
    pub fn buf(&mut self, len: usize) -> Result<MsgBuf, AllocError> {
        self.engine.core.context.pool.alloc(len)
    }

    /// The counts of all events so far.
    pub fn counters(&self) -> &Counters {
        self.engine.core.context.stats.counters()
    }

    /// The times measured so far.
    pub fn histograms(&self) -> &Histograms {
        self.engine.core.context.stats.histograms()
    }

    /// The state of a session.
    ///
    /// # Errors
    /// If it has ended, or belongs to another endpoint.
    pub fn session_info(&self, session: Session) -> Result<SessionInfo, HandleError> {
        self.engine.core.session_info(session)
    }

    /// Sessions that are connecting or open.
    pub fn sessions(&self) -> impl Iterator<Item = Session> + '_ {
        self.sessions_from(SessionNum(0))
    }

    /// The sessions from a number on, for callers that look at a few at a time.
    pub fn sessions_from(&self, first: SessionNum) -> impl Iterator<Item = Session> + '_ {
        self.engine.core.sessions.iter_live(first)
    }

    /// The number of sessions that are connecting or open.
    pub fn session_count(&self) -> usize {
        self.engine.core.sessions.live()
    }

    /// The number of calls that have not ended: those in flight or in a backlog, cancelled ones
    /// that await the server's answer, and those whose end the completion function has not got yet.
    pub fn call_count(&self) -> usize {
        self.engine.core.calls.live() + self.engine.core.context.held.ending_count()
    }

    /// Passes to `each` every round trip measured since the last call, without the time in the
    /// server. The endpoint records round trips from the first call of this function on. For
    /// simulators and measurements that need more than the average in [`SessionInfo::rtt`].
    pub fn take_rtts(&mut self, each: impl FnMut(Nanos)) {
        self.engine.core.context.stats.take_rtts(each);
    }

    /// Bytes of memory for partly arrived large requests, over all sessions (rule S14).
    pub fn receiving(&self) -> u64 {
        self.engine.core.reassembly.bytes()
    }

    /// The bytes of the msgbufs in use, including their headers, and the number of these msgbufs.
    pub fn pool_use(&mut self) -> (usize, usize) {
        let pool = &mut self.engine.core.context.pool;
        (pool.bytes_in_use(), pool.outstanding())
    }

    /// Gives a session a congestion control scheme of the user's own (design §7). For the built-in
    /// schemes, use [`Self::set_scheme`].
    ///
    /// # Errors
    /// If the session has ended, or belongs to another endpoint.
    pub fn set_own_scheme(
        &mut self,
        session: Session,
        scheme: Box<dyn CongestionControl>,
    ) -> Result<(), HandleError> {
        let (index, path) = self.path_of(session)?;
        let core = &mut self.engine.core;
        let line = core.sessions.at_mut(index);
        core.pacer
            .set_own_scheme(line, scheme, &path, &mut core.context);
        Ok(())
    }

    /// Changes the congestion control of the requests that this side issues on a session. The
    /// scheme starts at line rate, without any samples.
    ///
    /// # Errors
    /// If the session has ended, or belongs to another endpoint.
    pub fn set_scheme(&mut self, session: Session, scheme: Scheme) -> Result<(), HandleError> {
        let (index, path) = self.path_of(session)?;
        let core = &mut self.engine.core;
        let line = core.sessions.at_mut(index);
        core.pacer
            .set_scheme(line, scheme, &path, &mut core.context);
        Ok(())
    }

    /// Chooses the steps that uncongested sessions skip (eRPC §5.2.2).
    pub fn set_bypasses(&mut self, bypasses: Bypasses) {
        self.engine.core.set_bypasses(bypasses);
        self.engine.choose_ways();
    }

    /// The steps that uncongested sessions skip now.
    pub fn bypasses(&self) -> Bypasses {
        self.engine.core.context.config.bypasses
    }

    /// A live session's index, and the path to its peer.
    fn path_of(&mut self, session: Session) -> Result<(SessionIdx, Path), HandleError> {
        self.engine.step_in();
        let engine = &self.engine;
        let index = engine.core.sessions.check(session)?;
        Ok((
            index,
            engine.path(engine.core.sessions.at(index).terms().peer),
        ))
    }

    /// Shows every packet from now on to the tap; `None` removes the tap.
    pub fn set_tap(&mut self, tap: Option<Box<dyn Tap>>) {
        let drops = self.engine.core.context.stats.counters().drops;
        self.engine.tap = tap.map(|tap| Tapping::new(tap, drops));
        self.engine.choose_ways();
    }

    /// The time at which the endpoint must run even if no frame comes in. [`Nanos::MAX`]: never.
    pub fn next_wakeup(&self) -> Nanos {
        let engine = &self.engine;
        if engine.core.context.has_work() || engine.dropped.any() || !engine.slow.is_empty() {
            return Nanos::ZERO;
        }
        engine.core.context.agenda.due()
    }

    /// Sets the waker of this endpoint's thread. Another thread uses it when it drops a deferred
    /// request. An owner that lets the thread sleep calls this once, before the first request.
    pub fn set_waker(&mut self, waker: std::task::Waker) {
        self.engine.dropped.set_waker(waker);
    }

    /// Notes that the thread has slept until a packet came or something was due. So the packets
    /// that the next iteration finds have not waited for the thread (rule W4).
    pub fn wake_up(&mut self) {
        let now = self.engine.clock.now();
        self.engine.core.context.moment.wake_up(now);
    }

    /// The time of the latest iteration that read the clock. Costs nothing.
    #[inline]
    pub fn last_now(&self) -> Nanos {
        self.engine.core.context.moment.now()
    }

    /// The time now, from the endpoint's clock.
    pub fn now(&mut self) -> Nanos {
        self.engine.clock.now()
    }

    /// Ends a session for the user. The control plane informs the peer.
    ///
    /// # Errors
    /// If it had already ended, or belongs to another endpoint.
    pub fn disconnect(&mut self, session: Session) -> Result<(), HandleError> {
        self.cx().disconnect(session)
    }

    /// Gives the packets of calls and answers since the last iteration to the transport. Without it
    /// they leave in the next iteration, so a thread with several endpoints calls this before it
    /// turns to another endpoint.
    pub fn send_queued(&mut self) {
        // The time since the last iteration was not spent in handlers.
        self.engine.dispatched = Dispatched::NOTHING;
        self.engine.transmit();
    }

    /// Sends the queued packets and waits until the transport has released them, before the
    /// endpoint goes away.
    pub fn flush(&mut self) {
        self.engine.transmit();
        self.engine.tx.flush();
    }
}
