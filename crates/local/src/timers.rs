//! The times that futures wait for, in a heap. Sweeps keep entries of dropped timers from piling
//! up. One timer of the endpoint fires for the earliest time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Context;

use dunlin_core::{Cx, Nanos, TimerToken};

use crate::wake::{Current, WakeBy};

/// Stale entries that the heap may hold, beyond the number of live timers, before it is swept.
const SWEEP: usize = 64;

/// All timers of a `Local`.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Times, each with the place and the generation of its waiter.
    heap: BinaryHeap<Reverse<(Nanos, usize, u32)>>,
    waiters: Vec<Waiter>,
    free: Vec<usize>,
    /// The times for which timers of the endpoint are set. The earliest is the last.
    armed: Vec<Nanos>,
}

#[derive(Debug, Default)]
struct Waiter {
    generation: u32,
    fired: bool,
    future: WakeBy,
}

impl Timers {
    /// The number of entries in the heap.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn insert(&mut self, at: Nanos, future: WakeBy) -> usize {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.waiters.push(Waiter::default());
                self.free.reserve(self.waiters.capacity());
                self.waiters.len() - 1
            }
        };
        let waiter = &mut self.waiters[slot];
        (waiter.fired, waiter.future) = (false, future);
        self.heap.push(Reverse((at, slot, waiter.generation)));
        slot
    }

    /// Frees a place. Its entry in the heap is stale from here on.
    pub(super) fn remove(&mut self, slot: usize) {
        let waiter = &mut self.waiters[slot];
        waiter.generation = waiter.generation.wrapping_add(1);
        waiter.future = WakeBy::None;
        self.free.push(slot);
        let live = self.waiters.len() - self.free.len();
        if self.heap.len() > 2 * live + SWEEP {
            let waiters = &self.waiters;
            let is_live = |(_, slot, generation): &(Nanos, usize, u32)| {
                waiters[*slot].generation == *generation
            };
            self.heap.retain(|Reverse(timer)| is_live(timer));
        }
    }

    #[inline]
    pub(super) fn has_fired(&self, slot: usize) -> bool {
        self.waiters[slot].fired
    }

    /// Notes the future that waits for a timer.
    #[inline]
    pub(super) fn note(&mut self, slot: usize, current: &Current, context: &Context<'_>) {
        self.waiters[slot].future.note(current, context);
    }

    /// Takes the next timer that is due; returns the future to wake for it.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<WakeBy> {
        loop {
            let Reverse((at, slot, generation)) = *self.heap.peek()?;
            if at > now {
                return None;
            }
            self.heap.pop();
            let waiter = &mut self.waiters[slot];
            if waiter.generation == generation {
                waiter.fired = true;
                return Some(std::mem::take(&mut waiter.future));
            }
        }
    }

    /// Sets a timer of the endpoint for the earliest time, if no timer fires before it. Timers of
    /// the endpoint cannot be cancelled, but they stay few: each is set for an earlier time than
    /// all before it.
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
