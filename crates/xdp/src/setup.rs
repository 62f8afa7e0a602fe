//! AF_XDP for processes without privilege: a daemon opens their sockets.
//!
//! Opening a socket, registering its region and writing the program's maps need capabilities;
//! using a bound socket needs none. The daemon does the former for the users in its table
//! ([`Table`]). A process names the daemon by the option `setup` ([`crate::Options`]), and `ask`
//! asks it. Called by the command `dunlin xdp-setup`.

mod daemon;
mod table;

pub use daemon::Daemon;
pub use table::{Grant, Table};

#[cfg(test)]
mod tests;
