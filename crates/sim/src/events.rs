//! The queue of what happens next: a heap over (time, order of insertion).
//!
//! Invariant: two events of the same time come out in the order in which they went in, so a run
//! does not depend on how the heap breaks ties. Called by `net` and `world`.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use dunlin_core::Nanos;

/// Events in the order of their time.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Nanos,
    order: u64,
    event: E,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Puts `event` in at time `at`.
    pub fn push(&mut self, at: Nanos, event: E) {
        self.heap.push(Entry {
            at,
            order: self.next,
            event,
        });
        self.next += 1;
    }

    /// Takes the earliest event out.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// The time of the earliest event.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing will ever happen again.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Ord for Entry<E> {
    /// Reversed, because the standard heap gives out its greatest entry.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests;
