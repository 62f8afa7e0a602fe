//! The board on which the endpoint's thread shows the state of a channel, and the tasks that wait
//! for a change of it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use dunlin_channel::{Counters, State};
use dunlin_core::Nanos;

use crate::error::{AddressError, Reasons};

/// The state of a channel and of its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelState {
    /// The state of the channel as a whole.
    pub state: State,
    /// The channel's addresses. For a name, the addresses that the last look-up found; a name
    /// without an address is listed itself.
    pub addresses: Vec<AddressState>,
}

/// The state of one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressState {
    /// Host and port.
    pub address: String,
    /// The state of its links.
    pub state: State,
    /// The last error, even if the address works again.
    pub last_error: Option<AddressError>,
}

#[derive(Debug)]
pub(crate) struct Board {
    shown: Mutex<Shown>,
    counters: Mutex<Counters>,
    /// Calls that handles of the channel have refused, so that its thread never got them.
    full: AtomicU64,
}

#[derive(Debug)]
struct Shown {
    version: u64,
    state: ChannelState,
    is_closed: bool,
    /// Times up to this one have passed, on the clock of the endpoint's thread.
    passed: Nanos,
    /// Tasks by name. Many calls may wait for layers, so none of them looks at all others.
    waiting: BTreeMap<u64, Waiting>,
    /// The times for which tasks wait, with their names.
    times: BTreeSet<(Nanos, u64)>,
    /// The name that the next waiting task gets.
    next: u64,
}

/// A task that waits for a time, and perhaps for a change before.
#[derive(Debug)]
struct Waiting {
    until: Nanos,
    ends_by_change: bool,
    waker: Waker,
}

/// The board, as a task that waits sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    pub(crate) state: ChannelState,
    pub(crate) is_closed: bool,
    pub(crate) passed: Nanos,
}

impl ChannelState {
    /// Each address with its last error.
    pub(crate) fn reasons(&self) -> Reasons {
        let addresses = self.addresses.iter();
        Reasons(
            addresses
                .map(|it| (it.address.clone(), it.last_error))
                .collect(),
        )
    }
}

impl Default for Board {
    fn default() -> Self {
        let state = ChannelState {
            state: State::Connecting,
            addresses: Vec::new(),
        };
        let shown = Shown {
            version: 0,
            state,
            is_closed: false,
            passed: Nanos::ZERO,
            waiting: BTreeMap::new(),
            times: BTreeSet::new(),
            next: 0,
        };
        Self {
            shown: Mutex::new(shown),
            counters: Mutex::default(),
            full: AtomicU64::new(0),
        }
    }
}

impl Board {
    pub(crate) fn see(&self) -> Seen {
        let shown = self.lock();
        Seen {
            version: shown.version,
            state: shown.state.clone(),
            is_closed: shown.is_closed,
            passed: shown.passed,
        }
    }

    /// Makes a task wait for the next change, or until `until`. `name` is the task's name from its
    /// last wait. Returns true if the endpoint's thread may not know `until`: the task does not
    /// wait yet, or for a later time, or a change of the state has woken it.
    pub(crate) fn wait(&self, name: &mut Option<u64>, until: Nanos, context: &Context<'_>) -> bool {
        self.add(name, until, true, context)
    }

    /// Like [`Self::wait`], for a task that no change of the state wakes, except for the channel's
    /// end.
    #[cfg(feature = "tower")]
    pub(crate) fn sleep(
        &self,
        name: &mut Option<u64>,
        until: Nanos,
        context: &Context<'_>,
    ) -> bool {
        self.add(name, until, false, context)
    }

    fn add(
        &self,
        name: &mut Option<u64>,
        until: Nanos,
        ends_by_change: bool,
        context: &Context<'_>,
    ) -> bool {
        let waiting = Waiting {
            until,
            ends_by_change,
            waker: context.waker().clone(),
        };
        let mut shown = self.lock();
        let name = *name.get_or_insert_with(|| {
            shown.next += 1;
            shown.next
        });
        let before = shown.remove(name);
        shown.times.insert((until, name));
        shown.waiting.insert(name, waiting);
        drop(shown);
        before.is_none_or(|before| until < before.until)
    }

    /// Removes a task that no longer waits.
    pub(crate) fn forget(&self, name: u64) {
        // Without the lock, because the drop of a waker may run any code.
        let waiting = self.lock().remove(name);
        drop(waiting);
    }

    /// Times up to this one have passed, on the clock of the endpoint's thread. `None`: the channel
    /// is closed.
    #[cfg(feature = "tower")]
    pub(crate) fn passed(&self) -> Option<Nanos> {
        let shown = self.lock();
        (!shown.is_closed).then_some(shown.passed)
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut shown = *self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        // A refused call is no event for the thread, so it may have shown an older count.
        shown.full = shown.full.max(self.full.load(Ordering::Relaxed));
        shown
    }

    /// Counts a call that the full channel has refused.
    pub(crate) fn on_full(&self) {
        self.full.fetch_add(1, Ordering::Relaxed);
    }

    // Called by the endpoint's thread.

    /// Shows the counters, with the calls that handles have refused. Returns the new counters and
    /// the previous ones.
    pub(crate) fn count(&self, mut counters: Counters) -> [Counters; 2] {
        counters.full += self.full.load(Ordering::Relaxed);
        let mut shown = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        [counters, std::mem::replace(&mut shown, counters)]
    }

    pub(crate) fn show(&self, state: ChannelState) {
        let mut shown = self.lock();
        // A further session of an address, for example, changes nothing that a program sees.
        if shown.state == state {
            return;
        }
        shown.version += 1;
        shown.state = state;
        wake(shown, |waiting| waiting.ends_by_change);
    }

    pub(crate) fn close(&self) {
        let mut shown = self.lock();
        shown.version += 1;
        shown.is_closed = true;
        shown.state.state = State::Gone;
        wake(shown, |_| true);
    }

    /// Wakes the tasks whose time has come; returns the earliest time of the others.
    pub(crate) fn on_time(&self, now: Nanos) -> Option<Nanos> {
        let mut shown = self.lock();
        shown.passed = now;
        let mut due = Vec::new();
        while let Some(&(until, name)) = shown.times.first()
            && until <= now
        {
            due.extend(shown.remove(name));
        }
        let next = shown.times.first().map(|first| first.0);
        drop(shown);
        wake_all(due);
        next.filter(|until| *until != Nanos::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn remove(&mut self, name: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&name)?;
        self.times.remove(&(waiting.until, name));
        Some(waiting)
    }
}

/// Wakes tasks after a change.
fn wake(mut shown: MutexGuard<'_, Shown>, which: impl Fn(&Waiting) -> bool) {
    let names = shown.waiting.iter().filter(|(_, waiting)| which(waiting));
    let names: Vec<u64> = names.map(|(name, _)| *name).collect();
    let due: Vec<Waiting> = names.iter().filter_map(|it| shown.remove(*it)).collect();
    drop(shown);
    wake_all(due);
}

/// Wakes tasks. The caller does not have the lock, because a waker may run any code.
fn wake_all(due: Vec<Waiting>) {
    for waiting in due {
        // A waker is code of the program, and its panic must affect only its own task.
        let _ = catch_unwind(AssertUnwindSafe(|| waiting.waker.wake()));
    }
}

#[cfg(test)]
mod tests;
