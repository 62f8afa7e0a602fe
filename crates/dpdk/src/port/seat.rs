//! The place of an endpoint at a device: its port of UDP, its inbox, and perhaps a queue of its
//! own.
//!
//! Invariant: the endpoint leaves the device when its [`Seat`], which both halves share, is
//! dropped.

use std::sync::Arc;

use super::Port;
use crate::inbox::Inbox;
use crate::rules::Own;

/// The place of an endpoint.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) port: &'static Port,
    pub(crate) inbox: Arc<Inbox>,
    /// `None` if the endpoint shares a queue with others.
    pub(crate) own: Option<Own>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.own = None;
        let number = self.inbox.home().address.port();
        self.port.seats.leave(number);
        // A thread that found the inbox earlier may still add a packet, which is freed with the
        // inbox.
        self.inbox.close(&self.port.pool());
    }
}
