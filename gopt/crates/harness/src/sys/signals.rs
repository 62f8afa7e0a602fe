//! Signal handlers, and dying together with the parent process.

use std::io;
use std::mem;
use std::ptr;

use super::checked;

/// Calls `handler` when `signal` comes for the first time; the second one acts as by default.
///
/// System calls are restarted, not broken off: waits have time limits of their own.
///
/// # Errors
/// The system refuses.
pub(crate) fn handle_once(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
) -> io::Result<()> {
    // SAFETY: all zero is a valid `sigaction`: no handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: `action` is complete, and the handler stores to one atomic (`crate::signal`).
    checked(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })?;
    Ok(())
}

/// The system kills this process when the thread that started it ends, however it ends.
///
/// # Errors
/// The system refuses.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: this option takes one integer argument and touches no memory of ours.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    Ok(())
}
