//! Congestion control as the protocol sees it (design §7): which schemes there are, what a scheme
//! learns, and what it says. A scheme sees answers, losses and timeouts of one session and says at
//! what rate it may send; `congestion/pacing.rs` keeps to that rate.
//!
//! A session whose scheme lets it send at line rate costs one comparison more than one without a
//! scheme: only the answers that carry a round-trip sample or a congestion mark come here (eRPC
//! §5.2.2). Only REQ and RFR are paced; CR, RESP and ERR never are.
//!
//! | file | what it owns |
//! |---|---|
//! | `constants.rs` | every constant of every scheme, with its source |
//! | `timely.rs`, `dcqcn.rs`, `swift.rs` | the schemes: plain state machines without packets |
//! | `flow.rs` | the scheme of each session, and when its next packet may leave |
//! | `congestion/pacing.rs`, `congestion/wheel.rs` | packets that wait for their time |

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

use crate::time::Nanos;

pub(crate) mod constants;
mod dcqcn;
pub(crate) mod flow;
pub(crate) mod pacer;
pub(crate) mod pacing;
mod swift;
mod timely;
pub(crate) mod wheel;

/// Bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BytesPerSec(pub u64);

impl BytesPerSec {
    /// Time that `bytes` take at this rate.
    pub fn time_of(self, bytes: u32) -> Nanos {
        // 2^32 bytes times 10^9 are less than 2^62.
        Nanos(u64::from(bytes) * 1_000_000_000 / self.0.max(1))
    }

    pub(crate) fn as_f64(self) -> f64 {
        self.0.max(1) as f64
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion from a float saturates, and no rate is negative"
    )]
    pub(crate) fn from_f64(rate: f64) -> Self {
        Self((rate as u64).max(1))
    }
}

/// Which congestion control a session has (design §7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scheme {
    /// Credits alone. Round trips are measured all the same.
    #[default]
    None,
    /// Round-trip gradients (TIMELY, SIGCOMM 2015; eRPC §5.2).
    Timely,
    /// Marks of the network, which the answers echo (DCQCN, SIGCOMM 2015).
    Dcqcn,
    /// A target delay, and windows down to 1/64 packet (Swift, SIGCOMM 2020).
    Swift,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Timely, Self::Dcqcn, Self::Swift];

    /// As it is written in options and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Timely => "timely",
            Self::Dcqcn => "dcqcn",
            Self::Swift => "swift",
        }
    }
}

impl Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no [`Scheme`] has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownScheme;

impl Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such congestion control; use none, timely, dcqcn or swift")
    }
}

impl std::error::Error for UnknownScheme {}

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or(UnknownScheme)
    }
}

/// Work that is left out for sessions that no congestion concerns (eRPC §5.2.2). All five are on by
/// default; experiments switch them off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bypasses {
    /// A session at line rate asks for a round trip every 10 µs only, and Timely does not look at
    /// one that is below its low threshold. Off: every request is measured, and every sample
    /// changes the rate.
    pub timely: bool,
    /// Packets of a session at line rate go straight to the transport. Off: they go through the
    /// timing wheel.
    pub limiter: bool,
    /// One reading of the clock serves all packets of a burst. Off: one for each.
    pub clock: bool,
    /// Short messages about which nothing is unusual take a path of their own. Off: every packet
    /// takes the general path, with the same outcome.
    pub common: bool,
    /// Short packets are staged in lines of the endpoint, which the transport sends in one run.
    /// Off: they are queued as all others are, and messages of more than 32 bytes are lent.
    pub lanes: bool,
}

impl Bypasses {
    /// Everything goes the long way.
    pub const OFF: Self = Self {
        timely: false,
        limiter: false,
        clock: false,
        common: false,
        lanes: false,
    };
}

impl Default for Bypasses {
    fn default() -> Self {
        Self {
            timely: true,
            limiter: true,
            clock: true,
            common: true,
            lanes: true,
        }
    }
}

/// What a scheme learns from one answer.
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
    /// An answer came.
    fn on_answer(&mut self, sample: Sample);

    /// Packets of large messages that may be in flight. Such messages are then held to that, and
    /// not to the rate: each packet that arrives lets the next one go. `None`: to the rate.
    fn window(&self) -> Option<u32> {
        None
    }

    /// Packets were lost, which later ones told.
    fn on_loss(&mut self, _now: Nanos) {}

    /// Nothing came for so long that everything in flight counts as lost.
    fn on_timeout(&mut self, now: Nanos);

    /// A packet is about to be paced: for schemes whose rate changes with time.
    fn on_time(&mut self, _now: Nanos) {}

    /// The rate from now on; `None`: unlimited, send at once (the rate limiter bypass, eRPC
    /// §5.2.2).
    fn rate(&self) -> Option<BytesPerSec>;
}

/// The packets of a session that one flow controls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Requests: they queue on their way to the server.
    Out,
    /// Packets of large responses that RFRs ask for: they queue on its way to the client.
    Back,
}

/// What a scheme must know of the way to the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// The rate of this host's link, from which schemes start and which they never exceed.
    pub(crate) line_rate: BytesPerSec,
    /// The round trip of an empty network; zero if only measurement can tell.
    pub(crate) base_rtt: Nanos,
    /// Bytes of a full packet.
    pub(crate) packet: u32,
    /// Packets that the session may have in flight.
    pub(crate) credits: u32,
    /// A random number, by which sessions do not do at the same time what each does now and then.
    pub(crate) dither: u32,
}

#[cfg(test)]
mod tests;
