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

    #[inline]
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ChannelError>> {
        Channel::poll_ready(self, context)
    }

    /// Makes the call over this channel. If another channel has made `call`, this copies its
    /// request.
    #[inline]
    fn call(&mut self, call: Outgoing) -> Outgoing {
        match call.is_over(&self.handle) {
            true => call.with_place(self.take_place()),
            false => self.take_over(call),
        }
    }
}

impl Channel {
    /// Makes a call of another channel over this one.
    #[cold]
    #[inline(never)]
    fn take_over(&mut self, call: Outgoing) -> Outgoing {
        let has_place = self.take_place();
        match call.at(&self.handle) {
            Some(copy) => copy.with_place(has_place),
            // The call has been sent, and goes on unchanged.
            None => {
                if has_place {
                    self.handle.places().free();
                }
                call
            }
        }
    }
}
