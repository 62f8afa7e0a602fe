//! Virtual time. The world has one clock; a thread that computes runs ahead of it by what its
//! work costs, and is not run again before the world has caught up.
//!
//! Invariant: what [`SimClock::now`] returns to one thread never decreases. Called by the endpoint
//! (as its [`Clock`]), by the simulated transport and by handlers that cost time.

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
    /// A thread's clock in the world whose time is `world`.
    pub fn new(world: Rc<Cell<Nanos>>) -> Self {
        Self {
            world,
            ahead: Rc::default(),
        }
    }

    /// The thread works for `cost`.
    pub fn spend(&self, cost: Nanos) {
        self.ahead.set(self.ahead.get() + cost);
    }

    /// The thread's time: the world's, and what the thread has worked since it was started.
    pub fn read(&self) -> Nanos {
        self.world.get() + self.ahead.get()
    }

    /// Ends an iteration: how far the thread ran ahead, which is set back to zero.
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
