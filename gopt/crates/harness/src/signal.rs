//! Ctrl-C as a flag that long waits check, so that a run stops cleanly and shows its results so
//! far.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// The user pressed Ctrl-C (or the system asked us to end).
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stopped by a signal")]
pub struct Interrupted;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Lets SIGINT and SIGTERM set the flag from now on. A second signal ends the process at once.
///
/// # Errors
/// The system refuses the handler.
pub fn watch() -> std::io::Result<()> {
    sys::handle_once(libc::SIGINT, on_signal)?;
    sys::handle_once(libc::SIGTERM, on_signal)
}

/// # Errors
/// [`Interrupted`] if a signal has come.
pub fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        Err(Interrupted)
    } else {
        Ok(())
    }
}

/// Acts as if a signal had come: every loop that checks the flag ends.
pub fn stop() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Runs in the signal handler, which may do nothing else.
extern "C" fn on_signal(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}
