//! Virtual time. The world has one clock. A thread that computes runs ahead of this clock by the
//! cost of its work, and does not run again before the world has caught up.
//!
//! Invariant: for one thread [`SimClock::now`] never decreases. Called by the endpoint (as its
//! [`Clock`]), by the simulated transport and by handlers that cost time.

use std::cell::Cell;
use std::rc::Rc;

use dunlin_core::{Clock, Nanos};

/// The clock of one simulated thread. Clones show the same time.
#[derive(Clone, Debug)]
pub struct SimClock {
    world: Rc<Cell<Nanos>>,
    ahead: Rc<Cell<Nanos>>,
}

impl SimClock {
    /// A clock for a thread in the world whose time is `world`.
    pub fn new(world: Rc<Cell<Nanos>>) -> Self {
        Self {
            world,
            ahead: Rc::default(),
        }
    }

    /// Makes the thread work for `cost`.
    pub fn spend(&self, cost: Nanos) {
        self.ahead.set(self.ahead.get() + cost);
    }

    /// The thread's time: the world's, plus the thread's work in this iteration.
    pub fn read(&self) -> Nanos {
        self.world.get() + self.ahead.get()
    }

    /// Ends an iteration: returns how far the thread ran ahead, and sets that back to zero.
    pub fn settle(&self) -> Nanos {
        self.ahead.take()
    }
}

impl Clock for SimClock {
    fn now(&mut self) -> Nanos {
        self.read()
    }
}

#[cfg(test)]
mod tests;
