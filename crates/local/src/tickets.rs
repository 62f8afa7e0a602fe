//! The tickets of requests that were not answered by the first poll of their futures.
//!
//! Most requests are answered during that poll, through the request itself (`lent.rs`). A ticket
//! is made if the poll ends before the answer, and also if the future rejects, refuses or drops
//! the request, or asks whether it was cancelled. Once the poll has ended, other code has the
//! request, so its ticket is kept here, under a number that belongs to the memory of the request.

use std::cell::{Cell, RefCell};

use dunlin_core::Ticket;

/// The number of no request.
const NONE: u32 = u32::MAX;

/// The tickets of requests, by their numbers.
pub(super) struct Tickets {
    /// The request whose future is polled for the first time, if it is not answered yet.
    first: Cell<u32>,
    /// That request was dropped while the endpoint was in use.
    is_dropped: Cell<bool>,
    kept: RefCell<Vec<Ticket>>,
}

impl Default for Tickets {
    fn default() -> Self {
        Self {
            first: Cell::new(NONE),
            is_dropped: Cell::default(),
            kept: RefCell::default(),
        }
    }
}

impl Tickets {
    /// A number for new memory of requests. Until the memory has another request, this is its
    /// ticket.
    pub(super) fn add(&self, ticket: Ticket) -> u32 {
        let mut kept = self.kept.borrow_mut();
        let number = u32::try_from(kept.len()).expect("fewer than 2^32 requests fit in memory");
        kept.push(ticket);
        number
    }

    /// Notes that the future of this request is polled for the first time.
    #[inline]
    pub(super) fn begin(&self, number: u32) {
        self.first.set(number);
    }

    /// Whether this request is the one whose future is polled for the first time.
    #[inline]
    pub(super) fn is_first(&self, number: u32) -> bool {
        self.first.get() == number
    }

    /// Notes that the request whose future is polled for the first time is answered.
    #[inline]
    pub(super) fn end_first(&self) {
        self.first.set(NONE);
    }

    /// Whether the first poll has ended without an answer.
    #[inline]
    pub(super) fn is_unanswered(&self) -> bool {
        self.first.get() != NONE
    }

    /// Keeps the ticket of the request whose first poll has ended. Returns whether the request was
    /// dropped while the endpoint was in use.
    pub(super) fn keep(&self, ticket: Ticket) -> bool {
        let number = self.first.replace(NONE);
        if let Some(kept) = self.kept.borrow_mut().get_mut(number as usize) {
            *kept = ticket;
        }
        self.is_dropped.take()
    }

    /// The ticket of a request whose first poll has ended.
    pub(super) fn get(&self, number: u32) -> Ticket {
        self.kept.borrow()[number as usize]
    }

    /// The ticket of a request that is dropped while the endpoint is in use; `None` if it is the
    /// request of a first poll, whose end returns it.
    pub(super) fn drop_in_use(&self, number: u32) -> Option<Ticket> {
        if self.is_first(number) {
            self.is_dropped.set(true);
            return None;
        }
        Some(self.get(number))
    }
}
