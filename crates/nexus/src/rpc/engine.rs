//! Handlers, calls and counters: the protocol of `dunlin_core`, for users. Every function here only
//! forwards to core. Functions that only the control plane needs are left out.

use dunlin_core::{
    BackgroundRequest, BatchFn, Bypasses, CallError, CallId, CallOptions, CompletionFn,
    CongestionControl, Counters, Cx, DispatchFn, Endpoint as Engine, Facts, GivenUpFn, HandleError,
    Histograms, Nanos, Register, Scheme, Session, SessionFn, SessionInfo, Tag, TimerFn,
};
use dunlin_msgbuf::{AllocError, MsgBuf};
use dunlin_wire::ReqType;

use super::{FailedFn, Rpc, ServingFn};
use crate::clock::TscClock;
use crate::transports::Open;

/// Handlers and functions of the user.
impl<T: Open, App> Rpc<T, App> {
    /// Registers a handler that runs in this thread, between two packets. Use it for work of up to
    /// a few hundred nanoseconds (eRPC §3.2).
    ///
    /// ```
    /// # use dunlin_nexus::Rpc;
    /// # use dunlin_transport::shm::Shm;
    /// # use dunlin_wire::ReqType;
    /// fn serve(rpc: &mut Rpc<Shm, u64>) {
    ///     rpc.on(ReqType(1), |requests, request, cx| {
    ///         *requests += 1;
    ///         request.reply_bytes(cx, &requests.to_le_bytes());
    ///     });
    /// }
    /// ```
    #[inline]
    pub fn on(&mut self, req_type: ReqType, run: DispatchFn<App>) {
        self.engine.on(req_type, run);
    }

    /// Registers a handler that gets all requests of its type in an RX burst with one call. A
    /// response may have as many bytes as fit into a packet.
    ///
    /// ```
    /// # use dunlin_nexus::Rpc;
    /// # use dunlin_transport::shm::Shm;
    /// # use dunlin_wire::ReqType;
    /// fn serve(rpc: &mut Rpc<Shm, ()>) {
    ///     rpc.on_batch(ReqType(2), |(), mut batch, _| {
    ///         for item in batch.iter_mut() {
    ///             let sum = item.data().iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    ///             // One byte fits into any packet.
    ///             let _ = item.reply(1, |out| out[0] = sum);
    ///         }
    ///     });
    /// }
    /// ```
    #[inline]
    pub fn on_batch(&mut self, req_type: ReqType, run: BatchFn<App>) {
        self.engine.on_batch(req_type, run);
    }

    /// Like [`Self::on_batch`], with room for responses of `max_response` bytes, which saves memory
    /// if they are small.
    #[inline]
    pub fn on_batch_up_to(&mut self, req_type: ReqType, max_response: usize, run: BatchFn<App>) {
        self.engine.on_batch_up_to(req_type, max_response, run);
    }

    /// Registers a handler that worker threads run
    /// ([`NexusBuilder::workers`](crate::NexusBuilder::workers)), with room for responses of
    /// `max_response` bytes. Without workers its requests are rejected as overloaded.
    #[inline]
    pub fn on_background(
        &mut self,
        req_type: ReqType,
        max_response: usize,
        run: impl Fn(BackgroundRequest<'_>) + Send + Sync + 'static,
    ) {
        self.engine.on_background(req_type, max_response, run);
    }

    /// A request type for which a second handler has replaced the first.
    pub const fn registered_twice(&self) -> Option<ReqType> {
        self.engine.registered_twice()
    }

    /// Adds the name of a service to those that this endpoint serves. The `register` function that
    /// the attribute generates calls this.
    pub fn add_service(&mut self, name: &'static str) {
        self.services.push(name);
    }

    /// The names that [`Self::add_service`] has added. Handlers that the program has registered
    /// itself belong to none of these services.
    pub fn services(&self) -> &[&'static str] {
        &self.services
    }

    /// Stores facts about a service for the layer that has made them. The `register` function that
    /// the attribute generates with the option `reflect` calls this.
    pub fn add_facts(&mut self, facts: Facts) {
        self.facts.push(facts);
    }

    /// The facts that [`Self::add_facts`] has added.
    pub fn facts(&self) -> &[Facts] {
        &self.facts
    }

    /// Sets the continuation, which gets the end of every call. If none is set, the msgbufs of
    /// calls go back to the pool.
    #[inline]
    pub fn on_completion(&mut self, run: CompletionFn<App>) {
        self.engine.on_completion(run);
    }

    /// Sets the function that gets the sessions that open and close, on both sides.
    #[inline]
    pub fn on_session(&mut self, run: SessionFn<App>) {
        self.engine.on_session(run);
    }

    /// Sets the function that gets deferred requests whose client no longer waits, because it has
    /// cancelled, its deadline has passed, or the session has closed. The program must nevertheless
    /// answer or abandon each of them.
    #[inline]
    pub fn on_given_up(&mut self, run: GivenUpFn<App>) {
        self.engine.on_given_up(run);
    }

    /// Sets the function that is called for each session that could not be made, with the reason.
    /// The function of [`Self::on_session`] gets the end of the session.
    pub fn on_connect_failed(&mut self, run: FailedFn<App>) {
        self.failed = run;
    }

    /// Sets the function that timers call ([`Cx::timer`]).
    #[inline]
    pub fn on_timer(&mut self, run: TimerFn<App>) {
        self.engine.on_timer(run);
    }
}

/// State of the user, msgbufs and calls.
impl<T: Open, App> Rpc<T, App> {
    /// The user's state.
    #[inline]
    pub fn app(&self) -> &App {
        self.engine.app()
    }

    /// The user's state, for changes.
    #[inline]
    pub fn app_mut(&mut self) -> &mut App {
        self.engine.app_mut()
    }

    /// The context that handlers get, for use outside of them. Packets leave with the next
    /// iteration.
    #[inline]
    pub fn cx(&mut self) -> Cx<'_> {
        self.engine.cx()
    }

    /// The user's state, together with the context that handlers get.
    ///
    /// ```
    /// # use dunlin_core::{Session, Tag};
    /// # use dunlin_nexus::Rpc;
    /// # use dunlin_transport::shm::Shm;
    /// # use dunlin_wire::ReqType;
    /// /// Issues everything that waits in the state.
    /// fn issue(rpc: &mut Rpc<Shm, Vec<Vec<u8>>>, session: Session) {
    ///     let (waiting, mut cx) = rpc.with();
    ///     for bytes in waiting.drain(..) {
    ///         let (Ok(request), Ok(response)) = (cx.copy(&bytes), cx.buf(64)) else { return };
    ///         let _ = cx.call(session, ReqType(1), request, response, Tag(0));
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn with(&mut self) -> (&mut App, Cx<'_>) {
        self.engine.with()
    }

    /// Like [`Self::cx`], but does not read the clock again: for use right after [`Self::cx`].
    #[inline]
    pub fn cx_again(&mut self) -> Cx<'_> {
        self.engine.cx_again()
    }

    /// A msgbuf of `len` bytes, whose content is arbitrary.
    ///
    /// # Errors
    /// If the pool's memory is used up.
    #[inline]
    pub fn buf(&mut self, len: usize) -> Result<MsgBuf, AllocError> {
        self.engine.buf(len)
    }

    /// Issues a request; see [`Cx::call`]. The function of [`Self::on_completion`] gets the call's
    /// end, with `tag` and both msgbufs.
    ///
    /// # Errors
    /// As for [`Cx::call`].
    #[inline]
    pub fn call(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
    ) -> Result<CallId, CallError> {
        self.engine.call(session, req_type, request, response, tag)
    }

    /// Issues a request with options; see [`Cx::call`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use dunlin_core::{CallOptions, Session, Tag};
    /// # use dunlin_msgbuf::MsgBuf;
    /// # use dunlin_nexus::Rpc;
    /// # use dunlin_transport::shm::Shm;
    /// # use dunlin_wire::ReqType;
    /// /// Issues a request that ends within a millisecond, answered or not.
    /// fn ask(rpc: &mut Rpc<Shm, ()>, session: Session, bufs: [MsgBuf; 2]) {
    ///     let [request, response] = bufs;
    ///     let deadline = Some(Duration::from_millis(1).into());
    ///     let options = CallOptions { deadline };
    ///     let _ = rpc.call_with(session, ReqType(1), request, response, Tag(0), options);
    /// }
    /// ```
    ///
    /// # Errors
    /// As for [`Cx::call`].
    #[inline]
    pub fn call_with(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        self.engine
            .call_with(session, req_type, request, response, tag, options)
    }
}

/// Sessions, and how they are paced.
impl<T: Open, App> Rpc<T, App> {
    /// The state of a session.
    ///
    /// # Errors
    /// The session has ended, or belongs to another endpoint.
    pub fn session_info(&self, session: Session) -> Result<SessionInfo, HandleError> {
        self.engine.session_info(session)
    }

    /// Sessions that are connecting or open.
    pub fn sessions(&self) -> impl Iterator<Item = Session> + '_ {
        self.engine.sessions()
    }

    /// The number of sessions that are connecting or open.
    pub fn session_count(&self) -> usize {
        self.engine.session_count()
    }

    /// Gives the packets of calls and answers since the last iteration to the transport. Without it
    /// they leave in the next iteration, so a thread with several endpoints calls this before it
    /// turns to another endpoint.
    pub fn send_queued(&mut self) {
        self.engine.send_queued();
    }

    /// Ends a session. Its calls end with an error, and its peer is informed.
    ///
    /// # Errors
    /// The session has already ended, or belongs to another endpoint.
    pub fn disconnect(&mut self, session: Session) -> Result<(), HandleError> {
        self.engine.disconnect(session)
    }

    /// Changes the congestion control of the requests that this side issues on a session. The
    /// scheme starts at line rate, without any samples.
    ///
    /// # Errors
    /// If the session has ended, or belongs to another endpoint.
    pub fn set_scheme(&mut self, session: Session, scheme: Scheme) -> Result<(), HandleError> {
        self.engine.set_scheme(session, scheme)
    }

    /// Gives a session a congestion control scheme that the user has written; [`Self::set_scheme`]
    /// is for the built-in ones.
    ///
    /// # Errors
    /// If the session has ended, or belongs to another endpoint.
    pub fn set_own_scheme(
        &mut self,
        session: Session,
        scheme: Box<dyn CongestionControl>,
    ) -> Result<(), HandleError> {
        self.engine.set_own_scheme(session, scheme)
    }

    /// From now on, skips these steps for uncongested sessions (eRPC §5.2.2).
    pub fn set_bypasses(&mut self, bypasses: Bypasses) {
        self.engine.set_bypasses(bypasses);
    }

    /// The steps that are skipped now.
    pub fn bypasses(&self) -> Bypasses {
        self.engine.bypasses()
    }
}

/// Drain (rule C14).
impl<T: Open, App> Rpc<T, App> {
    /// Answers all new requests with [`SHUTTING_DOWN`](dunlin_wire::ErrorCode::SHUTTING_DOWN)
    /// instead of giving them to a handler; the counter `turned_away` counts them. Requests that
    /// handlers already have continue. Clients leave by themselves if the nexus announces that it
    /// drains ([`Nexus::serve`](crate::Nexus::serve)).
    pub fn drain(&mut self) {
        self.engine.drain();
    }

    /// The number of requests that handlers have not answered yet: deferred requests, and requests
    /// of workers.
    pub fn requests_under_way(&self) -> usize {
        self.engine.requests_under_way()
    }

    /// Sets the function that gets the services of a peer's process: before the process grants a
    /// session, and after each change. Some processes never announce them.
    pub fn on_serving(&mut self, run: ServingFn<App>) {
        self.serving = run;
    }
}

/// Time, and counters.
impl<T: Open, App> Rpc<T, App> {
    /// The time now, from the endpoint's clock.
    #[inline]
    pub fn now(&mut self) -> Nanos {
        self.engine.now()
    }

    /// The time of the latest iteration that read the clock. Costs nothing.
    #[inline]
    pub fn last_now(&self) -> Nanos {
        self.engine.last_now()
    }

    /// The time at which the endpoint must run even if no frame has come. [`Nanos::MAX`]: never.
    pub fn next_wakeup(&self) -> Nanos {
        self.engine.next_wakeup()
    }

    /// The counts of all events so far.
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// The times measured so far.
    pub fn histograms(&self) -> &Histograms {
        self.engine.histograms()
    }

    /// The number of calls that have not ended. It includes waiting calls, cancelled calls that
    /// still need the server's answer, and calls whose end the completion function has not got yet.
    pub fn call_count(&self) -> usize {
        self.engine.call_count()
    }

    /// Passes to `each` every round trip measured since the last call, without the time in the
    /// server. The endpoint records round trips only from the first call of this function on. For
    /// measurements that need more than the average in [`SessionInfo::rtt`].
    pub fn take_rtts(&mut self, each: impl FnMut(Nanos)) {
        self.engine.take_rtts(each);
    }

    /// Bytes of partly arrived large requests, over all sessions (rule S14).
    pub fn receiving(&self) -> u64 {
        self.engine.receiving()
    }

    /// The bytes of msgbufs in use, including their headers, and the number of these msgbufs.
    pub fn pool_use(&mut self) -> (usize, usize) {
        self.engine.pool_use()
    }
}

impl<T: Open, App> Rpc<T, App> {
    /// The protocol itself, for experiments that change more of it than the functions above allow.
    #[doc(hidden)]
    pub fn engine_mut(&mut self) -> &mut Engine<T, TscClock, App> {
        &mut self.engine
    }
}

impl<T: Open, App> Register<App> for Rpc<T, App> {
    fn register(&mut self, req_type: ReqType, run: DispatchFn<App>) {
        self.on(req_type, run);
    }

    fn register_batch(&mut self, req_type: ReqType, max_response: usize, run: BatchFn<App>) {
        self.on_batch_up_to(req_type, max_response, run);
    }

    fn add_service(&mut self, name: &'static str) {
        Self::add_service(self, name);
    }

    fn add_facts(&mut self, facts: Facts) {
        Self::add_facts(self, facts);
    }
}
