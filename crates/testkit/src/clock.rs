//! A clock that a test moves, and the clock of the machine for tests of real transports.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use dunlin_core::{Clock, Nanos};

/// The clock of every endpoint of a test. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct StepClock(Rc<Cell<Nanos>>);

impl StepClock {
    /// A clock that shows `now`.
    pub fn at(now: Nanos) -> Self {
        Self(Rc::new(Cell::new(now)))
    }

    /// The time that it shows.
    pub fn read(&self) -> Nanos {
        self.0.get()
    }

    /// Sets the time.
    pub fn set(&self, now: Nanos) {
        self.0.set(now);
    }

    /// Sets the time forward.
    pub fn pass(&self, span: Nanos) {
        self.0.set(self.0.get() + span);
    }
}

impl Clock for StepClock {
    fn now(&mut self) -> Nanos {
        self.read()
    }
}

/// The time of the machine since the clock was started. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// A clock that shows 0 now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for WallClock {
    fn now(&mut self) -> Nanos {
        self.0.elapsed().into()
    }
}
