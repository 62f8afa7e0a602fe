//! AF_XDP for processes without privilege: a daemon opens their sockets.
//!
//! Opening a socket, registering its region and writing the program's maps need capabilities;
//! using a bound socket needs none. The daemon does the former for the users in its table
//! ([`Table`]). A process names the daemon by the option `setup` ([`crate::Options`]), and `ask`
//! asks it. Called by the command `dunlin xdp-setup`.

mod daemon;
mod rules;
mod state;
mod table;

use std::ffi::CString;
use std::io;

use crate::ffi;

pub use crate::roads::Features;
pub use daemon::Daemon;
pub use state::{Owner, State, check_kernel, state_of};
pub use table::{Grant, Table};

/// The number of rules that a device has by which it puts packets into queues (`ethtool -u`).
///
/// # Errors
/// The kernel's; `Unsupported` if the driver of the device has no rules.
pub fn rules_of(interface: &str) -> io::Result<usize> {
    let name = CString::new(interface)?;
    rules::count(ffi::interface_index(&name)?)
}

#[cfg(test)]
mod tests;
