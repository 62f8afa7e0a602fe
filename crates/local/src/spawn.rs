//! The futures of handlers. Each request type has places for them, which are used again and again,
//! so a request allocates nothing. A future is made in its place and polled there.
//!
//! All polls of a handler's future, the first and the later ones, are one call in one function,
//! because only then does the compiler inline the future.

use std::pin::Pin;
use std::task::Context;

use dunlin_service::Error;

use crate::caller::Caller;
use crate::request::{OwnedRequest, Parts};

/// The futures of the handlers of one type.
pub(super) trait Handlers {
    /// Adds an empty place, with the next number.
    fn add_place(&mut self);

    /// Makes the future of `arrived` in this place, if a request has arrived, and polls the place's
    /// future. Returns whether that future is over; then, the place is empty. An empty place is
    /// never over.
    fn run(&mut self, slot: usize, arrived: Option<Box<Parts>>, context: &mut Context<'_>) -> bool;

    /// Whether there is a future in this place.
    fn has(&self, slot: usize) -> bool;

    /// Drops the future in this place. Nothing happens if the place is empty.
    fn remove(&mut self, slot: usize);
}

/// A handler and its futures.
pub(super) struct Serving<H, F> {
    handler: H,
    places: Vec<Pin<Box<Option<F>>>>,
}

impl<H, F> Serving<H, F> {
    pub(super) const fn new(handler: H) -> Self {
        Self {
            handler,
            places: Vec::new(),
        }
    }
}

impl<H, F> Handlers for Serving<H, F>
where
    H: FnMut(OwnedRequest, Caller) -> F,
    F: Future<Output = Result<(), Error>>,
{
    fn add_place(&mut self) {
        self.places.push(Box::pin(None));
    }

    fn run(&mut self, slot: usize, arrived: Option<Box<Parts>>, context: &mut Context<'_>) -> bool {
        let Some(place) = self.places.get_mut(slot) else {
            return false;
        };
        let mut place = place.as_mut();
        if let Some(parts) = arrived {
            let request = OwnedRequest::of(parts);
            let caller = Caller::new(request.shared_state());
            place.set(Some((self.handler)(request, caller)));
        }
        let Some(future) = place.as_mut().as_pin_mut() else {
            return false;
        };
        let is_over = future.poll(context).is_ready();
        if is_over {
            place.set(None);
        }
        is_over
    }

    fn has(&self, slot: usize) -> bool {
        self.places.get(slot).is_some_and(|place| place.is_some())
    }

    fn remove(&mut self, slot: usize) {
        if let Some(place) = self.places.get_mut(slot) {
            place.set(None);
        }
    }
}
