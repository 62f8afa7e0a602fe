//! The events that a run has planned outside the network: faults, starts, sessions. They are few,
//! and the run asks when the next one is due, so this is a tree instead of the wheel of
//! `events.rs`. Owned by the stage of a run.

use std::collections::BTreeMap;

use dunlin_core::Nanos;

/// Events in order of time; events of the same time are in order of insertion.
#[derive(Debug)]
pub struct Schedule<E> {
    events: BTreeMap<(Nanos, u64), E>,
    added: u64,
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self {
            events: BTreeMap::new(),
            added: 0,
        }
    }
}

impl<E> Schedule<E> {
    /// Adds an event.
    pub fn add(&mut self, at: Nanos, event: E) {
        self.added += 1;
        self.events.insert((at, self.added), event);
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next event, if it is due.
    pub fn take_due(&mut self, now: Nanos) -> Option<E> {
        let first = self.events.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests;
