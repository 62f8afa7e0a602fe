//! Virtual time. The world has one clock. A thread that computes runs ahead of this clock by the
//! cost of its work, and does not run again before the world has caught up. A thread's clock may
//! show a different time, because clocks of different hosts begin at different times: only
//! differences between two times of one thread are meaningful.
//!
//! Invariant: for one thread, [`SimClock::now`] never decreases, unless a test sets its clock for a
//! process that starts. Called by the endpoint (as its [`Clock`]), by the simulated transport and
//! by handlers that cost time.

use std::cell::Cell;
use std::rc::Rc;

use dunlin_core::{Clock, Nanos};

/// The clock of one simulated thread. Clones show the same time.
#[derive(Clone, Debug)]
pub struct SimClock {
    world: Rc<Cell<Nanos>>,
    ahead: Rc<Cell<Nanos>>,
    /// The time that this clock showed when the world's clock began.
    origin: Rc<Cell<Nanos>>,
}

impl SimClock {
    /// Makes a clock for a thread in the world whose time is `world`.
    pub fn new(world: Rc<Cell<Nanos>>) -> Self {
        Self {
            world,
            ahead: Rc::default(),
            origin: Rc::default(),
        }
    }

    /// Makes the thread work for `cost`.
    pub fn spend(&self, cost: Nanos) {
        self.ahead.set(self.ahead.get() + cost);
    }

    /// The time that the thread's own clock shows.
    pub fn read(&self) -> Nanos {
        self.world_time() + self.origin.get()
    }

    /// The thread's time on the world's clock: the world's time, plus the thread's work in this
    /// iteration.
    pub fn world_time(&self) -> Nanos {
        self.world.get() + self.ahead.get()
    }

    /// Sets the clock: it showed `origin` when the world's clock began. For a running process, the
    /// time that the clock shows must not decrease between two iterations.
    pub fn set_origin(&self, origin: Nanos) {
        self.origin.set(origin);
    }

    /// Converts a time of this clock to the world's; [`Nanos::MAX`] is unchanged.
    pub fn to_world(&self, time: Nanos) -> Nanos {
        match time {
            Nanos::MAX => Nanos::MAX,
            time => time.since(self.origin.get()),
        }
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
