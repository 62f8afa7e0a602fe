//! Ctrl-C sets a flag that long waits check. So a run stops cleanly, and shows its results so far.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// The user pressed Ctrl-C, or the system asked this process to end.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped by a signal")
    }
}

impl std::error::Error for Interrupted {}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT and SIGTERM set the flag from now on. A second signal ends the process immediately.
///
/// # Errors
/// The system refuses the handler.
pub fn watch() -> std::io::Result<()> {
    sys::handle_once(libc::SIGINT, on_signal)?;
    sys::handle_once(libc::SIGTERM, on_signal)
}

/// Checks the flag.
///
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

/// The signal handler. It may do nothing but set the flag.
extern "C" fn on_signal(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}
