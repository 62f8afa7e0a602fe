//! The errors of system calls, for the files of this folder.

use std::io;

/// The result of a system call that returns -1 and sets `errno` when it fails.
pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
