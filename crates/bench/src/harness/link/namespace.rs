//! The two system calls for network namespaces (`unshare(2)`, `setns(2)`). Each affects only the
//! calling thread.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Makes a namespace, which lives as long as the file is open or a process is inside.
///
/// # Errors
/// The kernel refuses, for example because the process lacks `CAP_SYS_ADMIN`.
pub(super) fn make() -> io::Result<File> {
    in_thread(|| {
        // SAFETY: the call takes a number, and moves only this thread.
        match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
            0 => File::open("/proc/thread-self/ns/net"),
            _ => Err(io::Error::last_os_error()),
        }
    })
}

/// Moves the calling thread into a namespace.
///
/// # Errors
/// The kernel refuses, for example because the process lacks `CAP_SYS_ADMIN`.
pub(super) fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is live, and the call moves only this thread.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs `task` in a namespace, in a thread of its own.
///
/// # Errors
/// As [`enter`].
pub(super) fn within<R: Send>(namespace: &File, task: impl FnOnce() -> R + Send) -> io::Result<R> {
    in_thread(|| enter(namespace).map(|()| task()))
}

fn in_thread<R: Send>(task: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| match scope.spawn(task).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
