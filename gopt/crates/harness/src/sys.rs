//! System calls that the standard library lacks: where threads run, signals, and the resources of
//! this process. Every unsafe block of this crate stands below here, around one system call each.

mod affinity;
mod signals;
mod usage;

pub use affinity::{allowed_cpus, pin_to, set_priority};
pub(crate) use signals::handle_once;
pub use signals::{die_with_parent, end_with_this, has_ended, kill_group};
pub use usage::{
    monotonic_time, processor_time, resident_and_huge_bytes, resident_bytes, set_exact_timers,
    thread_time,
};

use std::io;

/// The result of a system call that returns -1 and sets `errno` when it fails.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
