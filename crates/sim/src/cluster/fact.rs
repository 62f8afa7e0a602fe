//! The facts of an endpoint and of its application. Made in `app`, `handlers` and `node`.

use dunlin_core::{
    CallErrorKind, Counters, Done, Histogram, Histograms, Progress, Session, SessionEvent,
    SessionInfo,
};

use super::message::Kind;
use crate::world::record::{Fact, See};

/// One event at an endpoint or its application.
pub(super) enum EndpointFact<'a> {
    /// An iteration of an event loop is over.
    Iteration(Progress, Standing<'a>),
    /// The application issues a call, which the endpoint takes or refuses.
    Calls {
        call: u64,
        refused: Option<CallErrorKind>,
    },
    /// The application cancels a call, and the endpoint returns whether that was still possible.
    Cancels { call: u64, could: bool },
    /// A handler gets a request.
    Handles {
        session: Option<Session>,
        kind: Kind,
        request: &'a [u8],
    },
    /// The application gets the end of a call.
    Completes(&'a Done),
    /// The application gets an event of a session.
    Session(SessionEvent),
    /// A timer of the application fires.
    Timer(u64),
    /// The client of a request that the application keeps no longer waits.
    GivenUp(usize),
    /// The state of a session, at the end of a phase or of its process.
    SessionIs(&'a SessionInfo),
    /// All that an endpoint has measured, at the end of a phase or of its process.
    Measured(&'a Histograms),
}

/// Counters and holdings of an endpoint after an iteration.
pub(super) struct Standing<'a> {
    pub(super) counters: &'a Counters,
    pub(super) measured: &'a Histograms,
    /// Msgbufs in use: their bytes, and their number.
    pub(super) pool: (usize, usize),
    /// Bytes of large requests that have arrived in part.
    pub(super) receiving: u64,
    pub(super) sessions: usize,
    pub(super) calls: usize,
}

impl Fact for EndpointFact<'_> {
    fn show(&self, see: &mut impl See) {
        see.kind(self.kind());
        match self {
            Self::Iteration(progress, standing) => {
                see.number("frames", progress.frames as u64);
                see.number("busy", progress.busy.into());
                standing.show(see);
            }
            Self::Calls { call, refused } => {
                see.number("call", *call);
                see.text("refused", format_args!("{refused:?}"));
            }
            Self::Cancels { call, could } => {
                see.number("call", *call);
                see.number("could", u64::from(*could));
            }
            Self::Handles {
                session,
                kind,
                request,
            } => {
                let session = session.map_or(u64::MAX, |session| session.number().0.into());
                see.number("session", session);
                see.number("kind", *kind as u64);
                see.bytes("request", request);
            }
            Self::Completes(done) => show_done(done, see),
            Self::Session(event) => show_event(*event, see),
            Self::Timer(token) => see.number("token", *token),
            Self::GivenUp(ticket) => see.number("request", *ticket as u64),
            Self::SessionIs(info) => see.text("session", format_args!("{info:?}")),
            Self::Measured(histograms) => {
                for (name, histogram) in histograms.named() {
                    show_buckets(name, histogram, see);
                }
            }
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Iteration(progress, _) => format!("iterates, {} frames", progress.frames),
            Self::Calls { call, refused } => match refused {
                None => format!("call {call} is issued"),
                Some(why) => format!("call {call} is refused: {why:?}"),
            },
            Self::Cancels { call, could } => format!("call {call} is cancelled: {could}"),
            Self::Handles { kind, request, .. } => {
                format!("a {kind:?} handler gets {} bytes", request.len())
            }
            Self::Completes(done) => {
                format!("call {} ends with {:?}", done.tag.0, done.result)
            }
            Self::Session(event) => format!("session event {event:?}"),
            Self::Timer(token) => format!("timer {token:#x} fires"),
            Self::GivenUp(ticket) => format!("kept request {ticket} is given up"),
            Self::SessionIs(info) => {
                format!("state of the session with {}", info.peer.0)
            }
            Self::Measured(_) => "state of the histograms".to_owned(),
        }
    }
}

impl EndpointFact<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Iteration(..) => "iteration",
            Self::Calls { .. } => "calls",
            Self::Cancels { .. } => "cancels",
            Self::Handles { .. } => "handles",
            Self::Completes(_) => "completes",
            Self::Session(_) => "session",
            Self::Timer(_) => "timer",
            Self::GivenUp(_) => "given up",
            Self::SessionIs(_) => "session is",
            Self::Measured(_) => "measured",
        }
    }
}

impl Standing<'_> {
    fn show(&self, see: &mut impl See) {
        for (name, count) in self.counters.named() {
            if !Counters::OF_PATHS.contains(&name) {
                see.number(name, count);
            }
        }
        for (name, count) in self.counters.drops.named() {
            see.number(name, count);
        }
        for (name, histogram) in self.measured.named() {
            see.number(name, histogram.sum_ns());
        }
        see.number("pool bytes", self.pool.0 as u64);
        see.number("pool msgbufs", self.pool.1 as u64);
        see.number("receiving", self.receiving);
        see.number("sessions", self.sessions as u64);
        see.number("calls", self.calls as u64);
    }
}

fn show_done(done: &Done, see: &mut impl See) {
    see.number("session", done.session.number().0.into());
    see.number("call", done.tag.0);
    match done.result {
        Ok(()) => see.bytes("response", done.response.data()),
        // The buffer still has the bytes of an earlier message.
        Err(error) => see.text("error", format_args!("{error:?}")),
    }
    see.bytes("request", done.request.data());
    see.number("room", done.response.capacity() as u64);
}

fn show_event(event: SessionEvent, see: &mut impl See) {
    let (what, session) = match event {
        SessionEvent::Connected(session) => ("connected", session),
        SessionEvent::Accepted(session) => ("accepted", session),
        SessionEvent::Closed { session, reason } => {
            see.text("reason", format_args!("{reason:?}"));
            ("closed", session)
        }
    };
    see.number(what, session.number().0.into());
}

fn show_buckets(name: &'static str, histogram: &Histogram, see: &mut impl See) {
    see.number(name, histogram.sum_ns());
    for (bucket, count) in histogram.buckets().iter().enumerate() {
        if *count != 0 {
            see.number(name, Histogram::smallest_ns(bucket));
            see.number("times", *count);
        }
    }
}
