//! Congestion control as the protocol sees it (design §7): the schemes, their input and their
//! output. A scheme sees answers, losses and timeouts of one session and sets the rate at which it
//! may send; `congestion/pacing.rs` keeps to that rate.
//!
//! For a session at line rate, a scheme costs one comparison: only the answers that carry a
//! round-trip sample or a congestion mark come here (eRPC §5.2.2). Only REQ and RFR are paced; CR,
//! RESP and ERR never are.
//!
//! | file | what it owns |
//! |---|---|
//! | `constants.rs` | every constant of every scheme, with its source |
//! | `timely.rs`, `dcqcn.rs`, `swift.rs` | the schemes: plain state machines without packets |
//! | `flow.rs` | the scheme of each session, and when its next packet may leave |
//! | `congestion/pacing.rs`, `congestion/wheel.rs` | packets that wait for their time |
//! | `congestion/egress.rs` | until when the NIC is busy with packets of large responses |

use std::fmt::Debug;

use crate::scheme::BytesPerSec;
use crate::time::Nanos;

pub(crate) mod constants;
mod dcqcn;
pub(crate) mod egress;
pub(crate) mod flow;
pub(crate) mod pacer;
pub(crate) mod pacing;
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
    /// Packets that the answer says have arrived.
    pub packets: u32,
    /// When the answer came.
    pub now: Nanos,
}

/// A congestion control scheme for one session.
pub trait CongestionControl: Debug + Send {
    /// The scheme gets an answer.
    fn on_answer(&mut self, sample: Sample);

    /// Packets of large messages that may be in flight. This limit then replaces the rate for them:
    /// each packet that arrives lets the next one leave. `None`: the rate applies to them. 0: less
    /// than one packet, so the rate applies to them, and at most one RFR or packet of a request is
    /// in flight.
    fn window(&self) -> Option<u32> {
        None
    }

    /// This number of packets has arrived, but their answers have no round trip, because a thread
    /// that did not run kept packets waiting. So the silence before these answers was not the
    /// network's. [`Self::on_answer`] follows.
    fn on_wait(&mut self, _packets: u32) {}

    /// Later packets have shown that packets were lost.
    fn on_loss(&mut self, _now: Nanos) {}

    /// No answer came for so long that everything in flight counts as lost.
    fn on_timeout(&mut self, now: Nanos);

    /// A packet is about to be paced: for schemes whose rate changes with time.
    fn on_time(&mut self, _now: Nanos) {}

    /// The rate from now on; `None`: unlimited, send at once (the rate limiter bypass, eRPC
    /// §5.2.2).
    fn rate(&self) -> Option<BytesPerSec>;
}

/// The direction of the packets that a flow controls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Requests: they queue on their way to the server.
    Out,
    /// Packets of large responses that RFRs ask for: they queue on their way to the client.
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

/// The path to the peer, as far as a scheme must know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// The rate of this host's link, from which schemes start and which they never exceed.
    pub(crate) line_rate: BytesPerSec,
    /// The round trip of an empty network; zero if it can only be measured.
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
