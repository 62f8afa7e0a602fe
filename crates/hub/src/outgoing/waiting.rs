//! Calls that wait, at the latest until their deadline, for layers to be ready. The channel's
//! thread wakes their tasks, by the board that also has the tasks which wait for a state.

use std::task::Context;

use dunlin_core::{Clock, Nanos};
use dunlin_nexus::TscClock;

use super::Outgoing;
use super::stage::{Now, Refusal};
use crate::error::ChannelError;
use crate::orders::Order;

impl Outgoing {
    /// Makes a task that polls for room wait until the call's deadline. `name` is the task's name
    /// at the channel's board.
    ///
    /// # Errors
    /// The deadline has passed, or the channel's hub has ended. The call is then over.
    pub(crate) fn wait_until(
        &mut self,
        deadline: Nanos,
        name: &mut Option<u64>,
        context: &Context<'_>,
    ) -> Result<(), ChannelError> {
        let board = self.channel.board();
        let is_new = board.sleep(name, deadline, context);
        let why = match board.passed() {
            None => Refusal::Closed,
            Some(passed) if passed.max(TscClock::new().now()) >= deadline => Refusal::Late,
            Some(_) => {
                if is_new {
                    let order = Order::Wait(self.channel.id(), deadline);
                    self.channel.order(order);
                }
                return Ok(());
            }
        };
        self.refuse(why);
        self.end_refused(why)
    }

    /// Ends a call that the channel refused when it was made.
    pub(crate) fn refusal(&mut self) -> Option<ChannelError> {
        match self.stage.now() {
            Now::Refused(why) => self.end_refused::<()>(why).err(),
            _ => None,
        }
    }

    /// Ends the wait of the task with this name.
    pub(crate) fn end_wait(&self, name: u64) {
        self.channel.board().forget(name);
    }
}
