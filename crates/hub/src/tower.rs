//! A channel as a tower service: [`Outgoing`] is both its request and its future, so a layer needs
//! no allocation of ours. `poll_ready` waits for room in the channel.

use std::task::{Context, Poll};

use tower_service::Service;

use crate::channel::Channel;
use crate::error::ChannelError;
use crate::outgoing::{Answer, Outgoing, Permit};

impl Service<Outgoing> for Channel {
    type Response = Answer;
    type Error = ChannelError;
    type Future = Outgoing;

    #[inline]
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ChannelError>> {
        Channel::poll_ready(self, context)
    }

    /// Makes the call over this channel. If another channel has made `call`, this copies its
    /// request.
    #[inline]
    fn call(&mut self, mut call: Outgoing) -> Outgoing {
        let permit = self.reserved.take();
        match call.is_over(&self.handle) {
            true => {
                call.on_room(permit);
                call
            }
            false => self.take_over(call, permit),
        }
    }
}

impl Channel {
    /// Makes a call of another channel over this one.
    #[cold]
    fn take_over(&self, call: Outgoing, permit: Option<Permit>) -> Outgoing {
        match call.at(&self.handle) {
            Some(mut copy) => {
                copy.on_room(permit);
                copy
            }
            // It has been sent.
            None => call,
        }
    }
}
