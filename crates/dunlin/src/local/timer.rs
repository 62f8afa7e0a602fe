//! Timers as futures. A heap of them here, because dropped ones must not pile up; one timer of the
//! endpoint wakes for the earliest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use dunlin_core::{Cx, Nanos, TimerToken};

use super::state::{State, WakeBy};

/// Dropped timers that may lie in the heap before it is swept, beside as many as are live.
const SWEEP: usize = 64;

/// Waits for a time. It ends at once if the endpoint is gone.
#[must_use = "nothing waits until it is awaited"]
pub struct Sleep {
    state: Rc<State>,
    at: Nanos,
    slot: Option<usize>,
}

/// All timers of a `Local`.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Times with the place and the generation of their entry.
    heap: BinaryHeap<Reverse<(Nanos, usize, u32)>>,
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// When the endpoint's timers fire that were set for these; the earliest is the last.
    armed: Vec<Nanos>,
}

#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    fired: bool,
    whom: WakeBy,
}

impl Sleep {
    pub(super) const fn new(state: Rc<State>, at: Nanos) -> Self {
        Self {
            state,
            at,
            slot: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let state = &*this.state;
        if let Some(slot) = this.slot {
            let mut timers = state.timers.borrow_mut();
            if timers.entries[slot].fired {
                timers.remove(slot);
                this.slot = None;
                return Poll::Ready(());
            }
            timers.entries[slot].whom.note(state, context);
            return Poll::Pending;
        }
        let mut whom = WakeBy::Nobody;
        whom.note(state, context);
        let at = this.at;
        let begun = state.with(|cx| {
            if at <= cx.now() {
                return None;
            }
            let mut timers = state.timers.borrow_mut();
            let slot = timers.insert(at, whom);
            timers.arm(cx);
            Some(slot)
        });
        this.slot = begun.flatten();
        match this.slot {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.state.timers.borrow_mut().remove(slot);
        }
    }
}

impl Timers {
    /// How many lie in the heap.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    fn insert(&mut self, at: Nanos, whom: WakeBy) -> usize {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.entries.push(Entry::default());
                self.free.reserve(self.entries.capacity());
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[slot];
        (entry.fired, entry.whom) = (false, whom);
        self.heap.push(Reverse((at, slot, entry.generation)));
        slot
    }

    /// Frees a place. What is in the heap for it is stale from here on.
    fn remove(&mut self, slot: usize) {
        let entry = &mut self.entries[slot];
        entry.generation = entry.generation.wrapping_add(1);
        entry.whom = WakeBy::Nobody;
        self.free.push(slot);
        let live = self.entries.len() - self.free.len();
        if self.heap.len() > 2 * live + SWEEP {
            let entries = &self.entries;
            let is_live = |(_, slot, generation): &(Nanos, usize, u32)| {
                entries[*slot].generation == *generation
            };
            self.heap.retain(|Reverse(timer)| is_live(timer));
        }
    }

    /// The next timer that is due fires; says who waits for it.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<WakeBy> {
        loop {
            let Reverse((at, slot, generation)) = *self.heap.peek()?;
            if at > now {
                return None;
            }
            self.heap.pop();
            let entry = &mut self.entries[slot];
            if entry.generation == generation {
                entry.fired = true;
                return Some(std::mem::take(&mut entry.whom));
            }
        }
    }

    /// Sets a timer of the endpoint for the earliest, if none fires before that. So they are few,
    /// although they cannot be cancelled: each is earlier than all that were set before it.
    pub(super) fn arm(&mut self, cx: &mut Cx<'_>) {
        while self.armed.last().is_some_and(|at| *at <= cx.now()) {
            self.armed.pop();
        }
        if let Some(Reverse((at, ..))) = self.heap.peek()
            && self.armed.last().is_none_or(|armed| at < armed)
        {
            self.armed.push(*at);
            cx.timer(*at, TimerToken(0));
        }
    }
}

impl std::fmt::Debug for Sleep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sleep")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
