//! Asks a server about its health. The server's process announces which endpoint answers, and this
//! code asks that endpoint. The server's other threads need not run.

use std::fmt;
use std::net::ToSocketAddrs;
use std::time::Duration;

use dunlin_core::{RpcError, Session};
use dunlin_nexus::{ConnectError, ConnectFailure, EndpointBuilder, EndpointError, Open};
use dunlin_service::Error;
use dunlin_wire::control::{EndpointIndex, RefuseCode};
use dunlin_wire::{HEALTH, HealthAnswer, HealthStatus, MAX_HEALTH_ANSWER, MAX_HEALTH_QUESTION};

use crate::ask::{Asker, NoAsker, Question};

/// Whether a server, or one of its services, serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HealthState {
    /// All its threads run.
    Serving,
    /// It will drain or drains, or one of its threads is stuck. Holds the reason, for people.
    NotServing(String),
}

/// Why a question about a server's health has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum HealthError {
    /// The server has no service of this name. Holds the names that it has, for people.
    NoSuchService(String),
    /// No server could be reached in time, or it refused the session. Holds the reason.
    Unreachable(ConnectError),
    /// The question could not be asked, or has no answer.
    NoAnswer(Error),
    /// The process at the address has no endpoint for health: it has no `Server`, or one of an
    /// earlier release, or one whose health is off.
    NoHealth,
    /// The name of the service has more than 255 bytes.
    LongName,
    /// The endpoint from which to ask could not be made.
    Local(EndpointError),
}

/// Asks the server at `address` about the health of a service, or about its own if `service` is
/// empty, and waits at most `patience`. Makes an endpoint with the builder `from` and asks over it.
///
/// ```no_run
/// use std::time::Duration;
/// use dunlin_nexus::Nexus;
/// use dunlin_server::{HealthState, ask_health};
/// use dunlin_transport::auto::Auto;
///
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let from = nexus.endpoint_builder::<Auto>();
/// let state = ask_health(from, "127.0.0.1:31850", "Kv", Duration::from_secs(1))?;
/// assert_eq!(state, HealthState::Serving);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The server cannot be reached, has no such service, or has no endpoint for health; or another
/// reason in [`HealthError`].
pub fn ask_health<T: Open>(
    from: EndpointBuilder<T>,
    address: impl ToSocketAddrs,
    service: &str,
    patience: Duration,
) -> Result<HealthState, HealthError> {
    if service.len() > MAX_HEALTH_QUESTION {
        return Err(HealthError::LongName);
    }
    let mut asker = Asker::new(from, address, patience)?;
    let session = match connect(&mut asker) {
        Ok(session) => session,
        Err(HealthError::Unreachable(ConnectError::Failed(ConnectFailure::Refused(
            RefuseCode::Closing,
        )))) => return Ok(HealthState::NotServing("the server shuts down".to_owned())),
        Err(error) => return Err(error),
    };
    let question = Question {
        req_type: HEALTH,
        len: service.len(),
        write: |out: &mut [u8]| out.copy_from_slice(service.as_bytes()),
        room: MAX_HEALTH_ANSWER,
    };
    let deadline = Some(asker.left());
    let asked = asker.ask(session, question, deadline);
    let bytes = asked.map_err(|error| no_answer(&asker, session, error))?;
    let answer = HealthAnswer::decode(&bytes).ok_or(HealthError::NoHealth)?;
    match answer.status {
        HealthStatus::Serving => Ok(HealthState::Serving),
        HealthStatus::NotServing => Ok(HealthState::NotServing(answer.reason.to_owned())),
        HealthStatus::NoSuchService => Err(HealthError::NoSuchService(answer.reason.to_owned())),
    }
}

/// Begins a session with the endpoint that answers health.
fn connect<T: Open>(asker: &mut Asker<T>) -> Result<Session, HealthError> {
    let first = asker.connect(EndpointIndex(0))?;
    let own = asker.own_endpoint(first)?.ok_or(HealthError::NoHealth)?;
    asker.disconnect(first);
    Ok(asker.connect(own)?)
}

/// The error of a question that has ended without an answer.
fn no_answer<T: Open>(asker: &Asker<T>, session: Session, error: Error) -> HealthError {
    match error {
        Error::Rpc(RpcError::Rejected(..)) => HealthError::NoHealth,
        Error::Rpc(RpcError::SessionClosed(..)) => match asker.not_connected(session) {
            Some(error) => error.into(),
            None => error.into(),
        },
        error => error.into(),
    }
}

impl From<NoAsker> for HealthError {
    fn from(error: NoAsker) -> Self {
        match error {
            NoAsker::Local(error) => Self::Local(error),
            NoAsker::Unreachable(error) => Self::Unreachable(error),
        }
    }
}

impl From<ConnectError> for HealthError {
    fn from(error: ConnectError) -> Self {
        Self::Unreachable(error)
    }
}

impl From<Error> for HealthError {
    fn from(error: Error) -> Self {
        Self::NoAnswer(error)
    }
}

impl fmt::Display for HealthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchService(known) => write!(f, "the server has no such service; {known}"),
            Self::Unreachable(error) => write!(f, "no server can be reached: {error}"),
            Self::NoAnswer(error) => write!(f, "the server's health has no answer: {error}"),
            Self::NoHealth => f.write_str(
                "a process listens there, but it has no endpoint for health: it is no `Server`, \
                 or its health is off",
            ),
            Self::LongName => f.write_str("the name of a service has at most 255 bytes"),
            Self::Local(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HealthError {}
