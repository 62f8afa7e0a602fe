//! One ping: it sends a request with a number and a pattern, compares the answer byte by byte, and
//! measures the time. Every wait ends: at the answer, at its deadline, or at a signal.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use dunlin::settings::Configurable;
use dunlin::{
    CallErrorKind, CallOptions, ConnectError, ConnectOptions, Done, ErrorCode, MsgBuf, Nanos, Rpc,
    RpcError, Session, Settings, Tag,
};

use crate::commands::echo::ECHO;
use crate::commands::target::bind_ip;
use harness::signal;

/// Time between two checks for a signal during a rest.
const GLANCE: Duration = Duration::from_millis(50);

/// The outcome of a ping.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The echo came back.
    Answered(Duration),
    /// The server answered that it does not echo.
    Refused(Duration, ErrorCode),
    /// Another answer came back.
    Wrong,
    /// No answer came.
    Lost(String),
    /// A signal came first.
    Interrupted,
}

/// Results that the endpoint's functions leave for the pinger.
#[derive(Debug, Default)]
struct State {
    done: Option<(Done, Nanos)>,
}

/// An endpoint with a session to the server.
pub(super) struct Pinger<T: Configurable> {
    rpc: Rpc<T, State>,
    to: SocketAddr,
    session: Option<Session>,
    /// Request and response, between pings.
    bufs: Option<(MsgBuf, MsgBuf)>,
}

impl<T: Configurable> Pinger<T> {
    /// Opens an endpoint that can reach `to`.
    ///
    /// # Errors
    /// The system refuses, or `size` is more than a message may have.
    pub(super) fn open(settings: &Settings, to: SocketAddr, size: u32) -> anyhow::Result<Self> {
        let nexus = settings
            .nexus()
            .bind(SocketAddr::new(bind_ip(to.ip()), 0))?;
        let mut rpc: Rpc<T, State> = settings.endpoint::<T>(&nexus).build(State::default())?;
        rpc.on_completion(|state, done, cx| state.done = Some((done, cx.now())));
        let size = usize::try_from(size)?;
        let no_room = "no memory for a message of this size; see `endpoint.pool_bytes`";
        let mut request = rpc.buf(size).context(no_room)?;
        let response = rpc.buf(size).context(no_room)?;
        for (byte, pattern) in request.data_mut().iter_mut().zip((0..=u8::MAX).cycle()) {
            *byte = pattern;
        }
        Ok(Self {
            rpc,
            to,
            session: None,
            bufs: Some((request, response)),
        })
    }

    /// Makes a session, and waits for it.
    ///
    /// # Errors
    /// The reason why there is none; or a signal arrived.
    pub(super) fn connect(&mut self, options: &ConnectOptions) -> anyhow::Result<()> {
        let session = self.rpc.connect_with(self.to, options)?;
        loop {
            match self.rpc.session_info(session) {
                Ok(info) if info.open => break,
                Ok(_) => self.rpc.run_once(),
                Err(_) => {
                    let failure = self.rpc.failure(session);
                    return Err(failure.map_or(ConnectError::Closed, Into::into).into());
                }
            };
            signal::check()?;
        }
        self.session = Some(session);
        Ok(())
    }

    /// Sends number `seq` and waits for its answer; makes a session first, if there is none.
    ///
    /// # Errors
    /// The request can never be sent: it is too large.
    pub(super) fn ping(
        &mut self,
        seq: u64,
        deadline: Duration,
        again: &ConnectOptions,
    ) -> anyhow::Result<Outcome> {
        if self
            .session
            .is_none_or(|session| self.rpc.session_info(session).is_err())
        {
            match self.connect(again) {
                Ok(()) => {}
                Err(_) if signal::check().is_err() => return Ok(Outcome::Interrupted),
                Err(error) => return Ok(Outcome::Lost(format!("{error:#}"))),
            }
        }
        let session = self.session.context("there is a session by now")?;
        let (mut request, response) = self.bufs.take().context("one ping at a time")?;
        number(request.data_mut(), seq);
        let options = CallOptions {
            deadline: Some(deadline.into()),
        };
        let begin = self.rpc.now();
        let called = self
            .rpc
            .call_with(session, ECHO, request, response, Tag(seq), options);
        if let Err(refused) = called {
            let (kind, what) = (refused.kind, refused.to_string());
            self.bufs = Some((refused.request, refused.response));
            anyhow::ensure!(kind == CallErrorKind::NoSession, "{what}");
            return Ok(Outcome::Lost("the session has ended".to_owned()));
        }
        Ok(self.outcome(begin))
    }

    /// Waits for the end of the call, which comes no later than its deadline.
    fn outcome(&mut self, begin: Nanos) -> Outcome {
        let (done, end) = loop {
            if let Some(end) = self.rpc.app_mut().done.take() {
                break end;
            }
            if signal::check().is_err() {
                return Outcome::Interrupted;
            }
            self.rpc.run_once();
        };
        let span = end.since(begin).into();
        let outcome = match done.result {
            Ok(()) if done.response.data() == done.request.data() => Outcome::Answered(span),
            Ok(()) => Outcome::Wrong,
            Err(RpcError::Rejected(code, _)) => Outcome::Refused(span, code),
            Err(error) => Outcome::Lost(error.to_string()),
        };
        self.bufs = Some((done.request, done.response));
        outcome
    }

    /// Runs the endpoint until the moment `then`, or until a signal arrives.
    pub(super) fn rest_until(&mut self, then: Instant) {
        while signal::check().is_ok() {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.rpc.run_for(left.min(GLANCE));
        }
    }
}

/// Writes the number over the beginning of the pattern, as far as there is room.
fn number(data: &mut [u8], seq: u64) {
    for (byte, part) in data.iter_mut().zip(seq.to_le_bytes()) {
        *byte = part;
    }
}
