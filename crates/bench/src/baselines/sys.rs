//! System calls that neither the standard library nor `harness` offers: shared memory, many
//! datagrams in one system call, futexes, and AF_XDP. Every unsafe block of this crate that calls
//! the system is in the folder `sys`.

mod datagrams;
pub(crate) mod futex;
mod shared;
#[cfg(feature = "full")]
pub(crate) mod xdp;

#[cfg(feature = "full")]
pub(crate) use datagrams::set_buffers;
pub(crate) use datagrams::{Datagrams, set_receive_buffer};
pub use datagrams::{set_gro, set_segment_size};
pub(crate) use shared::{Shared, create_shared};

use std::io;

/// The result of a system call that returns -1 and sets `errno` when it fails.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
