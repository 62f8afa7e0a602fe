//! Typed notifications on a session: [`Notice`].

use std::convert::Infallible;

use dunlin_core::Session;
use dunlin_wire::ReqType;

use crate::context::Context;
use crate::error::Failure;
use crate::frame::Front;
use crate::link::{Link, encoded};
use crate::meta::{Meta, MetaError};
use crate::method::Method;
use crate::under::trace_under;

/// A typed notification with options, which [`Self::send`] sends.
#[must_use = "a notification is sent by `send`"]
pub struct Notice<'a, L: Link, M: Method> {
    link: &'a L,
    session: Session,
    value: &'a M::Request,
    /// `None`: the notification has no metadata.
    meta: Option<Meta>,
}

impl<'a, L: Link, M: Method> Notice<'a, L, M> {
    /// Prepares a notification by this method.
    pub const fn new(link: &'a L, session: Session, value: &'a M::Request) -> Self {
        Self {
            link,
            session,
            value,
            meta: None,
        }
    }

    /// Sends this key and value with the request: [`Context::metadata`] shows them to the handler.
    ///
    /// # Errors
    /// See [`MetaError`].
    pub fn meta(mut self, key: &str, value: &str) -> Result<Self, MetaError> {
        self.meta.get_or_insert_default().add(key, value)?;
        Ok(self)
    }

    /// For a notification that a handler sends to serve a request: it belongs to the same trace.
    pub fn under(mut self, context: &Context<'_>) -> Self {
        if trace_under(context).is_some() {
            self.meta.get_or_insert_default().under(context);
        }
        self
    }

    /// Issues the notification, and does not wait for its end.
    ///
    /// # Errors
    /// If the value cannot be encoded, or the request is refused.
    pub fn send(self) -> Result<(), Failure<Infallible>> {
        let front = match &self.meta {
            None => Front::new(None),
            Some(meta) => Front::with(None, meta),
        };
        let request = encoded::<L, M>(self.link, self.value, &front)?;
        let req_type = front.type_of(ReqType(M::NUMBER));
        let issued = self.link.notify(self.session, req_type, request);
        issued.map_err(|failed| failed.into().into())
    }
}

impl<L: Link, M: Method> std::fmt::Debug for Notice<'_, L, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notice")
            .field("method", &M::NAME)
            .finish_non_exhaustive()
    }
}
