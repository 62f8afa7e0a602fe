//! Errors of starting a nexus or an endpoint, and of connecting. This is the slow path: the
//! messages name the remedy.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use dunlin_control::{AddError, ConnectFailure};
use dunlin_core::{ConfigError, EndpointNum, HandleError};

/// Why a nexus could not be started.
#[derive(Debug)]
pub enum NexusError {
    /// The address cannot be resolved.
    Address {
        /// The address as given.
        address: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The port is taken or not allowed; with `any_port`, so are the ports after it.
    Listen {
        /// The last address that was tried.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no more threads or descriptors.
    Os(io::Error),
}

impl fmt::Display for NexusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { address, source } => {
                write!(f, "{address:?} is not a host and a port: {source}")
            }
            Self::Listen { address, source } => write!(
                f,
                "cannot listen at {address}: {source}; {}",
                advice(source)
            ),
            Self::Os(error) => write!(f, "the system refused what a nexus needs: {error}"),
        }
    }
}

impl std::error::Error for NexusError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Address { source, .. } => Some(source),
            Self::Listen { source, .. } => Some(source),
            Self::Os(error) => Some(error),
        }
    }
}

impl From<io::Error> for NexusError {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

/// The remedy for an address at which this process cannot listen.
fn advice(refused: &io::Error) -> &'static str {
    match refused.kind() {
        io::ErrorKind::AddrNotAvailable => "choose an address of this host",
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on",
        _ => "choose another port",
    }
}

/// Why an endpoint could not be made.
#[derive(Debug)]
pub enum EndpointError {
    /// The transport could not be opened.
    Transport(Box<dyn std::error::Error + Send + Sync>),
    /// The index is taken, or no index is free.
    Index(AddError),
    /// An option is out of range.
    Config(ConfigError),
    /// The system has no more descriptors.
    Os(io::Error),
    /// The control thread has ended, which happens only if it panicked.
    NexusGone,
    /// This process has made [`EndpointNum::MAX`](dunlin_core::EndpointNum::MAX) endpoints. A
    /// further endpoint would share its number, and so its handles, with an earlier one.
    NumbersUsedUp,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => write!(f, "the transport cannot be opened: {error}"),
            Self::Index(error @ AddError::Taken(_)) => {
                write!(f, "{error}; leave the index out, or choose another")
            }
            Self::Index(error) => write!(f, "{error}; close an endpoint"),
            Self::Config(error) => error.fmt(f),
            Self::Os(error) => write!(f, "the system refused what an endpoint needs: {error}"),
            Self::NexusGone => f.write_str("the nexus has ended"),
            Self::NumbersUsedUp => write!(
                f,
                "this process has made {} endpoints, as many as it can tell apart; keep endpoints \
                 for longer, or start another process",
                EndpointNum::MAX
            ),
        }
    }
}

impl std::error::Error for EndpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Index(error) => Some(error),
            Self::Config(error) => error.source(),
            Self::Os(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AddError> for EndpointError {
    fn from(error: AddError) -> Self {
        Self::Index(error)
    }
}

impl From<ConfigError> for EndpointError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<io::Error> for EndpointError {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

/// Why a session could not be made.
#[derive(Debug)]
pub enum ConnectError {
    /// The address cannot be resolved.
    Address(io::Error),
    /// This endpoint cannot have the session.
    Open(dunlin_core::OpenError),
    /// The server refused the session, or cannot be reached.
    Failed(ConnectFailure),
    /// The session was closed while it was connecting.
    Closed,
    /// The session belongs to another endpoint.
    WrongEndpoint,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(error) => write!(f, "the server's address cannot be resolved: {error}"),
            Self::Open(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::Closed => f.write_str("the session was closed before it was connected"),
            Self::WrongEndpoint => HandleError::WrongEndpoint.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Address(error) => Some(error),
            Self::Open(error) => error.source(),
            Self::Failed(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Address(error)
    }
}

impl From<dunlin_core::OpenError> for ConnectError {
    fn from(error: dunlin_core::OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<ConnectFailure> for ConnectError {
    fn from(error: ConnectFailure) -> Self {
        Self::Failed(error)
    }
}
