//! The choice of congestion control: the schemes, the unit of their rates, and the steps that
//! uncongested sessions skip. Options and transports name schemes; `congestion/` implements them.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::time::Nanos;

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
    /// Credits alone. Round trips are measured nevertheless.
    #[default]
    None,
    /// Round-trip gradients (TIMELY, SIGCOMM 2015; eRPC §5.2).
    Timely,
    /// TIMELY with a patch that makes the rates of a link's senders equal (Zhu et al., "ECN or
    /// Delay", CoNEXT 2016).
    PatchedTimely,
    /// Congestion marks of the network, which answers echo (DCQCN, SIGCOMM 2015).
    Dcqcn,
    /// A target delay, and windows down to 1/64 packet (Swift, SIGCOMM 2020).
    Swift,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Timely,
        Self::PatchedTimely,
        Self::Dcqcn,
        Self::Swift,
    ];

    /// The name in options and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Timely => "timely",
            Self::PatchedTimely => "patched-timely",
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
        f.write_str("no such congestion control; use none, timely, patched-timely, dcqcn or swift")
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

/// Steps that uncongested sessions skip (eRPC §5.2.2). All five are on by default; experiments
/// switch them off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bypasses {
    /// A session at line rate asks for a round trip only every 10 µs (without congestion control,
    /// every 100 µs or less often: rule S10), and Timely ignores round trips below its low
    /// threshold. Off: every request is measured, and every sample changes the rate.
    pub timely: bool,
    /// Packets of a session at line rate go straight to the transport. Off: they go through the
    /// timing wheel.
    pub limiter: bool,
    /// One reading of the clock serves all packets of a burst. Off: each packet has its own.
    pub clock: bool,
    /// Short messages without a special case take the common path. Off: every packet takes the
    /// general path, with the same outcome.
    pub common: bool,
    /// Short packets are staged in the lines of a lane, which the transport sends in one run. Off:
    /// they are queued like all others, and messages of more than 32 bytes are lent.
    pub lanes: bool,
}

impl Bypasses {
    /// All bypasses off.
    pub const OFF: Self = Self {
        timely: false,
        limiter: false,
        clock: false,
        common: false,
        lanes: false,
    };

    /// Whether ordinary packets may take the common path: it is on, and one reading of the clock
    /// serves a burst.
    #[inline]
    pub(crate) const fn are_usual(&self) -> bool {
        self.common && self.clock
    }
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
