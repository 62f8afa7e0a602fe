//! A channel as a tower service: [`Outgoing`] is both its request and its future, so a layer needs
//! no allocation of ours. `poll_ready` waits for room in the channel.

use std::task::{Context, Poll};

use tower_service::Service;

use crate::channel::Channel;
use crate::error::ChannelError;
use crate::outgoing::{Answer, Outgoing};

impl Service<Outgoing> for Channel {
    type Response = Answer;
    type Error = ChannelError;
    type Future = Outgoing;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ChannelError>> {
        Channel::poll_ready(self, context)
    }

    /// Makes the call over this channel. If another channel has made `call`, this copies its
    /// request.
    fn call(&mut self, call: Outgoing) -> Outgoing {
        let permit = self.reserved.take();
        let call = match call.is_over(&self.handle) {
            true => call,
            false => call.at(&self.handle).unwrap_or(call),
        };
        match permit {
            Some(permit) => call.permit(permit),
            None => call,
        }
    }
}
