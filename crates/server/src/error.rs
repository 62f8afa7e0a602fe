//! Why a server does not start.

use std::fmt;
use std::io;

use dunlin_nexus::{EndpointError, NexusError};

/// Why a server does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The nexus cannot listen, for example because another process has the port.
    Nexus(NexusError),
    /// An endpoint cannot be made.
    Endpoint(EndpointError),
    /// A thread cannot be started.
    Thread(io::Error),
    /// SIGINT and SIGTERM cannot be caught.
    Signals(io::Error),
    /// The server has no service.
    NoService,
    /// Two methods have this number.
    SameNumber(u16),
    /// Two services with reflection have this name, by which clients call their methods.
    #[cfg(feature = "reflect")]
    SameName(&'static str),
    /// The server has services of futures and a state of the poll API; a thread runs one of the
    /// two.
    Mixed,
    /// The server has layers and serves on the poll API, whose handlers layers cannot wrap.
    #[cfg(feature = "tower")]
    LayersOfPolls,
    /// The server has limits that cannot apply to its service of the poll API.
    LimitsOfPolls,
    /// A service has a limit for messages that are longer than any that its endpoint receives.
    MaxMessage {
        /// The limit of the service in bytes, `server.max_message` or that of its
        /// [`Limits`](crate::Limits).
        service: usize,
        /// The limit of the endpoint in bytes, `endpoint.max_message`.
        endpoint: u32,
    },
    /// A service panicked while it was made.
    Panicked,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nexus(error) => error.fmt(f),
            Self::Endpoint(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "a thread of the server cannot be started: {error}"),
            Self::Signals(error) => write!(f, "signals cannot be caught: {error}"),
            Self::NoService => f.write_str("the server has no service; give it one"),
            Self::SameNumber(number) => write!(
                f,
                "two methods have the number {number}; an endpoint tells methods apart by it"
            ),
            #[cfg(feature = "reflect")]
            Self::SameName(name) => write!(
                f,
                "two services with reflection have the name `{name}`, by which clients call them"
            ),
            Self::Mixed => f.write_str(
                "the server has services of futures and of the poll API; start one for each",
            ),
            #[cfg(feature = "tower")]
            Self::LayersOfPolls => f.write_str(
                "layers wrap only services of futures: serve this one by `service`, or without \
                 `layer`",
            ),
            Self::LimitsOfPolls => f.write_str(
                "limits do not hold for batch handlers, nor for what `poll` serves: serve it by \
                 `poll_within`, or without `limits` and the options `server.max_message`, \
                 `server.max_calls` and `server.timeout`",
            ),
            Self::MaxMessage { service, endpoint } => write!(
                f,
                "`server.max_message` is {service} bytes and `endpoint.max_message` {endpoint} \
                 bytes, but an endpoint receives no longer message; raise `endpoint.max_message`, \
                 or lower `server.max_message` (in a program, the service's `Limits`)"
            ),
            Self::Panicked => f.write_str("a service panicked while it was made"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Nexus(error) => Some(error),
            Self::Endpoint(error) => Some(error),
            Self::Thread(error) | Self::Signals(error) => Some(error),
            Self::NoService
            | Self::SameNumber(_)
            | Self::Mixed
            | Self::LimitsOfPolls
            | Self::MaxMessage { .. }
            | Self::Panicked => None,
            #[cfg(feature = "reflect")]
            Self::SameName(_) => None,
            #[cfg(feature = "tower")]
            Self::LayersOfPolls => None,
        }
    }
}
