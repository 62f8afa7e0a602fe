//! Sleeps on a word of shared memory until another process wakes the sleeper: the cheapest wake-up
//! that the system has.

use std::sync::atomic::AtomicU32;
use std::{io, ptr};

/// Sleeps until [`wake`] is called, if `word` has the value `seen`. May return early.
///
/// # Errors
/// The system has no such call.
pub(crate) fn sleep(word: &AtomicU32, seen: u32) -> io::Result<()> {
    let no_limit = ptr::null::<libc::timespec>();
    // SAFETY: the word is valid as long as the reference is, and the system only reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            no_limit,
        )
    };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // The word had already changed, or a signal arrived.
        Some(libc::EAGAIN | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

/// Wakes one process that sleeps on the word, if there is one.
///
/// # Errors
/// The system has no such call.
pub(crate) fn wake(word: &AtomicU32) -> io::Result<()> {
    // SAFETY: the system does not touch the word, it only looks for threads that sleep on its
    // address.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
    if woken < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
