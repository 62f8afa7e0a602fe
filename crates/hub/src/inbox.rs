//! Where a thread finds what came: from callers, and from its endpoint. Callers and the endpoint's
//! functions fill it, `thread.rs` empties it.

use std::sync::Arc;

use dunlin_core::{Done, Nanos, SessionEvent};
use dunlin_nexus::PeerServing;

use crate::letter::Mailbox;
use crate::orders::Orders;

/// The parts of a thread that others use.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) mailbox: Mailbox,
    pub(crate) orders: Orders,
}

/// The state of the endpoint: what came and was not looked at.
#[derive(Debug)]
pub(crate) struct Inbox {
    post: Arc<Post>,
    pub(crate) done: Vec<Done>,
    pub(crate) events: Vec<SessionEvent>,
    /// The services that servers have announced.
    pub(crate) serving: Vec<PeerServing>,
    /// When the thread must not block any more.
    pub(crate) wakeup: Nanos,
}

impl Inbox {
    pub(crate) fn new(post: &Arc<Post>) -> Self {
        Self {
            post: Arc::clone(post),
            done: Vec::new(),
            events: Vec::new(),
            serving: Vec::new(),
            wakeup: Nanos::MAX,
        }
    }

    /// The time until which the endpoint may block.
    pub(crate) fn limit(&self) -> Nanos {
        // The look at the mailbox after the bell was taken, without which a wake-up is lost.
        match self.post.mailbox.is_empty() && !self.post.orders.any() {
            true => self.wakeup,
            false => Nanos::ZERO,
        }
    }
}
