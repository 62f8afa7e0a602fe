//! The events that a thread has not handled yet. Callers and the functions of its endpoint add
//! them, and `thread.rs` takes them.

use std::sync::Arc;

use dunlin_core::{Done, Nanos, SessionEvent};
use dunlin_nexus::PeerServing;

use crate::figures::Figures;
use crate::letter::Mailbox;
use crate::orders::Orders;

/// The parts of a thread that other threads use.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) mailbox: Mailbox,
    pub(crate) orders: Orders,
}

/// The application state of the endpoint: events that the thread has not handled yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    post: Arc<Post>,
    pub(crate) done: Vec<Done>,
    pub(crate) events: Vec<SessionEvent>,
    /// The services that servers have announced.
    pub(crate) serving: Vec<PeerServing>,
    /// The figures that tools show for this thread.
    pub(crate) figures: Figures,
    /// The time at which the thread must wake up, if it blocks.
    pub(crate) wakeup: Nanos,
    /// While a server drains: the endpoint's usual limit for the time between two questions for a
    /// late answer.
    pub(crate) calm: Option<Nanos>,
}

impl Inbox {
    pub(crate) fn new(post: &Arc<Post>) -> Self {
        Self {
            post: Arc::clone(post),
            done: Vec::new(),
            events: Vec::new(),
            serving: Vec::new(),
            figures: Figures::default(),
            wakeup: Nanos::MAX,
            calm: None,
        }
    }

    /// The time until which the endpoint may block.
    pub(crate) fn limit(&self) -> Nanos {
        // Looking at the mailbox after the bell was reset keeps a wake-up from being lost.
        let Post { mailbox, orders } = &*self.post;
        match mailbox.is_empty() && mailbox.all_are_woken() && !orders.any() {
            true => self.wakeup,
            false => Nanos::ZERO,
        }
    }
}
