//! SIGINT and SIGTERM; only `serve` uses this file. The first signal begins the drain. The second,
//! and any signal after the server has ended or has failed to start, ends the process immediately.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

const BOTH: [i32; 2] = [SIGINT, SIGTERM];

/// A process that a signal ends exits with this code plus the signal's number, as in shells.
const BY_SIGNAL: i32 = 128;

/// A signal has come, so the next one ends the process.
static HAS_COME: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Catches signals from now on. Once it is dropped, any signal ends the process.
pub(crate) struct Caught(Signals);

impl Caught {
    pub(crate) fn new() -> io::Result<Self> {
        arm()?;
        Self::listen()
    }

    fn listen() -> io::Result<Self> {
        Ok(Self(Signals::new(BOTH)?))
    }

    /// Waits for the first signal. It may have come already, even before `listen`.
    pub(crate) fn wait(mut self) {
        let has_come = HAS_COME.get().is_some_and(|it| it.load(Ordering::SeqCst));
        if !has_come {
            self.0.forever().next();
        }
    }
}

/// From now on, the first signal is noted, and a second one ends the process.
fn arm() -> io::Result<()> {
    match HAS_COME.get() {
        Some(has_come) => has_come.store(false, Ordering::SeqCst),
        None => set_up()?,
    }
    Ok(())
}

impl Drop for Caught {
    fn drop(&mut self) {
        if let Some(has_come) = HAS_COME.get() {
            has_come.store(true, Ordering::SeqCst);
        }
    }
}

/// Registers two handlers, for ever. The first ends the process if a signal has come before; the
/// second notes that one has come. In this order, the first signal does not end the process.
fn set_up() -> io::Result<()> {
    let has_come = Arc::clone(HAS_COME.get_or_init(Arc::default));
    for signal in BOTH {
        flag::register_conditional_shutdown(signal, BY_SIGNAL + signal, Arc::clone(&has_come))?;
        flag::register(signal, Arc::clone(&has_come))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
