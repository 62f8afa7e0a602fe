//! Where the futures live that `Local` polls: those of handlers in slabs of their own type, whose
//! places are used again, so that a request allocates nothing; spawned ones in boxes.

use dunlin_service::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::caller::Caller;
use super::request::OwnedRequest;

/// A future that was spawned.
pub(super) type Spawned = Pin<Box<dyn Future<Output = ()>>>;

/// Futures of one kind. A slot that is empty, or does not exist, is never ready.
pub(super) trait Slab {
    /// Polls the future in this slot; ready: the slot is free.
    fn poll(&mut self, slot: usize, context: &mut Context<'_>) -> Poll<()>;

    /// Drops what is in this slot.
    fn remove(&mut self, slot: usize);
}

/// Futures of the handlers of one type.
pub(super) trait Handlers: Slab {
    /// Makes the future of a request, and says where it is.
    fn begin(&mut self, request: OwnedRequest, caller: Caller) -> usize;
}

/// A handler and its futures.
pub(super) struct Serving<H, F> {
    handler: H,
    slots: Vec<Pin<Box<Option<F>>>>,
    free: Vec<usize>,
}

/// Spawned futures.
#[derive(Default)]
pub(super) struct Boxes {
    slots: Vec<Option<Spawned>>,
    free: Vec<usize>,
}

impl<H, F> Serving<H, F> {
    pub(super) const fn new(handler: H) -> Self {
        Self {
            handler,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<H, F: Future> Slab for Serving<H, F> {
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
        self.free.push(slot);
        Poll::Ready(())
    }

    fn remove(&mut self, slot: usize) {
        if let Some(place) = self.slots.get_mut(slot)
            && place.is_some()
        {
            self.free.push(slot);
            place.set(None);
        }
    }
}

impl<H, F> Handlers for Serving<H, F>
where
    H: FnMut(OwnedRequest, Caller) -> F,
    F: Future<Output = Result<(), Error>>,
{
    fn begin(&mut self, request: OwnedRequest, caller: Caller) -> usize {
        let future = (self.handler)(request, caller);
        if let Some(slot) = self.free.pop() {
            self.slots[slot].set(Some(future));
            return slot;
        }
        self.slots.push(Box::pin(Some(future)));
        // Freeing must never allocate.
        self.free.reserve(self.slots.capacity());
        self.slots.len() - 1
    }
}

impl Boxes {
    pub(super) fn insert(&mut self, future: Spawned) -> usize {
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = Some(future);
            return slot;
        }
        self.slots.push(Some(future));
        self.slots.len() - 1
    }
}

impl Slab for Boxes {
    fn poll(&mut self, slot: usize, context: &mut Context<'_>) -> Poll<()> {
        let Some(Some(future)) = self.slots.get_mut(slot) else {
            return Poll::Pending;
        };
        if future.as_mut().poll(context).is_ready() {
            self.remove(slot);
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn remove(&mut self, slot: usize) {
        if let Some(future) = self.slots.get_mut(slot)
            && future.is_some()
        {
            self.free.push(slot);
            *future = None;
        }
    }
}
