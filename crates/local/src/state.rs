//! State that futures and their executor share, on one thread: calls that have not ended, timers,
//! tasks to poll, and access to the endpoint. No code of the user runs while one of these cells is
//! borrowed.
//!
//! While a future is polled, the endpoint is lent to it (`lent.rs`), which costs one write of a
//! pointer. Outside of a poll, a [`Local::caller`](crate::Local::caller) finds the endpoint through
//! the `Local`. Either way, every operation takes effect immediately, and packets leave with the
//! current iteration or the next.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::hint::cold_path;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};

use dunlin_core::{Cx, Nanos, Refuse, Request, Session, SessionEvent, Ticket};
use dunlin_nexus::{ConnectError, ConnectOptions, FailedConnect};
use dunlin_service::spans::RequestSpan;
use dunlin_wire::ErrorCode;

use crate::calls::Calls;
use crate::events::Watchers;
use crate::lent::Lent;
use crate::ready::{Ready, Remote};
use crate::request::Parts;
use crate::tickets::Tickets;
use crate::timers::Timers;
use crate::wake::{Current, WakeBy};
use crate::wishes::{Wish, Wishes};

/// The most sessions that could not be made for which the reasons are kept.
const MAX_FAILED: usize = 64;

/// A future that was spawned.
pub(super) type Spawned = Pin<Box<dyn Future<Output = ()>>>;

/// An endpoint that is at rest.
pub(super) trait Port {
    /// Calls `run` with the endpoint, after reading the clock again. Returns false if the endpoint
    /// is gone, or in use further up the stack.
    fn with(&self, run: &mut dyn FnMut(&mut Cx<'_>)) -> bool;
}

/// State that futures and their executor share.
#[derive(Default)]
pub(super) struct State {
    /// The endpoint, while futures are polled.
    pub(super) lent: Lent,
    /// Access to the endpoint at other times.
    pub(super) port: OnceCell<Weak<dyn Port>>,
    pub(super) calls: Calls,
    pub(super) timers: RefCell<Timers>,
    pub(super) ready: RefCell<Ready>,
    pub(super) remote: Arc<Remote>,
    pub(super) tickets: Tickets,
    /// Something waits in one of the lists here, or has waited in this round.
    is_stirred: Cell<bool>,
    /// Tickets of requests that were dropped while the endpoint was in use.
    abandoned: RefCell<Vec<Ticket>>,
    /// The error code for requests that are dropped now; `None`: they count as unanswered.
    dropped_with: Cell<Option<ErrorCode>>,
    /// Memory of the last request that is over. Most requests are over before the next one arrives,
    /// so they do not need the list.
    pub(super) last_request: Cell<Option<Box<Parts>>>,
    /// Memory of further requests that are over.
    #[expect(clippy::vec_box, reason = "a request is moved as its box")]
    requests: RefCell<Vec<Box<Parts>>>,
    /// Spawned futures that the executor has not taken over yet.
    spawned: RefCell<Vec<Spawned>>,
    /// Wakers of other executors. They run foreign code, so they are called only after the
    /// iteration.
    others: RefCell<Vec<Waker>>,
    /// Futures that wait for a session to open or close.
    sessions: RefCell<Vec<WakeBy>>,
    /// Futures that follow the sessions of the endpoint.
    pub(super) watchers: Watchers,
    /// Sessions that futures ask for.
    wishes: Wishes,
    /// The latest sessions that could not be made.
    failed: RefCell<VecDeque<FailedConnect>>,
    /// The task that was polled last.
    pub(super) current: Current,
    /// The waker of the task of a foreign executor that drives this `Local`, while that task waits.
    pub(super) driver: RefCell<Option<Waker>>,
    /// The number of futures that panicked.
    panics: Cell<u64>,
}

impl State {
    /// Uses the endpoint; `None` if it is gone, or in use further up the stack.
    #[inline]
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
        match self.lent.is_there() {
            true => self.lent.with(run),
            false => self.with_port(run),
        }
    }

    #[cold]
    #[inline(never)]
    fn with_port<R>(&self, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
        let port = self.port.get().and_then(Weak::upgrade)?;
        let (mut run, mut result) = (Some(run), None);
        if port.with(&mut |cx| result = run.take().map(|run| run(cx))) {
            self.disturb();
        }
        result
    }

    /// Lends the endpoint to `run` while no future is polled. Returns false, without a call of
    /// `run`, if the endpoint is gone, or in use further up the stack.
    #[cold]
    #[inline(never)]
    pub(super) fn lend_port(&self, run: &mut dyn FnMut()) -> bool {
        let port = self.port.get().and_then(Weak::upgrade);
        let is_lent = port.is_some_and(|port| port.with(&mut |cx| self.lent.lend(cx, &mut *run)));
        if is_lent {
            self.disturb();
        }
        is_lent
    }

    /// Lends the endpoint to the future of a task, which `run` polls or drops.
    #[inline(always)]
    pub(super) fn poll<R>(
        &self,
        task: u32,
        waker: &Waker,
        cx: &mut Cx<'_>,
        run: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        self.lent.lend(cx, || self.poll_lent(task, waker, run))
    }

    /// Like [`Self::poll`], if the endpoint is already lent.
    #[inline(always)]
    pub(super) fn poll_lent<R>(
        &self,
        task: u32,
        waker: &Waker,
        run: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        self.current.set(task, waker);
        run(&mut Context::from_waker(waker))
    }

    /// Runs code of the user outside of the endpoint's functions, and catches its panics. Returns
    /// false if it has panicked.
    pub(super) fn contain(&self, run: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(run)).is_ok()
    }

    /// The number of futures that have panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.get()
    }

    /// Counts a future that has panicked.
    pub(super) fn on_panic(&self) {
        self.panics.set(self.panics.get() + 1);
    }

    /// Returns the memory of an earlier request than the last one that is over.
    pub(super) fn used_request(&self) -> Option<Box<Parts>> {
        self.requests.borrow_mut().pop()
    }

    /// Keeps the memory of a request that is over.
    #[inline]
    pub(super) fn keep_request(&self, parts: Box<Parts>) {
        if let Some(before) = self.last_request.replace(Some(parts)) {
            cold_path();
            self.requests.borrow_mut().push(before);
        }
    }

    /// Runs `drop`. Requests that it drops end with this code.
    #[cold]
    pub(super) fn drop_with(&self, code: ErrorCode, drop: impl FnOnce()) {
        /// Removes the code, even if a drop panics.
        struct Until<'a>(&'a State);

        impl Drop for Until<'_> {
            fn drop(&mut self) {
                self.0.dropped_with.set(None);
            }
        }

        self.dropped_with.set(Some(code));
        let _until = Until(self);
        drop();
    }

    /// Ends a request that was dropped without an answer.
    pub(super) fn end_dropped(&self, ticket: Ticket, span: &RequestSpan, cx: &mut Cx<'_>) {
        match self.dropped_with.get() {
            Some(code) => {
                span.on_refuse(code);
                ticket.refuse(cx, code);
            }
            None => {
                span.on_drop(|| cx.is_cancelled(ticket) != Ok(false));
                // The client may have gone.
                let _ = cx.abandon(ticket);
            }
        }
    }

    /// True if there is nothing to do between two iterations.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        !self.is_stirred.get() && !self.remote.any()
    }

    /// Begins the work that waits. Work that comes later waits for the next round.
    pub(super) fn settle(&self) {
        self.is_stirred.set(false);
    }

    /// Keeps a future that was spawned for the executor.
    pub(super) fn spawn(&self, future: Spawned) {
        self.is_stirred.set(true);
        self.spawned.borrow_mut().push(future);
    }

    /// Takes the futures that were spawned.
    pub(super) fn take_spawned(&self) -> Vec<Spawned> {
        self.spawned.take()
    }

    /// The ticket of the request with this number.
    pub(super) fn ticket(&self, number: u32, cx: &Cx<'_>) -> Ticket {
        let first = match self.tickets.is_first(number) {
            true => self.lent.arrived(|request| request.ticket(cx)),
            false => None,
        };
        first.unwrap_or_else(|| self.tickets.get(number))
    }

    /// At the end of a request's first poll: notes its ticket if it was not answered, because it
    /// may be answered later. Returns the ticket of such a request.
    pub(super) fn keep_arrived(&self) -> Option<Ticket> {
        if !self.tickets.is_unanswered() {
            return None;
        }
        let keep = |cx: &mut Cx<'_>| self.lent.arrived(|request| self.keep(request, cx));
        self.lent.with(keep)??
    }

    fn keep(&self, request: &Request<'_>, cx: &mut Cx<'_>) -> Option<Ticket> {
        let kept = request.keep_unanswered(cx);
        let is_dropped = self.tickets.keep(request.ticket(cx));
        // It was dropped while the endpoint was in use.
        if let Some(ticket) = kept
            && is_dropped
        {
            let _ = cx.abandon(ticket);
            return None;
        }
        kept
    }

    /// Keeps a request that was dropped while the endpoint was in use.
    pub(super) fn abandon(&self, number: u32) {
        self.is_stirred.set(true);
        if let Some(ticket) = self.tickets.drop_in_use(number) {
            self.abandoned.borrow_mut().push(ticket);
        }
    }

    /// Gives back the requests that were dropped while the endpoint was in use.
    pub(super) fn end_abandoned(&self, cx: &mut Cx<'_>) {
        for ticket in self.abandoned.borrow_mut().drain(..) {
            // The request's session may have ended meanwhile.
            let _ = cx.abandon(ticket);
        }
    }

    /// Keeps the wish of a future for a session.
    pub(super) fn wish(&self, to: Vec<SocketAddr>, options: ConnectOptions) -> Rc<Wish> {
        self.is_stirred.set(true);
        self.wishes.add(to, options)
    }

    /// Takes the wishes that are not granted yet.
    pub(super) fn take_wishes(&self) -> Vec<Rc<Wish>> {
        self.wishes.take()
    }

    /// Makes sure that the future which waits for one of our events is polled soon.
    #[inline]
    pub(super) fn wake(&self, future: WakeBy) {
        self.is_stirred.set(true);
        match future {
            WakeBy::None => {}
            WakeBy::Task(task) => self.ready.borrow_mut().push(task),
            WakeBy::Waker(waker) => self.others.borrow_mut().push(waker),
        }
    }

    /// Wakes the futures of other executors, in the order of their events.
    pub(super) fn wake_others(&self) {
        let mut wakers = self.others.take();
        wakers.drain(..).for_each(Waker::wake);
        // The list goes back, so that its memory is reused, unless a waker has added another future
        // meanwhile.
        let mut others = self.others.borrow_mut();
        if others.is_empty() {
            *others = wakers;
        }
    }

    /// Wakes the task of a foreign executor that drives this `Local`.
    pub(super) fn disturb(&self) {
        let driver = self.driver.borrow_mut().take();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Wakes the futures that wait for a timer or a session, because the endpoint is going away.
    pub(super) fn wake_all(&self) {
        while let Some(future) = self.timers.borrow_mut().pop_due(Nanos::MAX) {
            self.wake(future);
        }
        self.wake_for_sessions();
        self.watchers.end(|future| self.wake(future));
        self.refuse_wishes();
    }

    /// Refuses the sessions that futures have asked for, because the endpoint is gone.
    pub(super) fn refuse_wishes(&self) {
        for wish in self.take_wishes() {
            self.wake(wish.grant(|_, _| Err(ConnectError::Closed)));
        }
    }

    /// A session has opened or closed.
    pub(super) fn on_session(&self, event: SessionEvent) {
        self.watchers.on_event(event, |future| self.wake(future));
        self.wake_for_sessions();
    }

    /// Wakes all futures that wait for sessions, because a session has opened or closed; each
    /// future checks whether it was its own session.
    pub(super) fn wake_for_sessions(&self) {
        for future in self.sessions.borrow_mut().drain(..) {
            self.wake(future);
        }
    }

    /// Keeps the reason why a session could not be made, for futures that wait for it.
    pub(super) fn keep_failed(&self, failed: FailedConnect) {
        let mut all = self.failed.borrow_mut();
        if all.len() == MAX_FAILED {
            all.pop_front();
        }
        all.push_back(failed);
    }

    /// The reason why a session could not be made, if it is one of the last [`MAX_FAILED`].
    pub(super) fn failed(&self, session: Session) -> Option<FailedConnect> {
        let all = self.failed.borrow();
        all.iter().rev().find(|it| it.session == session).copied()
    }

    pub(super) fn wait_for_sessions(&self, context: &Context<'_>) {
        let mut future = WakeBy::None;
        future.note(&self.current, context);
        self.sessions.borrow_mut().push(future);
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("panics", &self.panics)
            .finish_non_exhaustive()
    }
}
