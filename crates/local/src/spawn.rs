//! The futures of handlers. Each request type has a slab for them, and its places are reused, so
//! that a request allocates nothing.

use std::pin::Pin;
use std::task::{Context, Poll};

use dunlin_service::Error;

use crate::caller::Caller;
use crate::request::OwnedRequest;

/// The futures of the handlers of one type. Polling an empty place is never ready.
pub(super) trait Handlers {
    /// Makes the future of a request and polls it for the first time. The place is empty: an
    /// existing one, or the one after the last.
    fn begin(
        &mut self,
        slot: usize,
        request: OwnedRequest,
        caller: Caller,
        context: &mut Context<'_>,
    ) -> Poll<()>;

    /// Polls the future in this place. If it is ready, the place is empty from here on.
    fn poll(&mut self, slot: usize, context: &mut Context<'_>) -> Poll<()>;

    /// Drops the future in this place. Returns false if the place is empty.
    fn remove(&mut self, slot: usize) -> bool;
}

/// A handler and its futures.
pub(super) struct Serving<H, F> {
    handler: H,
    slots: Vec<Pin<Box<Option<F>>>>,
}

impl<H, F> Serving<H, F> {
    pub(super) const fn new(handler: H) -> Self {
        Self {
            handler,
            slots: Vec::new(),
        }
    }
}

impl<H, F> Handlers for Serving<H, F>
where
    H: FnMut(OwnedRequest, Caller) -> F,
    F: Future<Output = Result<(), Error>>,
{
    fn begin(
        &mut self,
        slot: usize,
        request: OwnedRequest,
        caller: Caller,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let future = (self.handler)(request, caller);
        match self.slots.get_mut(slot) {
            Some(place) => place.set(Some(future)),
            None => self.slots.push(Box::pin(Some(future))),
        }
        self.poll(slot, context)
    }

    #[inline]
    fn poll(&mut self, slot: usize, context: &mut Context<'_>) -> Poll<()> {
        let Some(place) = self.slots.get_mut(slot) else {
            return Poll::Pending;
        };
        let Some(future) = place.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        if future.poll(context).is_pending() {
            return Poll::Pending;
        }
        place.set(None);
        Poll::Ready(())
    }

    fn remove(&mut self, slot: usize) -> bool {
        let Some(place) = self.slots.get_mut(slot) else {
            return false;
        };
        let was_there = place.is_some();
        place.set(None);
        was_there
    }
}
