//! What a recorded run consists of: facts, each of one time and one port, and what is compared of
//! each.
//!
//! Invariant: nothing here depends on an address, on the number of a memory region or on anything
//! else that two equal runs in one process need not share. Made where things happen (`net`,
//! `cluster`, `run`), taken by `record`.

use std::fmt::{self, Arguments};

use dunlin_core::transport::TxItem;
use dunlin_core::{
    CallErrorKind, Counters, Done, Histogram, Histograms, Progress, Session, SessionEvent,
    SessionInfo,
};
use dunlin_wire::HEADER_LEN;

use crate::cluster::Kind;
use crate::net::PortId;
use crate::packets;
use crate::run::Report;
use crate::world::{Act, StreamEvent};

/// One thing that happened.
pub(crate) enum Fact<'a> {
    /// An iteration of an event loop is over.
    Iteration(Progress, Standing<'a>),
    /// An endpoint gives a packet to its transport, by its thread's clock.
    Hands(&'a TxItem),
    /// A frame leaves the memory of a host.
    Sends { to: PortId, frame: &'a [u8] },
    /// A frame lies in an RX queue.
    Receives {
        from: PortId,
        frame: &'a [u8],
        congestion: bool,
    },
    /// The application issues a call, which the endpoint takes or refuses.
    Calls {
        call: u64,
        refused: Option<CallErrorKind>,
    },
    /// The application cancels a call, and the endpoint says whether it still could.
    Cancels { call: u64, could: bool },
    /// A handler gets a request.
    Handles {
        session: Option<Session>,
        kind: Kind,
        request: &'a [u8],
    },
    /// The application gets the end of a call.
    Completes(&'a Done),
    /// The application gets the news of a session.
    Session(SessionEvent),
    /// A timer of the application fires.
    Timer(u64),
    /// The client of a request that the application keeps does not wait any more.
    GivenUp(usize),
    /// The control plane of a process gets something.
    Control(&'a StreamEvent),
    /// Something is done to the world.
    Act(Act),
    /// A session, at the end of a phase or of its process.
    SessionIs(&'a SessionInfo),
    /// All that an endpoint has measured, at the end of a phase or of its process.
    Measured(&'a Histograms),
    /// The run is over.
    Over(&'a Report),
}

/// Counters and holdings of an endpoint after an iteration.
pub(crate) struct Standing<'a> {
    pub(crate) counters: &'a Counters,
    pub(crate) measured: &'a Histograms,
    /// Bytes of msgbufs in use, and how many.
    pub(crate) pool: (usize, usize),
    /// Bytes of large requests that are there in part.
    pub(crate) receiving: u64,
    pub(crate) sessions: usize,
    pub(crate) calls: usize,
}

/// Takes a fact apart: a digest of it, or words about it.
pub(crate) trait See {
    fn number(&mut self, name: &'static str, value: u64);
    fn bytes(&mut self, name: &'static str, bytes: &[u8]);
    fn text(&mut self, name: &'static str, text: Arguments<'_>);
}

impl Fact<'_> {
    /// Shows everything of the fact that must be equal in both runs.
    pub(crate) fn show(&self, see: &mut impl See) {
        see.number("fact", self.number());
        match self {
            Self::Hands(item) => {
                see.number("to", item.peer.0.into());
                see.number("length", packet_len(item) as u64);
                see.bytes("header", header_of(item));
            }
            Self::Sends { to, frame } => {
                see.number("to", to.0 as u64);
                see.bytes("bytes", frame);
            }
            Self::Receives {
                from,
                frame,
                congestion,
            } => {
                see.number("from", from.0 as u64);
                see.number("congestion", u64::from(*congestion));
                see.number("length", frame.len() as u64);
                // The whole of it was compared when it left.
                see.bytes("header", &frame[..frame.len().min(HEADER_LEN)]);
            }
            _ => self.show_rest(see),
        }
    }

    /// The same for what is neither a packet nor a frame.
    fn show_rest(&self, see: &mut impl See) {
        match self {
            Self::Hands(_) | Self::Sends { .. } | Self::Receives { .. } => {}
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
            Self::Control(StreamEvent::Frame(name, frame, _)) => {
                see.number("connection", *name);
                see.bytes("message", frame);
            }
            Self::Control(event) => see.text("event", format_args!("{event:?}")),
            Self::Act(act) => see.text("act", format_args!("{act:?}")),
            Self::SessionIs(info) => see.text("session", format_args!("{info:?}")),
            Self::Measured(histograms) => {
                for (name, histogram) in histograms.named() {
                    show_buckets(name, histogram, see);
                }
            }
            Self::Over(report) => see.text("report", format_args!("{report:?}")),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Iteration(..) => 0,
            Self::Hands(_) => 1,
            Self::Sends { .. } => 2,
            Self::Receives { .. } => 3,
            Self::Calls { .. } => 4,
            Self::Cancels { .. } => 5,
            Self::Handles { .. } => 6,
            Self::Completes(_) => 7,
            Self::Session(_) => 8,
            Self::Timer(_) => 9,
            Self::GivenUp(_) => 10,
            Self::Control(_) => 11,
            Self::Act(_) => 12,
            Self::SessionIs(_) => 13,
            Self::Measured(_) => 14,
            Self::Over(_) => 15,
        }
    }
}

/// One line for a reader.
impl fmt::Display for Fact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iteration(progress, _) => write!(f, "iterates, {} frames", progress.frames),
            Self::Hands(item) => {
                let (to, packet) = (item.peer.0, packets::describe(header_of(item)));
                let len = packet_len(item);
                write!(f, "hands over {len} bytes to {to}: {packet}")
            }
            Self::Sends { to, frame } => {
                write!(f, "sends to {}: {}", to.0, packets::describe(frame))
            }
            Self::Receives { from, frame, .. } => {
                write!(f, "receives from {}: {}", from.0, packets::describe(frame))
            }
            Self::Calls { call, refused } => match refused {
                None => write!(f, "call {call} is issued"),
                Some(why) => write!(f, "call {call} is refused: {why:?}"),
            },
            Self::Cancels { call, could } => write!(f, "call {call} is cancelled: {could}"),
            Self::Handles { kind, request, .. } => {
                write!(f, "a {kind:?} handler gets {} bytes", request.len())
            }
            Self::Completes(done) => {
                write!(f, "call {} ends with {:?}", done.tag.0, done.result)
            }
            Self::Session(event) => write!(f, "session event {event:?}"),
            Self::Timer(token) => write!(f, "timer {token:#x} fires"),
            Self::GivenUp(ticket) => write!(f, "kept request {ticket} is given up"),
            Self::Control(event) => match event {
                StreamEvent::Frame(name, frame, _) => {
                    write!(f, "control message of {} bytes on {name}", frame.len())
                }
                other => write!(f, "control {other:?}"),
            },
            Self::Act(act) => write!(f, "{act:?}"),
            Self::SessionIs(info) => {
                write!(f, "state of the session with {}", info.peer.0)
            }
            Self::Measured(_) => write!(f, "state of the histograms"),
            Self::Over(report) => write!(f, "the run is over: {report:?}"),
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
        // What the buffer holds now is what an earlier message left there.
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

/// The part of a packet that is a header, wherever its data lies.
fn header_of(item: &TxItem) -> &[u8] {
    &item.inline[..(item.inline_len as usize).min(HEADER_LEN)]
}

fn packet_len(item: &TxItem) -> usize {
    item.inline_len as usize + item.data.len()
}
