//! How starting a nexus or an endpoint, or connecting, can fail. Slow path: the messages say what
//! to do about it.

use std::io;
use std::net::SocketAddr;

use dunlin_control::{AddError, ConnectFailure};
use dunlin_core::ConfigError;

/// Why a nexus could not be started.
#[derive(Debug, thiserror::Error)]
pub enum NexusError {
    /// The address is not one.
    #[error("{address:?} is not a host and a port: {source}")]
    Address {
        /// What was given.
        address: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The port, and those behind it, are taken or not allowed.
    #[error("cannot listen at {address}: {source}; {}", advice(source))]
    Listen {
        /// The last address that was tried.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system has no thread or descriptor left.
    #[error("the system refused what a nexus needs: {0}")]
    Os(#[from] io::Error),
}

/// What to do about an address at which nobody can listen.
fn advice(refused: &io::Error) -> &'static str {
    match refused.kind() {
        io::ErrorKind::AddrNotAvailable => "choose an address of this host",
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on",
        _ => "choose another port",
    }
}

/// Why an endpoint could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The transport could not be opened.
    #[error("the transport cannot be opened: {0}")]
    Transport(Box<dyn std::error::Error + Send + Sync>),
    /// The index is taken.
    #[error("{0}; leave the index out, or choose another")]
    Index(#[from] AddError),
    /// An option is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system has no descriptor left.
    #[error("the system refused what an endpoint needs: {0}")]
    Os(#[from] io::Error),
    /// The control thread has ended, which happens only if it panicked.
    #[error("the nexus has ended")]
    NexusGone,
}

/// Why a session could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not one.
    #[error("the server's address cannot be resolved: {0}")]
    Address(#[from] io::Error),
    /// This endpoint cannot have the session.
    #[error(transparent)]
    Open(#[from] dunlin_core::OpenError),
    /// The other side, or the way to it, did not allow the session.
    #[error(transparent)]
    Failed(#[from] ConnectFailure),
    /// The session was closed while it was connecting.
    #[error("the session was closed before it was connected")]
    Closed,
}
