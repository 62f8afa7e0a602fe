//! Calls methods of a server by JSON. The server turns the argument into a message and the
//! response into JSON; the call between them is a typed request like any other, on a session with
//! an endpoint that serves.

use std::fmt;
use std::net::ToSocketAddrs;
use std::time::Duration;

use dunlin_core::{Nanos, RpcError, Session};
use dunlin_nexus::{ConnectError, EndpointBuilder, EndpointError, Open};
use dunlin_service::reflect::Returned;
use dunlin_service::{Error, Front, Meta};
use dunlin_transport::auto::Auto;
use dunlin_wire::control::EndpointIndex;
use dunlin_wire::{
    DESCRIBE, ErrorCode, JsonAnswer, JsonQuestion, MAX_METHOD_NAME, MessageAnswer, MessageQuestion,
    Ran, ReqType, TO_JSON, TO_MESSAGE,
};

use crate::ask::{Asker, NoAsker, Question};

/// Bytes for a response, and for its JSON.
const ROOM: usize = 4 << 20;

/// A client of a server's reflection, which lists methods and calls them by JSON.
///
/// ```no_run
/// use std::time::Duration;
/// use dunlin_nexus::Nexus;
/// use dunlin_server::Reflector;
/// use dunlin_service::Meta;
/// use dunlin_transport::auto::Auto;
///
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let from = nexus.endpoint_builder::<Auto>();
/// let mut server = Reflector::connect(from, "127.0.0.1:31850", Duration::from_secs(1))?;
/// println!("{}", server.describe()?);
/// let returned = server.call("Kv.get", r#"{"key": 7}"#, None, &Meta::new())?;
/// println!("{returned:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reflector<T: Open = Auto> {
    asker: Asker<T>,
    /// The session with the endpoint that serves.
    service: Session,
    /// The session with the server's own endpoint.
    own: Session,
    /// The time after which a question without an answer fails.
    patience: Nanos,
}

/// Why a server has no answer to a question of a [`Reflector`], or a call has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReflectError {
    /// No server could be reached in time, or it refused the session. Holds the reason.
    Unreachable(ConnectError),
    /// The server's reflection is off; or it is no `Server`, or one of an earlier release.
    NoReflection,
    /// The server has no such method, or the method's service has no reflection. Holds the reason,
    /// with the names that there are.
    NoSuchMethod(String),
    /// The JSON is not an argument of the method. Holds the reason, with the field and its type.
    Misfit(String),
    /// The call failed.
    Call(Error),
    /// The response has no form in JSON. Holds the reason. The method has run.
    BadResponse(String),
    /// The server did not turn the response into JSON: it did not answer in time, or the JSON has
    /// more than 4 MiB. The method has run.
    Unread(Error),
    /// A question could not be asked, or has no answer.
    NoAnswer(Error),
    /// The endpoint from which to ask could not be made.
    Local(EndpointError),
}

impl<T: Open> Reflector<T> {
    /// Opens sessions with the server at `address`, and waits at most `patience` for it, and for
    /// each answer to a question later. Makes an endpoint with the builder `from` and asks over it.
    ///
    /// # Errors
    /// The server cannot be reached, or has no reflection.
    pub fn connect(
        from: EndpointBuilder<T>,
        address: impl ToSocketAddrs,
        patience: Duration,
    ) -> Result<Self, ReflectError> {
        let mut asker = Asker::new(from, address, patience)?;
        // Both sessions are opened before the first question. If the server restarts, both end, so
        // one process runs the call and converts its messages.
        let service = asker.connect(EndpointIndex(0))?;
        let own = asker.own_endpoint(service)?;
        let own = asker.connect(own.ok_or(ReflectError::NoReflection)?)?;
        Ok(Self {
            asker,
            service,
            own,
            patience: patience.into(),
        })
    }

    /// The services of the server, with their methods and types, as JSON. Its form is that of
    /// `dunlin list --json`, which the page on calling servers by hand shows.
    ///
    /// # Errors
    /// The server has no reflection, or another reason in [`ReflectError`].
    pub fn describe(&mut self) -> Result<String, ReflectError> {
        let bytes = self.ask(DESCRIBE, 0, |_| {})?;
        String::from_utf8(bytes).map_err(|_| ReflectError::NoReflection)
    }

    /// Calls a method, such as `Kv.get`, and returns its result; `None` if the method has no
    /// answer. Responses, and their JSON, may have 4 MiB. Like any typed call, a call with a
    /// deadline ends with an error if no response has come by then; a call without a deadline waits
    /// as long as the server lives.
    ///
    /// # Errors
    /// See [`ReflectError`].
    pub fn call(
        &mut self,
        method: &str,
        json: &str,
        deadline: Option<Duration>,
        meta: &Meta,
    ) -> Result<Option<Returned>, ReflectError> {
        if method.len() > MAX_METHOD_NAME {
            let reason = format!("a method's name has at most {MAX_METHOD_NAME} bytes");
            return Err(ReflectError::NoSuchMethod(reason));
        }
        let question = MessageQuestion { method, json };
        let answer = self.ask(TO_MESSAGE, question.size(), |out| question.encode(out))?;
        match MessageAnswer::decode(&answer).ok_or(ReflectError::NoReflection)? {
            MessageAnswer::Message {
                number,
                one_way,
                bytes,
            } => {
                let front = Front::with(deadline.map(Nanos::from), meta);
                let response = self.run(number, bytes, front, deadline)?;
                match one_way {
                    true => Ok(None),
                    false => self.returned(number, &response).map(Some),
                }
            }
            MessageAnswer::NoSuchMethod(reason) => {
                Err(ReflectError::NoSuchMethod(reason.to_owned()))
            }
            MessageAnswer::Misfit(reason) => Err(ReflectError::Misfit(reason.to_owned())),
        }
    }

    /// Makes the call itself, as any other client does.
    fn run(
        &mut self,
        number: u16,
        message: &[u8],
        front: Front<'_>,
        deadline: Option<Duration>,
    ) -> Result<Vec<u8>, ReflectError> {
        let question = Question {
            req_type: front.type_of(ReqType(number)),
            len: front.size() + message.len(),
            write: |out: &mut [u8]| front.write(out).copy_from_slice(message),
            room: ROOM,
        };
        let called = self
            .asker
            .ask(self.service, question, deadline.map(Nanos::from));
        called.map_err(ReflectError::Call)
    }

    fn returned(&mut self, number: u16, response: &[u8]) -> Result<Returned, ReflectError> {
        let question = JsonQuestion { number, response };
        let answer = self.try_ask(TO_JSON, question.size(), |out| question.encode(out));
        let answer = answer.map_err(ReflectError::Unread)?;
        let unreadable = || ReflectError::BadResponse("the answer is unreadable".to_owned());
        match JsonAnswer::decode(&answer).ok_or_else(unreadable)? {
            JsonAnswer::Value(json) => Ok(Returned::Value(json.to_owned())),
            JsonAnswer::Error(json) => Ok(Returned::Error(json.to_owned())),
            JsonAnswer::NoSuchMethod(reason) | JsonAnswer::BadResponse(reason) => {
                Err(ReflectError::BadResponse(reason.to_owned()))
            }
        }
    }

    /// Asks the server's own endpoint before the method runs.
    fn ask(
        &mut self,
        req_type: ReqType,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<Vec<u8>, ReflectError> {
        let asked = self.try_ask(req_type, len, write);
        asked.map_err(|error| match error {
            Error::Rpc(RpcError::Rejected(ErrorCode::UNKNOWN_TYPE, _)) => {
                ReflectError::NoReflection
            }
            error => match self.asker.not_connected(self.own) {
                Some(error) => ReflectError::Unreachable(error),
                None => ReflectError::NoAnswer(error),
            },
        })
    }

    fn try_ask(
        &mut self,
        req_type: ReqType,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<Vec<u8>, Error> {
        let question = Question {
            req_type,
            len,
            write,
            room: ROOM,
        };
        self.asker.ask(self.own, question, Some(self.patience))
    }
}

impl ReflectError {
    /// Whether the method ran. If it may have run, repeat the call only if the method may run
    /// twice.
    pub const fn ran(&self) -> Ran {
        match self {
            Self::Call(error) => error.ran(),
            Self::BadResponse(_) | Self::Unread(_) => Ran::Yes,
            Self::Unreachable(_)
            | Self::NoReflection
            | Self::NoSuchMethod(_)
            | Self::Misfit(_)
            | Self::NoAnswer(_)
            | Self::Local(_) => Ran::No,
        }
    }
}

impl From<NoAsker> for ReflectError {
    fn from(error: NoAsker) -> Self {
        match error {
            NoAsker::Local(error) => Self::Local(error),
            NoAsker::Unreachable(error) => Self::Unreachable(error),
        }
    }
}

impl From<ConnectError> for ReflectError {
    fn from(error: ConnectError) -> Self {
        Self::Unreachable(error)
    }
}

impl fmt::Display for ReflectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "no server can be reached: {error}"),
            Self::NoReflection => f.write_str(
                "the server describes no methods: it has reflection off (`.reflect(true)` of its \
                 builder allows it), is no `Server`, or is one of an earlier release",
            ),
            Self::NoSuchMethod(reason) | Self::Misfit(reason) => f.write_str(reason),
            Self::Call(error) => write!(f, "the call failed: {error}"),
            Self::BadResponse(reason) => {
                write!(
                    f,
                    "the method ran, but its response has no form in JSON: {reason}"
                )
            }
            Self::Unread(error) => write!(
                f,
                "the method ran, but the server did not turn its response into JSON: {error}"
            ),
            Self::NoAnswer(error) => write!(f, "the server does not answer: {error}"),
            Self::Local(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReflectError {}
