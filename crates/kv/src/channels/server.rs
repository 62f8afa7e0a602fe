//! A server: its channel, its map as far as it is known, and calls of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dunlin_core::RpcError;
use dunlin_hub::{Answer as Bytes, Channel, ChannelError, State};
use dunlin_service::Error as CallError;
use dunlin_store::Mode;
use dunlin_wire::{ErrorCode, Ran, ReqType};

use super::Shared;
use crate::client::Item;
use crate::error::Error;
use crate::fleet::{ServerError, WhenDown};
use crate::wire::{FoundItem, MAP, Map};

/// Bytes of an answer before the value.
pub(super) const HEAD: usize = 32;

#[derive(Debug)]
pub(super) struct Server {
    name: Arc<str>,
    channel: Channel,
    known: Mutex<Known>,
}

#[derive(Default, Debug)]
struct Known {
    map: Option<Map>,
    /// The mode of the last map, even if that is forgotten.
    mode: Option<Mode>,
}

/// Why a call has no answer.
pub(super) enum Failed {
    /// A read needs room for this many bytes.
    TooLong(usize),
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
    pub(super) fn new(name: &str, channel: Channel) -> Self {
        Self {
            name: name.into(),
            channel,
            known: Mutex::default(),
        }
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

    fn learn(&self, map: Map) {
        let mode = Some(map.mode());
        *self.lock() = Known {
            map: Some(map),
            mode,
        };
    }

    /// Forgets the map with this tag, unless another task has asked for the next one already.
    pub(super) fn forget(&self, tag: u32) {
        self.lock().map.take_if(|map| map.tag() == tag);
    }

    /// Whether it may drop items; `None`: it was never reached.
    pub(super) fn mode(&self) -> Option<Mode> {
        self.lock().mode
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The server's map, which is asked for if it is not known.
    pub(super) async fn map(&self, server: &Server, deadline: Instant) -> Result<Map, Error> {
        if let Some(map) = server.known() {
            return Ok(map);
        }
        let call = Call {
            endpoint: self.options.client.first_endpoint,
            is_read: true,
            room: Map::MAX_SIZE,
            deadline,
        };
        match self.call(server, MAP, b"", call).await {
            Ok(answer) => {
                let (map, _) = Map::decode(&answer).map_err(|_| Error::Incompatible)?;
                server.learn(map.clone());
                Ok(map)
            }
            Err(Failed::TooLong(_)) => Err(Error::Incompatible),
            Err(Failed::With(error)) => Err(error),
        }
    }

    pub(super) async fn call(
        &self,
        server: &Server,
        req_type: ReqType,
        bytes: &[u8],
        call: Call,
    ) -> Result<Bytes, Failed> {
        let waits = self.options.when_down == WhenDown::Wait;
        if !waits && server.channel.state().state == State::Gone {
            return Err(Failed::With(Error::Unavailable));
        }
        let left = call.deadline.saturating_duration_since(Instant::now());
        let answer = server
            .channel
            .call(req_type, bytes)
            .endpoint(call.endpoint)
            .idempotent(call.is_read)
            .room(call.room)
            .deadline(left)
            .await;
        answer.map_err(|error| failed(&error, call.is_read))
    }
}

pub(super) fn owned(item: &FoundItem<'_>) -> Item {
    Item {
        flags: item.flags,
        version: item.version,
        lifetime: item.lifetime,
        value: item.value.to_vec(),
    }
}

/// The error of an operation whose call has failed.
fn failed(error: &ChannelError, is_read: bool) -> Failed {
    Failed::With(match error {
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
            error if error.ran() == Ran::No || is_read => Error::Unavailable,
            _ => Error::Unknown,
        },
        ChannelError::Full => Error::NoBuffer,
        error if error.ran() == Ran::No || is_read => Error::Unavailable,
        _ => Error::Unknown,
    })
}
