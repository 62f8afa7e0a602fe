//! When the plane must look at each connection and each route. So it spends time only on the
//! entries that are due, not on all. That matters, because a server with thousands of connections
//! sends a heartbeat every few microseconds.
//!
//! Invariant: each name has at most one time. Owned and called by `plane`.

use dunlin_core::Nanos;
use dunlin_core::ordered::{Map, Set};

/// Names, each with the time at which it is due.
#[derive(Debug)]
pub(super) struct Agenda<K> {
    at: Map<K, Nanos>,
    order: Set<(Nanos, K)>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self {
            at: Map::new(),
            order: Set::new(),
        }
    }
}

impl<K: Copy + Ord> Agenda<K> {
    /// Sets the time of a name; [`Nanos::MAX`] removes it.
    pub(super) fn set(&mut self, name: K, at: Nanos) {
        if self.at.get(&name) == Some(&at) {
            return;
        }
        self.remove(name);
        if at != Nanos::MAX {
            self.at.insert(name, at);
            self.order.insert((at, name));
        }
    }

    pub(super) fn remove(&mut self, name: K) {
        if let Some(at) = self.at.remove(&name) {
            self.order.remove(&(at, name));
        }
    }

    /// The earliest time.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The names whose time has come, in the order of names.
    pub(super) fn due(&self, now: Nanos) -> Vec<K> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        let mut names: Vec<K> = due.map(|(_, name)| *name).collect();
        names.sort_unstable();
        names
    }
}
