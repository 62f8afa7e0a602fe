//! What the standard library does not offer: signals, processor affinity, shared memory, many
//! datagrams in one system call, futexes, and what this process uses. Every unsafe block that
//! calls the system stands below here.

mod affinity;
mod datagrams;
pub(crate) mod futex;
mod limits;
mod shared;
mod signals;
mod usage;

pub(crate) use affinity::{allowed_cpus, pin_to, set_priority};
pub(crate) use datagrams::{Datagrams, set_gro, set_receive_buffer, set_segment_size};
pub(crate) use limits::{can_force_buffers, limit, space};
pub(crate) use shared::{Shared, create_shared};
pub(crate) use signals::{die_with_parent, handle_once};
pub(crate) use usage::{
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
