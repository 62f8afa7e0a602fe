//! A server: a channel to each of its endpoints, its map if it is known, and calls to it.
//!
//! Each endpoint has its own channel, so the others still serve when one is down. A hub's channels
//! share their sessions, so each costs only a few KiB.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dunlin_core::{CallErrorKind, CloseReason, RpcError};
use dunlin_hub::{Answer as Bytes, Channel, ChannelBuilder, ChannelError, State};
use dunlin_service::Error as CallError;
use dunlin_store::Mode;
use dunlin_wire::{ErrorCode, Ran, ReqType};

use super::shared::Shared;
use crate::error::Error;
use crate::fleet::{ServerError, WhenDown};
use crate::wire::{MAP, Map};

/// Bytes of an answer before the value.
pub(super) const HEAD: usize = 32;

#[derive(Debug)]
pub(super) struct Server {
    name: Arc<str>,
    /// Opens channels to the server.
    builder: ChannelBuilder,
    /// The index of the endpoint that is asked first for the map.
    first: u16,
    known: Mutex<Known>,
}

#[derive(Default, Debug)]
struct Known {
    map: Option<Map>,
    /// The mode in the last map, kept even when the map is forgotten.
    mode: Option<Mode>,
    /// The channels, by the endpoints to which they lead: the first endpoint, and those in the last
    /// map.
    channels: BTreeMap<u16, Channel>,
}

/// Why a call, or an operation of several calls, has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    /// A read needs room for this many bytes.
    TooLong(usize),
    /// The endpoint is down: no session with it could be made, or the last one was lost. A write
    /// has not run.
    Down,
    /// Any other reason. The endpoint may be alive, even with [`Error::Unavailable`].
    With(Error),
}

/// The terms of a call.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) endpoint: u16,
    pub(super) is_read: bool,
    pub(super) room: usize,
    pub(super) deadline: Instant,
}

impl Server {
    /// Opens a channel to the endpoint that is asked first for the map.
    pub(super) fn open(
        name: &str,
        builder: ChannelBuilder,
        first: u16,
    ) -> Result<Self, ChannelError> {
        let server = Self {
            name: name.into(),
            builder,
            first,
            known: Mutex::default(),
        };
        server.channel(first)?;
        Ok(server)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn error(&self, error: Error) -> ServerError {
        ServerError::new(Some(Arc::clone(&self.name)), error)
    }

    fn known(&self) -> Option<Map> {
        self.lock().map.clone()
    }

    /// Takes a map. Channels to its endpoints begin to connect. Channels to other endpoints end
    /// once their calls have ended.
    fn learn(&self, map: Map) -> Result<(), ChannelError> {
        let is_used = |endpoint| endpoint == self.first || map.endpoints().any(|it| it == endpoint);
        self.lock()
            .channels
            .retain(|endpoint, _| is_used(*endpoint));
        for endpoint in map.endpoints() {
            self.channel(endpoint)?;
        }
        let mut known = self.lock();
        known.mode = Some(map.mode());
        known.map = Some(map);
        Ok(())
    }

    /// The channel to an endpoint.
    fn channel(&self, endpoint: u16) -> Result<Channel, ChannelError> {
        let mut known = self.lock();
        if let Some(channel) = known.channels.get(&endpoint) {
            return Ok(channel.clone());
        }
        let channel = self.builder.clone().endpoint(endpoint).open()?;
        known.channels.insert(endpoint, channel.clone());
        Ok(channel)
    }

    /// The endpoint to ask for the map: the first one, or, if it has no session, another with a
    /// session, because all have the same map.
    fn endpoint_for_map(&self) -> u16 {
        let known = self.lock();
        let serves = |endpoint: &u16| {
            let channel = known.channels.get(endpoint);
            channel.is_some_and(|it| matches!(it.state().state, State::Ready | State::Degraded))
        };
        let mut all = std::iter::once(&self.first).chain(known.channels.keys());
        all.find(|endpoint| serves(endpoint))
            .copied()
            .unwrap_or(self.first)
    }

    /// Forgets the map if it has this tag. Another task may already have got the next one.
    pub(super) fn forget(&self, tag: u32) {
        self.lock().map.take_if(|map| map.tag() == tag);
    }

    /// The server's mode; `None` if it was never reached.
    pub(super) fn mode(&self) -> Option<Mode> {
        self.lock().mode
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The server's map. Asks for it if it is not known.
    pub(super) async fn map(&self, server: &Server, deadline: Instant) -> Result<Map, Failed> {
        if let Some(map) = server.known() {
            return Ok(map);
        }
        let call = Call {
            endpoint: server.endpoint_for_map(),
            is_read: true,
            room: Map::MAX_SIZE,
            deadline,
        };
        let answer = self.call(server, MAP, b"", call).await?;
        let (map, _) = Map::decode(&answer).map_err(|_| Error::Incompatible)?;
        let learnt = server.learn(map.clone());
        learnt.map_err(|error| failed(&error, true))?;
        Ok(map)
    }

    /// Calls an endpoint of a server. If the operation may wait for a server that is down, a read
    /// whose session has ended waits for the next session; this happens at most as often as
    /// [`Retry`] allows attempts.
    ///
    /// [`Retry`]: dunlin_channel::Retry
    pub(super) async fn call(
        &self,
        server: &Server,
        req_type: ReqType,
        bytes: &[u8],
        call: Call,
    ) -> Result<Bytes, Failed> {
        let waits = self.options().when_down == WhenDown::Wait;
        let channel = server.channel(call.endpoint);
        let channel = channel.map_err(|error| failed(&error, call.is_read))?;
        if !waits && channel.state().state == State::Gone {
            // The first look at a channel does not wait.
            return Err(gone(channel.watch().changed().await.is_none()));
        }
        let mut attempts = self.options().client.retry.attempts;
        loop {
            let left = call.deadline.saturating_duration_since(Instant::now());
            let answer = channel
                .call(req_type, bytes)
                .idempotent(call.is_read)
                .room(call.room)
                .deadline(left)
                .await;
            attempts = attempts.saturating_sub(1);
            match answer {
                Ok(answer) => return Ok(answer),
                // The channel has already repeated it as often as its budget allows.
                Err(error) if waits && call.is_read && attempts > 0 && is_lost(&error) => {}
                Err(error) => return Err(failed(&error, call.is_read)),
            }
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::With(error)
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::TooLong(_) => Self::Incompatible,
            Failed::Down => Self::Unavailable,
            Failed::With(error) => error,
        }
    }
}

/// Whether the session of a call ended before its answer arrived.
fn is_lost(error: &ChannelError) -> bool {
    match error {
        ChannelError::Call {
            error: CallError::Rpc(error),
            ..
        } => matches!(error, RpcError::PeerFailed(_) | RpcError::SessionClosed(..)),
        _ => false,
    }
}

/// Why a call cannot be made over a channel in the state [`State::Gone`]. The end of the hub shows
/// nothing about the server.
const fn gone(has_hub_ended: bool) -> Failed {
    match has_hub_ended {
        true => Failed::With(Error::Ended),
        false => Failed::Down,
    }
}

/// Whether a call failed because the hub has ended. [`ChannelError::Hub`] also means that: the
/// server's first channel keeps the hub of the process, so a new hub is only asked for, and cannot
/// be started, after that one has ended.
fn has_ended(error: &ChannelError) -> bool {
    match error {
        ChannelError::Closed | ChannelError::Hub(_) => true,
        ChannelError::Call {
            error: CallError::Rpc(RpcError::SessionClosed(reason, _)),
            ..
        } => *reason == CloseReason::EndpointClosed,
        _ => false,
    }
}

/// Whether a call failed because its channel had no session, or lost it.
fn is_down(error: &ChannelError) -> bool {
    match error {
        ChannelError::NoServer(_) => true,
        ended if has_ended(ended) => false,
        ChannelError::Call { error, .. } => error.is_closed(),
        _ => false,
    }
}

/// The reason why an operation whose call has failed has no result.
fn failed(error: &ChannelError, is_read: bool) -> Failed {
    let may_run_again = error.ran() == Ran::No || is_read;
    Failed::With(match error {
        error if is_down(error) && may_run_again => return Failed::Down,
        error if has_ended(error) && may_run_again => Error::Ended,
        ChannelError::Call {
            error: CallError::Rpc(error),
            ..
        } => match error {
            RpcError::ResponseTooLarge { size } if is_read => {
                return Failed::TooLong(*size as usize);
            }
            RpcError::Rejected(ErrorCode::UNDECODABLE | ErrorCode::UNKNOWN_TYPE, _) => {
                Error::Incompatible
            }
            RpcError::TooLarge { .. }
            | RpcError::Rejected(ErrorCode::TOO_LARGE | ErrorCode::RESPONSE_TOO_LARGE, _) => {
                Error::MessageTooLong
            }
            RpcError::DeadlinePassed(_) if is_read => Error::DeadlinePassed,
            _ if may_run_again => Error::Unavailable,
            _ => Error::Unknown,
        },
        ChannelError::Call {
            error: CallError::Refused(CallErrorKind::TooLarge { .. }),
            ..
        } => Error::MessageTooLong,
        ChannelError::Full => Error::NoBuffer,
        _ if may_run_again => Error::Unavailable,
        _ => Error::Unknown,
    })
}

#[cfg(test)]
mod tests;
