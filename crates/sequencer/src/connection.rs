//! A blocking client with an endpoint of its own: each operation is one call. A program that needs
//! many operations in flight drives the client's machine itself.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use dunlin_core::{CallOptions, Cx, Done, Nanos, RpcError, Tag};
use dunlin_nexus::{ConnectError, ConnectOptions, EndpointBuilder, EndpointError, Open, Rpc};

use crate::client::{Client, ClientOptions, Token};
use crate::error::Error;
use crate::wire::{Figures, Name, STATUS};

/// A connection to the server that serves now. [`Keeper`](crate::Keeper) has an example.
#[derive(Debug)]
pub struct Connection<T: Open> {
    rpc: Rpc<T, Client>,
    servers: Vec<SocketAddr>,
    connect: ConnectOptions,
    tokens: u64,
}

/// A connection cannot be opened, or a server does not answer.
#[derive(Debug)]
pub enum ConnectionError {
    /// The endpoint cannot be made.
    Endpoint(EndpointError),
    /// No session with the server can be made.
    Connect(ConnectError),
    /// The call has failed, or its answer is not one of this protocol.
    Incompatible,
    /// There is no memory.
    NoBuffer,
    /// The server has not answered in time.
    DeadlinePassed,
}

impl<T: Open> Connection<T> {
    /// Makes an endpoint, and begins to connect to whichever of `servers` serves.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open(
        endpoint: EndpointBuilder<T>,
        servers: &[SocketAddr],
        name: Name,
        options: ClientOptions,
    ) -> Result<Self, ConnectionError> {
        let connect = ConnectOptions {
            // A server that is unreachable must not keep the client from trying the next one.
            patience: options.patience.into(),
            ..ConnectOptions::default()
        };
        Self::open_with(endpoint, servers, name, options, connect)
    }

    /// Like [`Self::open`], with options for the sessions.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open_with(
        endpoint: EndpointBuilder<T>,
        servers: &[SocketAddr],
        name: Name,
        options: ClientOptions,
        connect: ConnectOptions,
    ) -> Result<Self, ConnectionError> {
        let options = ClientOptions {
            servers: servers.len(),
            ..options
        };
        let built = endpoint.build(Client::new(name, options));
        let mut rpc: Rpc<T, Client> = built.map_err(ConnectionError::Endpoint)?;
        rpc.on_completion(|client, done, cx| {
            if let Some(other) = client.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        rpc.on_session(|client, event, cx| client.on_session(event, cx));
        Ok(Self {
            rpc,
            servers: servers.to_vec(),
            connect,
            tokens: 0,
        })
    }

    /// Takes one number.
    ///
    /// # Errors
    /// [`Error`].
    pub fn take_one(&mut self) -> Result<u64, Error> {
        Ok(self.take(1)?.start)
    }

    /// Takes `count` consecutive numbers.
    ///
    /// # Errors
    /// [`Error`].
    pub fn take(&mut self, count: u32) -> Result<Range<u64>, Error> {
        self.tokens += 1;
        let token = Token(1 << 63 | self.tokens);
        let (client, mut cx) = self.rpc.with();
        client.begin(count, token, None, &mut cx)?;
        loop {
            self.turn(Nanos::MAX);
            while let Some(end) = self.rpc.app_mut().next_end() {
                if end.token == token {
                    return end.result;
                }
            }
        }
    }

    /// The machine and its endpoint, for programs that begin operations themselves. [`Self::turn`]
    /// brings the ends of such operations. Their tokens must be below 2^63. A program takes their
    /// ends before it calls anything that waits.
    pub fn with(&mut self) -> (&mut Client, Cx<'_>) {
        self.rpc.with()
    }

    /// Runs one iteration of the endpoint. If there is nothing to do, it blocks, but not beyond
    /// `limit`. Afterwards the machine has the ends of operations.
    pub fn turn(&mut self, limit: Nanos) {
        self.rpc.iterate(|client| client.next_wakeup().min(limit));
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        let now = cx.now();
        if let Some(server) = self.rpc.app_mut().wish(now) {
            let address = self.servers[server];
            match self.rpc.connect_with(address, &self.connect) {
                Ok(session) => self.rpc.app_mut().on_connecting(session),
                Err(_) => self.rpc.app_mut().on_refused(now),
            }
        }
    }

    /// The time of the endpoint's clock.
    pub fn now(&mut self) -> Nanos {
        self.rpc.now()
    }
}

/// Asks a server for its state, whether or not it serves. The session and the answer may each take
/// as long as `timeout`.
///
/// # Errors
/// [`ConnectionError`].
pub fn figures<T: Open>(
    endpoint: EndpointBuilder<T>,
    server: SocketAddr,
    connect: &ConnectOptions,
    timeout: Duration,
) -> Result<Figures, ConnectionError> {
    let built = endpoint.build(None);
    let mut rpc: Rpc<T, Option<Done>> = built.map_err(ConnectionError::Endpoint)?;
    rpc.on_completion(|last, done, _| *last = Some(done));
    let connect = ConnectOptions {
        patience: timeout,
        ..*connect
    };
    let session = rpc.connect_with(server, &connect);
    let session = session.map_err(ConnectionError::Connect)?;
    let connected = rpc.wait_connected(session);
    connected.map_err(ConnectionError::Connect)?;
    let buffers = (rpc.cx().copy(&Figures::REQUEST), rpc.buf(Figures::MAX_SIZE));
    let (Ok(request), Ok(response)) = buffers else {
        return Err(ConnectionError::NoBuffer);
    };
    let options = CallOptions {
        deadline: Some(timeout.into()),
    };
    let mut cx = rpc.cx();
    let called = cx.call_with(session, STATUS, request, response, Tag(0), options);
    called.map_err(|_| ConnectionError::Incompatible)?;
    rpc.run_until(|rpc| rpc.app().is_some());
    let done = rpc.app_mut().take().ok_or(ConnectionError::Incompatible)?;
    match done.result {
        Ok(()) => {
            let figures = Figures::decode(done.response.data());
            figures.map_err(|_| ConnectionError::Incompatible)
        }
        Err(RpcError::DeadlinePassed(_)) => Err(ConnectionError::DeadlinePassed),
        Err(_) => Err(ConnectionError::Incompatible),
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(error) => write!(f, "the endpoint cannot be made: {error}"),
            Self::Connect(error) => write!(f, "no session can be made: {error}"),
            Self::Incompatible => f.write_str("the other side is not a sequencer of this version"),
            Self::NoBuffer => f.write_str("this process has no memory for the message"),
            Self::DeadlinePassed => f.write_str("the server has not answered in time"),
        }
    }
}

impl std::error::Error for ConnectionError {}
