//! Asks a server about its health. The server's process announces which endpoint answers, and this
//! code asks that endpoint. The server's other threads need not run.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use dunlin_core::{CallOptions, Done, HandleError, Nanos, RpcError, Session, SessionOptions, Tag};
use dunlin_nexus::{
    ConnectError, ConnectFailure, ConnectOptions, EndpointBuilder, EndpointError, Rpc,
};
use dunlin_service::Error;
use dunlin_transport::auto::Auto;
use dunlin_wire::control::{EndpointIndex, RefuseCode, Serving};
use dunlin_wire::{HEALTH, HealthAnswer, HealthStatus, MAX_HEALTH_ANSWER, MAX_HEALTH_QUESTION};

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

/// The events that the endpoint's callbacks store.
#[derive(Default)]
struct Asking {
    serving: Option<Serving>,
    done: Option<Done>,
}

/// An endpoint that asks one question, and gives up at a deadline.
struct Asker {
    rpc: Rpc<Auto, Asking>,
    /// The addresses of the server, which are tried one after the other.
    to: Vec<SocketAddr>,
    deadline: Nanos,
}

/// Asks the server at `address` about the health of a service, or about its own if `service` is
/// empty, and waits at most `patience`. Makes an endpoint with the builder `from` and asks over it.
///
/// ```no_run
/// use std::time::Duration;
/// use dunlin_nexus::Nexus;
/// use dunlin_server::{HealthState, ask_health};
///
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let from = nexus.endpoint_builder();
/// let state = ask_health(from, "127.0.0.1:31850", "Kv", Duration::from_secs(1))?;
/// assert_eq!(state, HealthState::Serving);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The server cannot be reached, has no such service, or has no endpoint for health; or another
/// reason in [`HealthError`].
pub fn ask_health(
    from: EndpointBuilder<Auto>,
    address: impl ToSocketAddrs,
    service: &str,
    patience: Duration,
) -> Result<HealthState, HealthError> {
    if service.len() > MAX_HEALTH_QUESTION {
        return Err(HealthError::LongName);
    }
    let to = address.to_socket_addrs().map_err(ConnectError::from)?;
    let to = to.collect();
    let mut rpc = from.build(Asking::default()).map_err(HealthError::Local)?;
    rpc.on_serving(|asking, said, _| asking.serving = Some(said.serving));
    rpc.on_completion(|asking, done, _| asking.done = Some(done));
    let deadline = rpc.now() + patience.into();
    Asker { rpc, to, deadline }.ask(service)
}

impl Asker {
    fn ask(&mut self, service: &str) -> Result<HealthState, HealthError> {
        let index = match self.learn_endpoint() {
            Ok(index) => index,
            Err(HealthError::Unreachable(ConnectError::Failed(ConnectFailure::Refused(
                RefuseCode::Closing,
            )))) => return Ok(HealthState::NotServing("the server shuts down".to_owned())),
            Err(error) => return Err(error),
        };
        let session = self.connect(index)?;
        let bytes = self.question(session, service)?;
        let answer = HealthAnswer::decode(&bytes).ok_or(HealthError::NoHealth)?;
        match answer.status {
            HealthStatus::Serving => Ok(HealthState::Serving),
            HealthStatus::NotServing => Ok(HealthState::NotServing(answer.reason.to_owned())),
            HealthStatus::NoSuchService => {
                Err(HealthError::NoSuchService(answer.reason.to_owned()))
            }
        }
    }

    /// Finds the endpoint that answers health. The process announces it before its first endpoint
    /// grants the session, so that endpoint may be stuck.
    fn learn_endpoint(&mut self) -> Result<EndpointIndex, HealthError> {
        let session = self.connect(EndpointIndex(0))?;
        while self.rpc.app().serving.is_none() && !self.is_open(session)? {
            self.turn();
        }
        // The announcement comes before the grant. If there is none by now, none will come.
        let serving = self.rpc.app().serving.ok_or(HealthError::NoHealth)?;
        // The session is not needed any more. If it has ended meanwhile, this fails.
        let _ = self.rpc.disconnect(session);
        serving.health.ok_or(HealthError::NoHealth)
    }

    /// Asks, and returns the bytes of the answer.
    fn question(&mut self, session: Session, service: &str) -> Result<Vec<u8>, HealthError> {
        let deadline = Some(self.deadline.since(self.rpc.now()));
        let mut cx = self.rpc.cx();
        let request = cx.copy(service.as_bytes()).map_err(Error::Memory)?;
        let response = cx.buf(MAX_HEALTH_ANSWER).map_err(Error::Memory)?;
        let options = CallOptions { deadline };
        let called = cx.call_with(session, HEALTH, request, response, Tag(0), options);
        called.map_err(|refused| Error::Refused(refused.kind))?;
        loop {
            self.turn();
            if let Some(done) = self.rpc.app_mut().done.take() {
                return match done.result {
                    Ok(()) => Ok(done.response.data().to_vec()),
                    Err(error) => Err(self.ended(session, error)),
                };
            }
        }
    }

    fn connect(&mut self, endpoint: EndpointIndex) -> Result<Session, HealthError> {
        let options = ConnectOptions {
            endpoint: Some(endpoint.0),
            patience: self.deadline.since(self.rpc.now()).into(),
            session: SessionOptions::default(),
        };
        Ok(self.rpc.connect_with(&self.to[..], &options)?)
    }

    fn is_open(&self, session: Session) -> Result<bool, HealthError> {
        match self.rpc.session_info(session) {
            Ok(info) => Ok(info.open),
            Err(HandleError::Ended) => Err(self.unreachable(session)),
            Err(HandleError::WrongEndpoint) => Err(ConnectError::WrongEndpoint.into()),
        }
    }

    /// The error of a question that has ended without an answer.
    fn ended(&self, session: Session, error: RpcError) -> HealthError {
        match error {
            RpcError::Rejected(..) => HealthError::NoHealth,
            RpcError::SessionClosed(..) if self.rpc.failure(session).is_some() => {
                self.unreachable(session)
            }
            error => Error::Rpc(error).into(),
        }
    }

    fn unreachable(&self, session: Session) -> HealthError {
        let failure = self.rpc.failure(session);
        failure
            .map_or(ConnectError::Closed, ConnectError::Failed)
            .into()
    }

    fn turn(&mut self) {
        let deadline = self.deadline;
        self.rpc.iterate(|_| deadline);
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
