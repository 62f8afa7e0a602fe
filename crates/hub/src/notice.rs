//! Typed notifications over a channel: [`Notice`].

use std::convert::Infallible;
use std::hash::Hash;
use std::marker::PhantomData;

use dunlin_service::{Context as Served, Failure, MetaError, Method};

use crate::channel::Channel;
use crate::error::ChannelError;
use crate::outgoing::Outgoing;
use crate::typed::outgoing;

/// A typed notification with options, which [`Self::send`] sends.
#[must_use = "a notification is sent by `send`"]
pub struct Notice<M: Method> {
    /// `None`: the value cannot be encoded.
    call: Option<Outgoing>,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Notice<M> {
    pub(crate) fn new(channel: &Channel, value: &M::Request) -> Self {
        Self {
            call: outgoing::<M>(channel, value),
            method: PhantomData,
        }
    }

    /// Sends this key and value with the request: [`Context::metadata`](dunlin_service::Context)
    /// shows them to the handler.
    ///
    /// # Errors
    /// See [`MetaError`].
    pub fn meta(mut self, key: &str, value: &str) -> Result<Self, MetaError> {
        self.call = self.call.map(|call| call.meta(key, value)).transpose()?;
        Ok(self)
    }

    /// For a notification that a handler sends to serve a request: it belongs to the same trace.
    pub fn under(mut self, context: &Served<'_>) -> Self {
        self.call = self.call.map(|call| call.under(context));
        self
    }

    /// The key whose server gets the notification: see [`Outgoing::hash`].
    pub fn hash<K: Hash + ?Sized>(mut self, key: &K) -> Self {
        self.call = self.call.map(|call| call.hash(key));
        self
    }

    /// Sends the notification to endpoint `index` of the server that is picked.
    pub fn endpoint(mut self, index: u16) -> Self {
        self.call = self.call.map(|call| call.endpoint(index));
        self
    }

    /// Sends the notification, and does not wait: see [`Channel::notify`].
    ///
    /// # Errors
    /// The value cannot be encoded, or the channel refuses the request.
    pub fn send(self) -> Result<(), Failure<Infallible, ChannelError>> {
        let call = self.call.ok_or(Failure::BadValue)?;
        call.notify().map_err(Failure::Call)
    }
}

impl<M: Method> std::fmt::Debug for Notice<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notice")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
