//! State that futures and their executor share, on one thread: calls that wait for their end,
//! timers, tasks to poll, and access to the endpoint. No code of the user runs while one of these
//! cells is borrowed.
//!
//! While a future is polled, the endpoint is lent to it (`lent.rs`), which costs one write of a
//! pointer. Outside of a poll, a [`Local::caller`](crate::Local::caller) finds the endpoint through
//! the `Local`. Either way, every operation takes effect immediately, and packets leave with the
//! current iteration or the next.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Weak;
use std::sync::Arc;
use std::task::{Context, Waker};

use dunlin_core::{Cx, Nanos, Refuse, Session, SessionEvent, Ticket};
use dunlin_nexus::{ConnectError, FailedConnect};
use dunlin_service::Error;
use dunlin_service::spans::RequestSpan;
use dunlin_wire::ErrorCode;

use crate::calls::Calls;
use crate::events::Watchers;
use crate::lent::Lent;
use crate::ready::{Ready, Remote};
use crate::request::Parts;
use crate::task::Spawned;
use crate::timers::Timers;
use crate::wake::{Current, WakeBy};
use crate::wishes::Wishes;

/// The number of sessions that could not be made whose reasons are kept.
const MAX_FAILED: usize = 64;

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
    /// Tickets of requests that were dropped while the endpoint was in use.
    pub(super) abandoned: RefCell<Vec<Ticket>>,
    /// The code with which requests end that are dropped now; `None`: they count as unanswered.
    dropped_with: Cell<Option<ErrorCode>>,
    /// Memory of requests that are over, for new ones.
    #[expect(clippy::vec_box, reason = "a request is moved as its box")]
    requests: RefCell<Vec<Box<Parts>>>,
    /// Futures that were spawned, which the executor has not taken over yet.
    pub(super) spawned: RefCell<Vec<Spawned>>,
    /// Wakers of other executors. They run foreign code, so they are called only after the
    /// iteration.
    others: RefCell<Vec<Waker>>,
    /// Futures that wait for a session to open or close.
    sessions: RefCell<Vec<WakeBy>>,
    /// Futures that follow the sessions of the endpoint.
    pub(super) watchers: Watchers,
    /// Sessions that futures ask for.
    pub(super) wishes: Wishes,
    /// The latest sessions that could not be made.
    failed: RefCell<VecDeque<FailedConnect>>,
    /// The task that was polled last.
    pub(super) current: Current,
    /// The reason why the last call was refused.
    pub(super) refused: Cell<Option<Error>>,
    /// The waker of the task of a foreign executor that drives this `Local`, while that task waits.
    pub(super) driver: RefCell<Option<Waker>>,
    /// The number of futures that panicked.
    pub(super) panics: Cell<u64>,
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

    /// Returns the memory of an earlier request, if there is any, for a new one.
    #[inline]
    pub(super) fn used_request(&self) -> Option<Box<Parts>> {
        self.requests.borrow_mut().pop()
    }

    /// Keeps the memory of a request that is over.
    #[inline]
    pub(super) fn keep_request(&self, parts: Box<Parts>) {
        self.requests.borrow_mut().push(parts);
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

    /// Whether no future waits to be polled.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.ready.borrow().is_empty()
            && self.others.borrow().is_empty()
            && self.spawned.borrow().is_empty()
            && self.abandoned.borrow().is_empty()
            && self.wishes.is_empty()
            && !self.remote.any()
    }

    /// Keeps the reason why a call was refused, for the call's future. Returns false.
    #[cold]
    pub(super) fn refuse(&self, error: Error) -> bool {
        self.refused.set(Some(error));
        false
    }

    /// Makes sure that the future which waits for one of our events is polled soon.
    #[inline]
    pub(super) fn wake(&self, future: WakeBy) {
        match future {
            WakeBy::None => {}
            WakeBy::Task(task) => self.ready.borrow_mut().push(task),
            WakeBy::Waker(waker) => self.others.borrow_mut().push(waker),
        }
    }

    /// Wakes the futures of other executors.
    pub(super) fn wake_others(&self) {
        loop {
            let waker = self.others.borrow_mut().pop();
            let Some(waker) = waker else { return };
            waker.wake();
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
        for wish in self.wishes.take() {
            self.wake(wish.grant(|_, _| Err(ConnectError::Closed)));
        }
    }

    /// A session has opened or closed.
    pub(super) fn on_session(&self, event: SessionEvent) {
        self.watchers.on_event(event, |future| self.wake(future));
        self.wake_for_sessions();
    }

    /// Wakes all futures that wait for sessions, because a session has opened or closed; each
    /// future checks whether its own session is the one.
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
