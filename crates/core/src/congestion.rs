//! Congestion control as the protocol sees it (design §7): the schemes, their input and their
//! output. A scheme gets a session's answers, losses and timeouts, and sets the session's rate;
//! `congestion/pacer/pacing.rs` enforces that rate.
//!
//! A session at line rate pays one comparison for its scheme: the scheme gets only answers with a
//! round-trip sample or a congestion mark (eRPC §5.2.2). Only REQ and RFR are paced; CR, RESP and
//! ERR never are.
//!
//! | file | what it owns |
//! |---|---|
//! | `constants.rs` | every constant of every scheme, with its source |
//! | `timely.rs`, `dcqcn.rs`, `swift.rs` | the schemes: plain state machines without packets |
//! | `flow.rs` | the scheme of each session, and when its next packet may leave |
//! | `congestion/pacer/pacing.rs`, `congestion/wheel.rs` | packets that wait for their time |
//! | `congestion/egress.rs` | until when the NIC is busy with packets of large responses |

use std::fmt::Debug;

use crate::scheme::BytesPerSec;
use crate::time::Nanos;

pub(crate) mod constants;
mod dcqcn;
pub(crate) mod egress;
pub(crate) mod flow;
pub(crate) mod pacer;
mod swift;
mod timely;
pub(crate) mod wheel;

/// One answer, as a scheme sees it.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Round trip without the server's residence; `None` if it was not measured.
    pub rtt: Option<Nanos>,
    /// The network marked a packet of this session (ECN).
    pub congestion: bool,
    /// Packets whose arrival the answer reports.
    pub packets: u32,
    /// When the answer came.
    pub now: Nanos,
}

/// A congestion control scheme for one session.
pub trait CongestionControl: Debug + Send {
    /// The scheme gets an answer.
    fn on_answer(&mut self, sample: Sample);

    /// Packets of large messages that may be in flight. For them, this limit replaces the rate:
    /// each packet that arrives lets the next one leave. `None`: the rate limits them. 0: a window
    /// of less than one packet; the rate limits them, and at most one RFR or request packet is in
    /// flight.
    fn window(&self) -> Option<u32> {
        None
    }

    /// This number of packets has arrived, but their answers give no round trip, because a thread
    /// did not run and kept packets waiting. So the network did not cause the silence before these
    /// answers. [`Self::on_answer`] follows.
    fn on_wait(&mut self, _packets: u32) {}

    /// Later packets arrived, which shows that earlier ones were lost.
    fn on_loss(&mut self, _now: Nanos) {}

    /// No answer came within the timeout: everything in flight counts as lost.
    fn on_timeout(&mut self, now: Nanos);

    /// A packet is about to be paced. Schemes whose rate changes with time update it here.
    fn on_time(&mut self, _now: Nanos) {}

    /// The rate from now on; `None`: unlimited, send at once (the rate limiter bypass, eRPC
    /// §5.2.2).
    fn rate(&self) -> Option<BytesPerSec>;
}

/// The direction of the packets that a flow controls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Requests, which queue on their way to the server.
    Out,
    /// Packets of large responses, which queue on their way to the client.
    Back,
}

impl Way {
    /// The other direction.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Out => Self::Back,
            Self::Back => Self::Out,
        }
    }
}

/// The path to the peer, with the facts that a scheme needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// The rate of this host's link. Schemes start with it and never exceed it.
    pub(crate) line_rate: BytesPerSec,
    /// The round trip of an empty network; zero if it is not declared.
    pub(crate) base_rtt: Nanos,
    /// Bytes of a full packet.
    pub(crate) packet: u32,
    /// Packets that the session may have in flight.
    pub(crate) credits: u32,
    /// A random number, so that sessions do not make their occasional steps at the same time.
    pub(crate) dither: u32,
}

#[cfg(test)]
mod tests;
