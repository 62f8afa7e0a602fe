//! The mailbox between an endpoint and an executor, with flags that tell each side that the other
//! one is gone.
//!
//! Handlers use their slots until they end, on any thread. So the mailbox closes only when the
//! dispatcher and the requests of all handlers are gone: they share one [`Owner`], whose drop
//! closes it. If the dispatcher goes first, new requests are refused from then on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use dunlin_mailbox::{Bell, Mailbox, Slot, Wakeup};

use crate::letter::Letter;

#[derive(Debug)]
pub(crate) struct Desk {
    mailbox: Mailbox<Letter, Wakeup>,
    /// The dispatcher is gone.
    is_stopped: AtomicBool,
    /// The endpoint is gone.
    is_over: AtomicBool,
}

/// The executor's side of a desk, which the dispatcher and all requests of handlers share.
#[derive(Debug)]
pub(crate) struct Owner(Arc<Desk>);

impl Desk {
    /// A desk for at most `limit` requests.
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::new(Wakeup::default(), limit),
            is_stopped: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    pub(crate) const fn mailbox(&self) -> &Mailbox<Letter, Wakeup> {
        &self.mailbox
    }

    /// Whether the dispatcher is gone, so that a new request would reach no handler.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Ends the posted requests if the dispatcher is gone. The endpoint calls this after each
    /// request that it posts, because the dispatcher may have ended since the endpoint checked
    /// [`Self::is_stopped`].
    pub(crate) fn end_if_stopped(&self) {
        if self.is_stopped() {
            self.mailbox.end_posted();
        }
    }

    /// Wakes the dispatcher.
    pub(crate) fn ring(&self) {
        self.mailbox.bell().ring();
    }

    /// The endpoint is gone, with all its requests: wakes the dispatcher, which then ends.
    pub(crate) fn on_over(&self) {
        self.is_over.store(true, Ordering::Release);
        self.ring();
    }

    /// Frees a slot whose call is over.
    pub(crate) fn release(&self, slot: Slot) {
        self.mailbox.with(slot, Letter::clear);
        self.mailbox.release(slot);
    }
}

impl Owner {
    pub(crate) fn new(desk: &Arc<Desk>) -> Arc<Self> {
        Arc::new(Self(Arc::clone(desk)))
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.0
    }

    /// Registers the dispatcher's task; returns whether the endpoint is gone.
    pub(crate) fn listen(&self, dispatcher: &Waker) -> bool {
        self.0.mailbox.bell().register(dispatcher);
        self.0.is_over.load(Ordering::Acquire)
    }

    /// The dispatcher ends. Requests that it has not taken end without a handler.
    pub(crate) fn on_stopped(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.mailbox.end_posted();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.mailbox.close();
    }
}

#[cfg(test)]
mod tests;
