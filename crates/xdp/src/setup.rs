//! AF_XDP for processes without privilege: a daemon opens their sockets.
//!
//! Opening a socket, registering its region and writing the program's maps need capabilities; using
//! a bound socket needs none. The daemon does the former for the users in its table ([`Table`]), and
//! a process names the daemon by the option `setup` ([`crate::Options`]). Called by the command
//! `dunlin xdp-setup`, and by `queue` and `open`.

mod client;
mod daemon;
mod message;
mod table;

pub(crate) use client::{Client, Lease};
pub use daemon::Daemon;
pub(crate) use message::{Claim, Place};
pub use table::{Grant, Table};

#[cfg(test)]
mod tests;
