//! Every limit and every default of the endpoint, in one place, with the relations between them.
//!
//! Owned by the endpoint from its start; a running endpoint's configuration does not change.

use std::time::Duration;

use dunlin_wire::ReqNum;

use crate::law::Check;
use crate::scheme::{Bypasses, Scheme};
use crate::time::Nanos;

/// The most concurrent requests of a session in one direction (rule S1).
pub const MAX_WINDOW: u32 = 64;
/// Concurrent requests of a session in one direction, unless a session asks for another number
/// (eRPC §4.3).
pub const DEFAULT_WINDOW: u32 = 8;
/// Packets in flight of a session, unless the session asks for another number (eRPC §6.4 uses 32).
pub const DEFAULT_CREDITS: u32 = 32;
/// The most packets in flight of a session.
pub const MAX_CREDITS: u32 = 4096;
/// The most packets of a message, less than the numbers that CR and RFR can name (rule W7).
pub const MAX_PACKETS: u32 = (1 << 24) - 1;
/// Largest message that an endpoint accepts, unless configured otherwise: 16 MiB (design §8).
pub const DEFAULT_MAX_MESSAGE: u32 = 16 << 20;
/// The most requests that one call of a batch handler gets: two RX bursts' worth of packed frames.
pub const MAX_BATCH: usize = 64;
/// The most idle iterations between two readings of the clock, less one (design §3).
pub const IDLE_CLOCK_MASK: u32 = 63;
/// Longest time between two clock readings while the endpoint is idle, unless one iteration lasts
/// longer: half of the error that a round-trip sample may have (rule S10).
pub const IDLE_CLOCK_GAP: Nanos = Nanos::from_micros(1);
/// The most live calls that one loss scan visits; the next scan continues there.
pub const SCAN_LIMIT: usize = 1024;
/// The number of parts in which a large table of requests is swept, so that each sweep is short.
pub const SWEEP_PARTS: usize = 64;
/// The most requests in each part of a table that is swept in fewer parts.
pub const SWEEP_LIMIT: usize = 256;
/// How often a client must be able to ask for a response while it is held: two answers in a row may
/// be lost.
pub const ASKS_PER_HOLD: u64 = 3;
/// The most request types, and so the largest size of the handler table, which the type indexes.
pub const MAX_REQ_TYPES: usize = 1 << 16;
/// The most slots of the timing wheel.
pub const MAX_WHEEL_SLOTS: u64 = 1 << 12;
/// The most sessions of an endpoint: a handle holds the index and a generation.
pub const MAX_SESSIONS: usize = 1 << 24;

const _: () = {
    assert!(MAX_WINDOW.is_power_of_two() && DEFAULT_WINDOW.is_power_of_two());
    // One 64-bit word has a bit for each free slot of a session.
    assert!(MAX_WINDOW <= u64::BITS && DEFAULT_WINDOW <= MAX_WINDOW);
    assert!(DEFAULT_CREDITS >= DEFAULT_WINDOW && DEFAULT_CREDITS <= MAX_CREDITS);
    assert!((IDLE_CLOCK_MASK + 1).is_power_of_two());
};

/// The configuration of an endpoint. Every field can be set; the defaults work.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sessions that the endpoint takes part in, as client or server side.
    pub max_sessions: usize,
    /// Largest window of a session; the endpoint lowers larger ones to it.
    pub max_window: u32,
    /// The most credits of a session; the endpoint lowers larger numbers to it.
    pub max_credits: u32,
    /// Calls of a session that may wait for a slot or a credit; `call` refuses further ones.
    pub backlog: u32,
    /// Largest message in bytes, as request and as response.
    pub max_message: u32,
    /// Bytes of unfinished large requests, over all sessions. Each counts in full from its start.
    /// Above this limit, the endpoint rejects requests of more than one packet as overloaded.
    pub receive_budget: u64,
    /// The limit of `receive_budget`, but for the requests of one session.
    pub session_receive_budget: u64,
    /// Refuse sessions whose credits could overflow the RX queue (eRPC §4.3.1).
    pub strict_credits: bool,
    /// Smallest retransmission timeout. The default of 5 ms suits kernel transports (eRPC §5.2.3).
    pub rto_floor: Nanos,
    /// Retransmission timeout before the first round-trip sample. Also the shortest timeout for a
    /// peer on the same host, which may have to wait for a processor.
    pub rto_initial: Nanos,
    /// Time after which an unanswered background or deferred request is acknowledged (rule S4).
    pub ack_delay: Nanos,
    /// How long a server keeps a response in case the client asks again (rule S9): at least
    /// [`ASKS_PER_HOLD`] times the longest time that a client waits before it asks.
    pub response_hold: Nanos,
    /// A peer that has left packets unanswered for this long has failed (rule S11).
    pub failure_timeout: Nanos,
    /// Time between two scans for lost packets and passed deadlines while calls are pending.
    pub scan_interval: Nanos,
    /// Longest time between two probes of a request that the server has accepted.
    pub probe_max: Nanos,
    /// Congestion control of sessions that are opened without a scheme of their own. `None`: the
    /// scheme that the transport declares for the peer, which is none for shared memory, and Swift
    /// for networks.
    pub scheme: Option<Scheme>,
    /// Steps that uncongested sessions skip (eRPC §5.2.2). Can be changed later with
    /// [`Endpoint::set_bypasses`](crate::Endpoint::set_bypasses).
    pub bypasses: Bypasses,
    /// Width of a slot of the timing wheel: a paced packet is at most this late.
    pub wheel_slot: Nanos,
    /// How far ahead the timing wheel reaches, at most [`MAX_WHEEL_SLOTS`] slots. A packet that
    /// must wait longer is inserted again at the horizon.
    pub wheel_horizon: Nanos,
    /// Memory of the endpoint's pool in bytes.
    pub pool_bytes: usize,
    /// Use huge pages for message buffers if the system has any.
    pub hugepages: bool,
    /// Lets safe code read message buffers through `dunlin_msgbuf::regions::read`; each release
    /// then takes a lock. For simulated transports and tests.
    pub readable_buffers: bool,
    /// When the endpoint checks its laws. A broken law ends the endpoint's sessions.
    pub check: Check,
    /// First request number of sessions that this side opens. Tests choose numbers just below the
    /// wrap.
    pub first_req: ReqNum,
    /// The planted bug of this endpoint, for tests of the checkers.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutant::Mutant>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_sessions: 1 << 16,
            max_window: MAX_WINDOW,
            max_credits: MAX_CREDITS,
            backlog: 1024,
            max_message: DEFAULT_MAX_MESSAGE,
            receive_budget: 256 << 20,
            session_receive_budget: 64 << 20,
            strict_credits: false,
            rto_floor: Nanos::from_millis(5),
            rto_initial: Nanos::from_millis(20),
            ack_delay: Nanos::from_micros(50),
            response_hold: Nanos::from_secs(1),
            failure_timeout: Nanos::from_secs(1),
            scan_interval: Nanos::from_micros(250),
            probe_max: Nanos::from_millis(100),
            scheme: None,
            bypasses: Bypasses::default(),
            wheel_slot: Nanos(500),
            wheel_horizon: Nanos::from_millis(2),
            pool_bytes: 1 << 30,
            hugepages: true,
            readable_buffers: false,
            check: Check::Sweep,
            first_req: ReqNum(0),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// Why a configuration or a session's options are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// `max_sessions` is 0 or above [`MAX_SESSIONS`].
    MaxSessions(usize),
    /// `max_window` is not a power of two from 1 to [`MAX_WINDOW`].
    MaxWindow(u32),
    /// `max_credits` is 0 or above [`MAX_CREDITS`].
    MaxCredits(u32),
    /// The window of a session is not a power of two from 1 to [`MAX_WINDOW`].
    Window(u32),
    /// The credits of a session are 0 or above [`MAX_CREDITS`].
    Credits(u32),
    /// The named time is less than a microsecond.
    ZeroTime(&'static str),
    /// `wheel_slot` is zero, or `wheel_horizon` is less than two slots or more than
    /// [`MAX_WHEEL_SLOTS`].
    Wheel {
        /// Width of a slot.
        slot: Nanos,
        /// Reach of the wheel.
        horizon: Nanos,
    },
    /// `max_message` is 0 or above 1 GiB.
    MaxMessage(u32),
    /// `max_message` exceeds a budget for large requests, so such a message could never be
    /// received.
    Budget {
        /// The option that is too small.
        name: &'static str,
        /// Its value, in bytes.
        bytes: u64,
        /// The configured largest message, in bytes.
        max_message: u32,
    },
    /// `first_req` is not a multiple of [`MAX_WINDOW`].
    FirstReq(u32),
    /// `response_hold` is too short for a client to ask again.
    ResponseHold {
        /// The configured span.
        hold: Nanos,
        /// The shortest span that the other options permit.
        least: Nanos,
    },
    /// The pool could not get memory for its first region.
    Memory,
}

impl std::fmt::Display for ConfigError {
    /// Names options as configuration files do.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxSessions(n) => {
                write!(f, "`endpoint.max_sessions` is {n}; use 1 to {MAX_SESSIONS}")
            }
            Self::MaxWindow(n) => write_window(f, "endpoint.max_window", *n),
            Self::Window(n) => write_window(f, "session.window", *n),
            Self::MaxCredits(n) => {
                write!(f, "`endpoint.max_credits` is {n}; use 1 to {MAX_CREDITS}")
            }
            Self::Credits(n) => write!(f, "`session.credits` is {n}; use 1 to {MAX_CREDITS}"),
            Self::ZeroTime(name) => {
                write!(
                    f,
                    "`endpoint.{name}` is less than one microsecond; use at least that"
                )
            }
            Self::Budget {
                name,
                bytes,
                max_message,
            } => write!(
                f,
                "`endpoint.max_message` is {max_message} B and `endpoint.{name}` {bytes} B, too \
                 little for such a request; raise the second or lower the first"
            ),
            Self::Wheel { slot, horizon } => write!(
                f,
                "`endpoint.wheel_slot` is {:?} and `endpoint.wheel_horizon` {:?}; use 2 to \
                 {MAX_WHEEL_SLOTS} slots of at least 1 ns",
                Duration::from(*slot),
                Duration::from(*horizon),
            ),
            Self::MaxMessage(n) => {
                write!(
                    f,
                    "`endpoint.max_message` is {n} bytes; use 1 byte to 1 GiB"
                )
            }
            Self::FirstReq(n) => {
                write!(
                    f,
                    "`endpoint.first_req` is {n}; use a multiple of {MAX_WINDOW}"
                )
            }
            Self::ResponseHold { hold, least } => write!(
                f,
                "`endpoint.response_hold` is {:?}, too short for a client to ask again for a \
                 response that was lost; use at least {:?}, or lower `endpoint.rto_floor`, \
                 `endpoint.rto_initial` or `endpoint.probe_max`",
                Duration::from(*hold),
                Duration::from(*least),
            ),
            Self::Memory => f.write_str(
                "no memory for message buffers; lower `endpoint.pool_bytes` or raise the memory \
                 limit",
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Checks the range of every option, and the relations between options.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        let (hold, least) = (self.response_hold, self.least_hold());
        if hold < least {
            return Err(ConfigError::ResponseHold { hold, least });
        }
        let budgets = [
            ("session_receive_budget", self.session_receive_budget),
            ("receive_budget", self.receive_budget),
        ];
        let max_message = self.max_message;
        let is_small = |(_, bytes): &(&str, u64)| *bytes < u64::from(max_message);
        match budgets.into_iter().find(is_small) {
            Some((name, bytes)) => Err(ConfigError::Budget {
                name,
                bytes,
                max_message,
            }),
            None => Ok(()),
        }
    }

    /// How long a server must keep a response so that a client with the same options can ask for it
    /// [`ASKS_PER_HOLD`] times (rules S8, S9). A shorter time is safe, because no request runs
    /// twice, but a lost response then becomes ERR(response gone).
    fn least_hold(&self) -> Nanos {
        let first = self.rto_floor.max(self.rto_initial);
        first.max(self.longest_backoff()).times(ASKS_PER_HOLD)
    }

    /// The shortest timeout of a session. For a near peer, it is never below the initial timeout:
    /// round trips do not show how long that peer may wait for a processor, and hardly any packet
    /// is lost on the way.
    pub(crate) fn least_timeout(&self, is_near: bool) -> Nanos {
        match is_near {
            true => self.rto_floor.max(self.rto_initial),
            false => self.rto_floor,
        }
    }

    /// The longest timeout after doublings: several attempts must fit into the time after which a
    /// silent peer has failed. A timeout that is already longer because of round trips stays as it
    /// is.
    pub(crate) fn longest_backoff(&self) -> Nanos {
        Nanos(self.failure_timeout.0 / 8).min(self.probe_max)
    }

    /// Checks each option by itself. The simulator makes only these checks, because it also tests
    /// servers that discard responses too soon.
    pub(crate) fn check_ranges(&self) -> Result<(), ConfigError> {
        if self.max_sessions == 0 || self.max_sessions > MAX_SESSIONS {
            return Err(ConfigError::MaxSessions(self.max_sessions));
        }
        if !is_window(self.max_window) {
            return Err(ConfigError::MaxWindow(self.max_window));
        }
        if !is_credits(self.max_credits) {
            return Err(ConfigError::MaxCredits(self.max_credits));
        }
        if self.max_message == 0 || self.max_message > 1 << 30 {
            return Err(ConfigError::MaxMessage(self.max_message));
        }
        if !self.first_req.0.is_multiple_of(MAX_WINDOW) {
            return Err(ConfigError::FirstReq(self.first_req.0));
        }
        let (slot, horizon) = (self.wheel_slot, self.wheel_horizon);
        if slot == Nanos::ZERO || !(2..=MAX_WHEEL_SLOTS).contains(&(horizon.0 / slot.0.max(1))) {
            return Err(ConfigError::Wheel { slot, horizon });
        }
        let times = [
            ("rto_floor", self.rto_floor),
            ("rto_initial", self.rto_initial),
            ("ack_delay", self.ack_delay),
            ("response_hold", self.response_hold),
            ("failure_timeout", self.failure_timeout),
            ("scan_interval", self.scan_interval),
            ("probe_max", self.probe_max),
        ];
        match times.iter().find(|(_, time)| *time < Nanos::from_micros(1)) {
            Some((name, _)) => Err(ConfigError::ZeroTime(name)),
            None => Ok(()),
        }
    }
}

/// The options with which a client opens a session. The server may lower window and credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    /// Concurrent requests in each direction: a power of two from 1 to [`MAX_WINDOW`].
    pub window: u32,
    /// Packets in flight, from 1 to [`MAX_CREDITS`].
    pub credits: u32,
    /// Congestion control of the requests that this side issues; `None`: the endpoint's scheme
    /// ([`Config::scheme`]). The peer chooses for its own requests.
    pub scheme: Option<Scheme>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl SessionOptions {
    /// The default, usable in constants.
    pub const DEFAULT: Self = Self {
        window: DEFAULT_WINDOW,
        credits: DEFAULT_CREDITS,
        scheme: None,
    };

    /// The same options with another window.
    #[must_use]
    pub const fn with_window(self, window: u32) -> Self {
        Self { window, ..self }
    }

    /// The same options with other credits.
    #[must_use]
    pub const fn with_credits(self, credits: u32) -> Self {
        Self { credits, ..self }
    }

    /// The same options with this congestion control.
    #[must_use]
    pub const fn with_scheme(self, scheme: Scheme) -> Self {
        Self {
            scheme: Some(scheme),
            ..self
        }
    }

    /// Checks both numbers.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !is_window(self.window) {
            return Err(ConfigError::Window(self.window));
        }
        if !is_credits(self.credits) {
            return Err(ConfigError::Credits(self.credits));
        }
        Ok(())
    }
}

const fn is_window(window: u32) -> bool {
    window.is_power_of_two() && window <= MAX_WINDOW
}

fn is_credits(credits: u32) -> bool {
    (1..=MAX_CREDITS).contains(&credits)
}

fn write_window(f: &mut std::fmt::Formatter<'_>, key: &str, window: u32) -> std::fmt::Result {
    write!(
        f,
        "`{key}` is {window}; use a power of two from 1 to {MAX_WINDOW}"
    )
}

#[cfg(test)]
mod tests;
