//! The errors of channels, of hubs, and of calls over channels.

use std::fmt;
use std::io;

use dunlin_channel::{Failure, Fault, Why};
use dunlin_control::ConnectFailure;
use dunlin_core::{CallErrorKind, CloseReason, OpenError, RpcError};
use dunlin_nexus::{EndpointError, NexusError};
use dunlin_service::{Error, MetaError};
use dunlin_wire::Ran;

/// The reason why a call over a channel has no answer, or why a channel could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelError {
    /// No server was ready in time. The call has not run.
    NoServer(Reasons),
    /// The channel has as many calls as it may have. This one has not run.
    Full,
    /// An address is not a host and a port.
    Address(String),
    /// The channel has neither an address nor a resolver.
    NoAddress,
    /// The option `queue` of the channel is 0, so it could make no call.
    NoQueue,
    /// The option `attempts` of the channel is 0, so it could make no call.
    NoAttempt,
    /// The factor of the channel's pauses (`channel.pause.factor`) is below 2, so they would not
    /// grow.
    NoGrowth,
    /// The channel hedges, but may make only one attempt at a call, so it would never hedge.
    NeverHedges,
    /// A call is for the endpoint 65535, which no server has. It has not run.
    Endpoint,
    /// The metadata of a call cannot be sent. It has not run.
    Meta(MetaError),
    /// The hub has ended. The call has not run.
    Closed,
    /// The hub of the process could not be started.
    Hub(Box<HubError>),
    /// The call failed, on its way or at the server, and is not repeated.
    Call {
        /// The last attempt's error.
        error: Error,
        /// Whether a handler ran, in any of the attempts.
        ran: Ran,
    },
}

/// Each address of a channel with its last error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reasons(pub Vec<(String, Option<AddressError>)>);

/// The last error of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// No session could be made.
    Connect(ConnectFailure),
    /// A session was lost.
    Session(CloseReason),
    /// This side could not open a session.
    Local(OpenError),
    /// The server drains.
    Draining,
    /// No look-up of the name has found an address.
    Name,
}

/// The part of a hub that could not be started, with its error.
#[derive(Debug)]
#[non_exhaustive]
pub enum HubError {
    /// Its nexus.
    Nexus(NexusError),
    /// One of its endpoints.
    Endpoint(EndpointError),
    /// One of its threads.
    Thread(io::Error),
}

impl ChannelError {
    /// Whether a handler ran. `No` is certain, so any call may then be made again.
    pub const fn ran(&self) -> Ran {
        match self {
            Self::Call { ran, .. } => *ran,
            Self::NoServer(_)
            | Self::Full
            | Self::Address(_)
            | Self::NoAddress
            | Self::NoQueue
            | Self::NoAttempt
            | Self::NoGrowth
            | Self::NeverHedges
            | Self::Endpoint
            | Self::Meta(_)
            | Self::Closed
            | Self::Hub(_) => Ran::No,
        }
    }

    /// Notes whether an earlier attempt of the same call ran, for code that repeats calls: the
    /// error of the last attempt concerns only that one. Afterwards [`Self::ran`] answers for all
    /// attempts. An error that is only for calls that have not run becomes [`Self::Call`] if an
    /// earlier attempt may have run.
    pub fn on_earlier(&mut self, earlier: Ran) {
        let joined = self.ran().join(earlier);
        if joined == self.ran() {
            return;
        }
        let error = match self {
            Self::Call { error, .. } => *error,
            Self::Full => Error::Refused(CallErrorKind::Overloaded),
            Self::Closed => Error::gone(joined),
            _ => Error::NoSession,
        };
        *self = Self::Call { error, ran: joined };
    }

    /// The end of a call whose thread has panicked.
    pub(crate) const fn abandoned() -> Self {
        Self::Call {
            error: Error::gone(Ran::Unknown),
            ran: Ran::Unknown,
        }
    }

    /// The end of a call as its caller sees it. `reasons` is called only if no server was ready.
    pub(crate) fn of(failure: Failure, reasons: impl FnOnce() -> Reasons) -> Self {
        let Failure { why, ran } = failure;
        let error = match why {
            Why::NoServer if matches!(ran, Ran::No) => return Self::NoServer(reasons()),
            Why::Closed if matches!(ran, Ran::No) => return Self::Closed,
            Why::NoServer => Error::NoSession,
            Why::Closed => Error::gone(ran),
            Why::DeadlinePassed => Error::Rpc(RpcError::DeadlinePassed(ran)),
            Why::Attempt(Fault::NotTaken(kind)) => Error::Refused(kind),
            Why::Attempt(Fault::NotSent(error) | Fault::Sent(error)) => Error::Rpc(error),
        };
        Self::Call { error, ran }
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer(reasons) => write!(f, "no server is ready: {reasons}"),
            Self::Full => f.write_str("the channel has too many calls; wait for one to end"),
            Self::Address(address) => write!(f, "{address:?} is not a host and a port"),
            Self::NoAddress => {
                f.write_str("the channel has no address and no resolver; give it at least one")
            }
            Self::NoQueue => f.write_str(
                "the channel's `queue` is 0, so every call would fail with `Full`; set `queue` to \
                 1 or more, or leave it out",
            ),
            Self::NoAttempt => f.write_str(
                "the channel's `retry.attempts` is 0, but the first attempt counts; set it to 1 \
                 for calls that are not repeated",
            ),
            Self::NoGrowth => f.write_str(
                "the `factor` of the channel's `retry.pause` is below 2; for pauses that do not \
                 grow, set it to 2 and `first` to `most`",
            ),
            Self::NeverHedges => f.write_str(
                "the channel has both `hedge` and `retry.attempts` = 1, but a hedge is a second \
                 attempt, so no call would have one; set `retry.attempts` to 2 or more, or leave \
                 `hedge` out",
            ),
            Self::Endpoint => f.write_str("no server has an endpoint 65535"),
            Self::Meta(error) => error.fmt(f),
            Self::Closed => f.write_str("the hub of the channel has ended"),
            Self::Hub(error) => error.fmt(f),
            Self::Call { error, ran } => {
                let ran = match ran {
                    Ran::No => "has not run",
                    Ran::Yes => "has run",
                    Ran::Unknown => "may have run",
                };
                write!(f, "{error} (the call {ran})")
            }
        }
    }
}

impl std::error::Error for ChannelError {}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (address, error)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match error {
                Some(error) => write!(f, "{comma}{address} ({error})")?,
                None => write!(f, "{comma}{address} (no answer yet)")?,
            }
        }
        if self.0.is_empty() {
            f.write_str("its resolver has found no address")?;
        }
        Ok(())
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(failure) => failure.fmt(f),
            Self::Session(reason) => reason.fmt(f),
            Self::Local(error) => write!(f, "this side cannot open a session: {error}"),
            Self::Draining => f.write_str("the server shuts down"),
            Self::Name => f.write_str("the name has no address"),
        }
    }
}

impl fmt::Display for HubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nexus(error) => error.fmt(f),
            Self::Endpoint(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "a thread of the hub cannot be started: {error}"),
        }
    }
}

impl std::error::Error for HubError {}

impl From<MetaError> for ChannelError {
    fn from(error: MetaError) -> Self {
        Self::Meta(error)
    }
}

impl From<HubError> for ChannelError {
    fn from(error: HubError) -> Self {
        Self::Hub(Box::new(error))
    }
}

#[cfg(test)]
mod tests;
