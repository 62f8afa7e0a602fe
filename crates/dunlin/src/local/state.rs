//! What futures and their executor share, on one thread: calls that wait for their end, timers,
//! and who is to be polled (design §11). No code of the user runs while one of these cells is
//! borrowed.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Weak;
use std::sync::Arc;
use std::task::{Context, Waker};

use dunlin_core::{Nanos, Ticket};
use dunlin_service::Error;

use super::call::Calls;
use super::lent::Lent;
use super::port::Port;
use super::ready::{Ready, Remote};
use super::spawn::Spawned;
use super::timer::Timers;

/// See the file.
#[derive(Default)]
pub(super) struct State {
    /// The endpoint, while futures are polled.
    pub(super) lent: Lent,
    /// And at other times.
    pub(super) port: OnceCell<Weak<dyn Port>>,
    pub(super) calls: RefCell<Calls>,
    pub(super) timers: RefCell<Timers>,
    pub(super) ready: RefCell<Ready>,
    pub(super) remote: Arc<Remote>,
    /// Requests that were dropped while the endpoint was in use.
    pub(super) abandoned: RefCell<Vec<Ticket>>,
    /// Futures that were spawned and not yet taken over.
    pub(super) spawned: RefCell<Vec<Spawned>>,
    /// Wakers that are not ours: they run code of others, so they wait until the iteration ends.
    others: RefCell<Vec<Waker>>,
    /// Who waits for a session to open or close.
    sessions: RefCell<Vec<WakeBy>>,
    /// The task that was polled last, and what its waker points to. A task has one waker for ever,
    /// so this never becomes wrong.
    current: Cell<Option<(u32, *const ())>>,
    /// Why the call was refused that was issued last.
    pub(super) refused: Cell<Option<Error>>,
    /// Whoever runs this face beside other things, and waits.
    pub(super) driver: RefCell<Option<Waker>>,
    /// Futures that panicked.
    pub(super) panics: Cell<u64>,
}

/// Whom to wake: our own tasks by number, without touching a waker.
#[derive(Debug, Default)]
pub(super) enum WakeBy {
    #[default]
    Nobody,
    Task(u32),
    Waker(Waker),
}

impl WakeBy {
    /// Whoever polls with this context, if that is not noted already.
    #[inline]
    pub(super) fn note(&mut self, state: &State, context: &Context<'_>) {
        let waker = context.waker();
        if let Some((task, data)) = state.current.get()
            && data == waker.data()
        {
            *self = Self::Task(task);
            return;
        }
        match self {
            Self::Waker(noted) => noted.clone_from(waker),
            _ => *self = Self::Waker(waker.clone()),
        }
    }
}

impl State {
    /// Nothing waits for a future to be polled.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.ready.borrow().is_empty()
            && self.others.borrow().is_empty()
            && self.spawned.borrow().is_empty()
            && self.abandoned.borrow().is_empty()
            && !self.remote.any()
    }

    /// Keeps the reason of a call that is refused, for its future; false.
    #[cold]
    pub(super) fn refuse(&self, error: Error) -> bool {
        self.refused.set(Some(error));
        false
    }

    /// Whoever waits for something of ours is polled soon.
    #[inline]
    pub(super) fn wake(&self, whom: WakeBy) {
        match whom {
            WakeBy::Nobody => {}
            WakeBy::Task(task) => self.ready.borrow_mut().push(task),
            WakeBy::Waker(waker) => self.others.borrow_mut().push(waker),
        }
    }

    /// Wakes those whose wakers are not ours.
    pub(super) fn wake_others(&self) {
        loop {
            let waker = self.others.borrow_mut().pop();
            let Some(waker) = waker else { return };
            waker.wake();
        }
    }

    /// This task is polled now: what it waits for notes its number.
    #[inline]
    pub(super) fn set_current(&self, task: u32, waker: &Waker) {
        self.current.set(Some((task, waker.data())));
    }

    /// Tells whoever drives this face from outside that there is something to do.
    pub(super) fn disturb(&self) {
        let driver = self.driver.borrow_mut().take();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// The endpoint goes away: whoever waits for a timer or a session is woken to see it.
    pub(super) fn wake_all(&self) {
        while let Some(whom) = self.timers.borrow_mut().pop_due(Nanos::MAX) {
            self.wake(whom);
        }
        self.wake_for_sessions();
    }

    /// A session has opened or closed: whoever waits for that looks whether it is theirs.
    pub(super) fn wake_for_sessions(&self) {
        for whom in self.sessions.borrow_mut().drain(..) {
            self.wake(whom);
        }
    }

    pub(super) fn wait_for_sessions(&self, context: &Context<'_>) {
        let mut whom = WakeBy::Nobody;
        whom.note(self, context);
        self.sessions.borrow_mut().push(whom);
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("panics", &self.panics)
            .finish_non_exhaustive()
    }
}
