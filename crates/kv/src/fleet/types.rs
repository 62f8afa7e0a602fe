//! The arguments and results of a fleet.

use std::fmt;
use std::sync::Arc;

use dunlin_core::Nanos;

use crate::client::{Options, Reply, Token};
use crate::error::Error;

/// Identifies a server of a fleet. A server that comes back to the list after its operations have
/// ended gets another identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId {
    /// Places are reused.
    pub(super) place: u16,
    /// The number of servers that were listed before this one.
    pub(super) before: u64,
}

/// The result of an operation for a server that is down: no session with it could be made, or the
/// last one was lost and none has been made since.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WhenDown {
    /// The operation fails at once with [`Error::Unavailable`]: it did not happen.
    #[default]
    Fail,
    /// A get ends at once as a miss if the server is a cache; any other operation fails at once. A
    /// server that was never reached is assumed to have the mode of the others; until one of these
    /// is reached, or all have failed, gets wait. If the server's keys have moved to others
    /// meanwhile, it still has the old values when it comes back, as
    /// [`Fleet::on_list`](super::Fleet::on_list) explains.
    Miss,
    /// The operation waits for the server until its deadline.
    Wait,
}

/// Options of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct FleetOptions {
    /// Options of the client of each server.
    pub client: Options,
    /// The result of operations for a server that is down.
    pub when_down: WhenDown,
    /// Time between two look-ups of names; `None`: the list never changes on its own.
    pub lookup: Option<Nanos>,
}

impl FleetOptions {
    /// Operations for a server that is down fail at once, and names are not looked up again.
    pub const DEFAULT: Self = Self {
        client: Options::DEFAULT,
        when_down: WhenDown::Fail,
        lookup: None,
    };
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An action that the owner of a fleet's endpoint must take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Make a session with this endpoint of a server, and pass it to
    /// [`Fleet::on_connecting`](super::Fleet::on_connecting), or call
    /// [`Fleet::on_refused`](super::Fleet::on_refused) if it cannot be made.
    Session {
        /// The server.
        server: ServerId,
        /// Its endpoint.
        endpoint: u16,
    },
    /// Look up the names, and pass the result to [`Fleet::on_list`](super::Fleet::on_list) or
    /// [`Fleet::on_lookup_failed`](super::Fleet::on_lookup_failed).
    LookUp,
}

/// The end of an operation.
#[derive(Debug)]
pub struct FleetEnd {
    /// The operation.
    pub token: Token,
    /// Its result.
    pub result: Result<Reply, ServerError>,
}

/// The reason why an operation has no result, and the server that owns its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerError {
    server: Option<Arc<str>>,
    error: Error,
}

impl ServerError {
    pub(crate) const fn new(server: Option<Arc<str>>, error: Error) -> Self {
        Self { server, error }
    }

    /// The name of the server in the list; `None` if no server is listed, or the operation failed
    /// before a server was chosen.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The reason.
    #[must_use]
    pub const fn error(&self) -> Error {
        self.error
    }
}

impl From<Error> for ServerError {
    fn from(error: Error) -> Self {
        Self::new(None, error)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "server {server}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
