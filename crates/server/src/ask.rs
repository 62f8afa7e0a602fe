//! The client of a server's own endpoint: asks it about the server, and calls methods of the
//! server's services. The process announces the index of this endpoint to each client that begins a
//! session with its first endpoint, even if the thread of the first endpoint is stuck.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use dunlin_core::{CallOptions, Done, HandleError, Nanos, Session, SessionOptions, Tag};
use dunlin_nexus::{ConnectError, ConnectOptions, EndpointBuilder, EndpointError, Open, Rpc};
use dunlin_service::Error;
use dunlin_wire::ReqType;
use dunlin_wire::control::{EndpointIndex, Serving};

/// The events that the endpoint's callbacks store.
#[derive(Debug, Default)]
struct Asking {
    serving: Option<Serving>,
    done: Option<Done>,
}

/// An endpoint that asks one question at a time, and gives up at a deadline.
#[derive(Debug)]
pub(crate) struct Asker<T: Open> {
    rpc: Rpc<T, Asking>,
    /// The addresses of the server, which are tried one after the other.
    to: Vec<SocketAddr>,
    deadline: Nanos,
}

/// A request before it is issued.
pub(crate) struct Question<W> {
    pub(crate) req_type: ReqType,
    /// The length of the request, and the function that writes it.
    pub(crate) len: usize,
    pub(crate) write: W,
    /// Bytes for the response.
    pub(crate) room: usize,
}

/// Why there is no client.
pub(crate) enum NoAsker {
    Local(EndpointError),
    Unreachable(ConnectError),
}

impl<T: Open> Asker<T> {
    /// A client with the endpoint that the builder makes. It waits at most `patience`.
    pub(crate) fn new(
        from: EndpointBuilder<T>,
        address: impl ToSocketAddrs,
        patience: Duration,
    ) -> Result<Self, NoAsker> {
        let to = address.to_socket_addrs();
        let to = to.map_err(|error| NoAsker::Unreachable(error.into()))?;
        let to = to.collect();
        let mut rpc = from.build(Asking::default()).map_err(NoAsker::Local)?;
        rpc.on_serving(|asking, said, _| asking.serving = Some(said.serving));
        rpc.on_completion(|asking, done, _| asking.done = Some(done));
        let deadline = rpc.now() + patience.into();
        Ok(Self { rpc, to, deadline })
    }

    /// Begins a session with this endpoint of the server.
    pub(crate) fn connect(&mut self, endpoint: EndpointIndex) -> Result<Session, ConnectError> {
        let options = ConnectOptions {
            endpoint: Some(endpoint.0),
            patience: self.deadline.since(self.rpc.now()).into(),
            session: SessionOptions::default(),
        };
        self.rpc.connect_with(&self.to[..], &options)
    }

    /// Waits until the process announces the server's own endpoint, or grants this session with one
    /// of its other endpoints. `None`: the server has no endpoint of its own.
    pub(crate) fn own_endpoint(
        &mut self,
        session: Session,
    ) -> Result<Option<EndpointIndex>, ConnectError> {
        while self.rpc.app().serving.is_none() && !self.is_open(session)? {
            let deadline = self.deadline;
            self.rpc.iterate(|_| deadline);
        }
        // The announcement comes before the grant. If it has not come by now, it will not come.
        Ok(self.rpc.app().serving.and_then(|serving| serving.health))
    }

    /// Ends a session.
    pub(crate) fn disconnect(&mut self, session: Session) {
        // This fails if the session has ended meanwhile.
        let _ = self.rpc.disconnect(session);
    }

    /// The time that is left.
    pub(crate) fn left(&mut self) -> Nanos {
        self.deadline.since(self.rpc.now())
    }

    /// Makes a call, and returns the bytes of the response. Without a deadline, waits for ever.
    pub(crate) fn ask(
        &mut self,
        session: Session,
        question: Question<impl FnOnce(&mut [u8])>,
        deadline: Option<Nanos>,
    ) -> Result<Vec<u8>, Error> {
        let mut cx = self.rpc.cx();
        let mut request = cx.buf(question.len)?;
        (question.write)(request.data_mut());
        let response = cx.buf(question.room)?;
        let (req_type, options) = (question.req_type, CallOptions { deadline });
        let called = cx.call_with(session, req_type, request, response, Tag(0), options);
        called.map_err(|refused| Error::Refused(refused.kind))?;
        loop {
            self.rpc.iterate(|_| Nanos::MAX);
            if let Some(done) = self.rpc.app_mut().done.take() {
                done.result?;
                return Ok(done.response.data().to_vec());
            }
        }
    }

    /// If a call has no answer because a session could not be made, the reason for that.
    pub(crate) fn not_connected(&self, session: Session) -> Option<ConnectError> {
        self.rpc.failure(session).map(ConnectError::Failed)
    }

    fn is_open(&self, session: Session) -> Result<bool, ConnectError> {
        match self.rpc.session_info(session) {
            Ok(info) => Ok(info.open),
            Err(HandleError::Ended) => {
                Err(self.not_connected(session).unwrap_or(ConnectError::Closed))
            }
            Err(HandleError::WrongEndpoint) => Err(ConnectError::WrongEndpoint),
        }
    }
}
