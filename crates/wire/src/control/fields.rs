//! The identities and reasons in control messages (rules C2, C4 to C6 and C9).
//!
//! Identities are opaque numbers. Reasons are closed sets, so the side that reads a number without
//! a meaning gets an error.

use super::codec::{Reader, Writer};
use super::{ControlError, Field};

/// Names one boot of one host: two processes with the same boot id share a kernel (rule C3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BootId(pub [u8; 16]);

/// Random number that a process draws when it starts, so that peers can distinguish it from an
/// earlier process with the same address (rule C8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Incarnation(pub u64);

/// Optional abilities, one bit each. Two processes use the abilities that both have, and ignore
/// unknown bits (rule C2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Features(pub u32);

impl Features {
    /// The process answers inquiries (rule C11).
    pub const INQUIRY: Self = Self(1);
    /// The process knows the refusal of a foreign address (rule C12).
    pub const FOREIGN: Self = Self(2);
    /// The process repeats nonces (rule C3).
    pub const NONCE: Self = Self(4);
    /// The process answers challenges (rule C13).
    pub const PROOF: Self = Self(8);
    /// The process obeys the rules of error codes (rule W13).
    pub const CODES: Self = Self(16);
    /// The process understands announcements of services (rule C14).
    pub const SERVING: Self = Self(32);
    /// The process understands announcements of the endpoint that answers health (rule C15).
    pub const HEALTH: Self = Self(64);

    /// The abilities that both have.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `other` has no ability that these features lack.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Names one attempt to connect. The client chooses it and keeps it when it repeats the attempt
/// (rule C4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AttemptId(pub u64);

/// Names one endpoint, over all processes and restarts: random, drawn when it is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EndpointUid(pub [u8; 16]);

/// The endpoint of a process that a connect asks for: its index in the nexus (rule C4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EndpointIndex(pub u16);

impl EndpointIndex {
    /// Any endpoint that the nexus chooses; the nexus spreads sessions over its endpoints.
    pub const ANY: Self = Self(u16::MAX);
}

/// Why a connect was refused (rule C5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RefuseCode {
    /// No endpoint has the requested index, or the process has no endpoint yet. Worth a retry.
    NoSuchEndpoint = 1,
    /// The endpoint has its maximum number of sessions, or has granted all of its strict credits.
    TooManySessions = 2,
    /// The endpoint can use none of the offered transports.
    NoCommonTransport = 3,
    /// The processes have no version in common.
    Version = 4,
    /// The endpoint cannot answer now. Worth a retry.
    Busy = 5,
    /// A parameter is within its limits but not acceptable here; the detail names it.
    BadParameters = 6,
    /// The endpoint or its process is closing.
    Closing = 7,
    /// The peer's packets would go to an address that is neither its own nor allowed (rule C12).
    ForeignAddress = 8,
    /// The peer has not proven that packets reach it at an address that is not its own (rule C13).
    /// Worth a retry.
    UnprovenAddress = 9,
}

/// Why a session was reset (rule C6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ResetReason {
    /// The sender has no session with the number and token that the receiver named.
    UnknownSession = 1,
    /// The endpoint that owned the session was closed.
    EndpointClosed = 2,
    /// The sender had declared the receiver failed (rule C8).
    DeclaredFailed = 3,
    /// The session's packets broke the protocol, and the session cannot continue.
    Protocol = 4,
}

/// Why a connection is closed (rule C9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum GoodbyeReason {
    /// The process is closing.
    Shutdown = 1,
    /// The processes have no version in common.
    Version = 2,
    /// The receiver sent bytes that are not a control message, or a message at the wrong time.
    BadMessage = 3,
    /// The sender has declared the receiver failed (rule C8).
    DeclaredFailed = 4,
    /// The sender has its maximum number of connections.
    TooManyConnections = 5,
    /// Another connection between the two processes replaces this one: the UNIX socket (rule C3).
    Replaced = 6,
    /// The receiver did not send Hello in time.
    Silent = 7,
}

impl RefuseCode {
    pub(super) const ALL: [Self; 9] = [
        Self::NoSuchEndpoint,
        Self::TooManySessions,
        Self::NoCommonTransport,
        Self::Version,
        Self::Busy,
        Self::BadParameters,
        Self::Closing,
        Self::ForeignAddress,
        Self::UnprovenAddress,
    ];

    /// The code in a few words, for messages to people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSuchEndpoint => "no such endpoint",
            Self::TooManySessions => "too many sessions",
            Self::NoCommonTransport => "no common transport",
            Self::Version => "no common version",
            Self::Busy => "busy",
            Self::BadParameters => "bad parameters",
            Self::Closing => "closing",
            Self::ForeignAddress => {
                "an address for packets is neither the peer's own nor one of allow_peers"
            }
            Self::UnprovenAddress => "packets to the advertised address got no proof in time",
        }
    }

    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        numbered(&Self::ALL, body.u8(Field::Code)?, Field::Code)
    }

    pub(super) fn write(self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u8(self as u8)
    }
}

impl core::fmt::Display for RefuseCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl ResetReason {
    pub(super) const ALL: [Self; 4] = [
        Self::UnknownSession,
        Self::EndpointClosed,
        Self::DeclaredFailed,
        Self::Protocol,
    ];

    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        numbered(&Self::ALL, body.u8(Field::Reason)?, Field::Reason)
    }

    pub(super) fn write(self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u8(self as u8)
    }
}

impl GoodbyeReason {
    pub(super) const ALL: [Self; 7] = [
        Self::Shutdown,
        Self::Version,
        Self::BadMessage,
        Self::DeclaredFailed,
        Self::TooManyConnections,
        Self::Replaced,
        Self::Silent,
    ];

    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        numbered(&Self::ALL, body.u8(Field::Reason)?, Field::Reason)
    }

    pub(super) fn write(self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u8(self as u8)
    }
}

/// The value with this number. `all` lists the values from number 1 without a gap.
fn numbered<T: Copy>(all: &[T], number: u8, field: Field) -> Result<T, ControlError> {
    let index = usize::from(number).checked_sub(1);
    index
        .and_then(|i| all.get(i))
        .copied()
        .ok_or(ControlError::Value(field))
}
