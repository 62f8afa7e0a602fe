//! Commands that measure take turns: few run at a time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Commands that run at a time. A measurement spins in two processes until its time is over, so
/// more commands would take the processors from each other for longer than a client waits for its
/// server. One command at a time would leave processors idle while another one starts, ends or
/// simulates, and these tests judge no speed.
const AT_A_TIME: u32 = 2;

/// The places that are taken.
static TAKEN: Mutex<u32> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The permission to run a command, until this is dropped.
pub(crate) struct Turn {
    places: u32,
}

/// Waits until another command may run.
pub(crate) fn turn() -> Turn {
    Turn::take(1)
}

/// Waits until no command runs; until the turn ends, none begins.
pub(crate) fn alone() -> Turn {
    Turn::take(AT_A_TIME)
}

impl Turn {
    fn take(places: u32) -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = FREED.wait_while(taken, |taken| *taken + places > AT_A_TIME);
        *taken.unwrap_or_else(PoisonError::into_inner) += places;
        Self { places }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= self.places;
        FREED.notify_all();
    }
}
