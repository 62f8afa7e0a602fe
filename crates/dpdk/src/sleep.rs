//! Counts the sleeping endpoints of a device, and switches its interrupts on while all are asleep.
//!
//! Invariant: interrupts are on from the moment when the last endpoint that was awake falls asleep
//! until one wakes. While one is awake, it hands packets of the shared queue to the others, the
//! keeper looks at queues whose owners sleep, and interrupts would only disturb it.
//!
//! Owned by `port`.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Bell;

/// The sleepers.
#[derive(Debug)]
pub(crate) struct Sleepers {
    bell: Bell,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asleep: usize,
    is_listening: bool,
}

impl Sleepers {
    pub(crate) fn new(bell: Bell) -> Self {
        Self {
            bell,
            state: Mutex::default(),
        }
    }

    /// The descriptor of the device's interrupts; `None` if it has none.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.bell.fd()
    }

    /// Notes that one of `endpoints` endpoints is going to sleep. The endpoint must look for
    /// packets once more after this call, because those that came before do not wake it.
    pub(crate) fn on_sleep(&self, endpoints: usize) {
        let mut state = self.state();
        state.asleep += 1;
        if state.asleep >= endpoints && !state.is_listening {
            state.is_listening = true;
            self.bell.listen(true);
        }
    }

    /// Notes that an endpoint no longer sleeps. True if interrupts were on until now: the packet
    /// that has come may be for another endpoint.
    pub(crate) fn on_wake(&self) -> bool {
        let mut state = self.state();
        state.asleep -= 1;
        let was_listening = std::mem::take(&mut state.is_listening);
        if was_listening {
            self.bell.listen(false);
        }
        was_listening
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
