//! One request on the endpoint's side: passes the request to the executor and waits until the
//! request has ended. Dropping it gives the request up.

use std::task::{Context, Poll};

use dunlin_core::Nanos;
use dunlin_mailbox::Slot;

use crate::burst::{Bursts, Leader};
use crate::desk::Desk;
use crate::letter::{Arrived, Letter};

#[must_use = "a request that is not polled is not passed on"]
pub(crate) struct Call<'a> {
    desk: &'a Desk,
    slot: Slot,
    stage: Stage,
    /// This request is the first of its burst.
    leader: Option<Leader<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Held,
    Posted,
    Ended,
}

impl<'a> Call<'a> {
    /// Takes a slot. `None`: all slots are in use.
    pub(crate) fn hold(desk: &'a Desk) -> Option<Self> {
        let slot = desk.mailbox().hold()?;
        Some(Self {
            desk,
            slot,
            stage: Stage::Held,
            leader: None,
        })
    }

    /// Puts a request into the slot.
    pub(crate) fn with_request(self, request: Arrived) -> Self {
        self.with(|letter| letter.on_request(request));
        self
    }

    /// Reads or writes the slot, which belongs to the endpoint's side before the first poll and
    /// after the end.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut Letter) -> R) -> R {
        self.desk.mailbox().with(self.slot, run)
    }

    /// Passes the request on, and waits until it has ended. `now` reads the endpoint's clock.
    pub(crate) fn poll(
        &mut self,
        bursts: &'a Bursts,
        now: impl FnOnce() -> Nanos,
        context: &Context<'_>,
    ) -> Poll<()> {
        let mailbox = self.desk.mailbox();
        if self.stage == Stage::Held {
            self.stage = Stage::Posted;
            mailbox.post_quietly(self.slot, context);
            self.leader = bursts.on_post(self.desk, now);
            if self.leader.is_some() {
                context.waker().wake_by_ref();
            }
            self.desk.end_if_stopped();
            return Poll::Pending;
        }
        if let Some(leader) = &mut self.leader {
            match leader.act(now()) {
                true => context.waker().wake_by_ref(),
                false => self.leader = None,
            }
        }
        let ended = mailbox.poll_end(self.slot, context);
        if ended.is_ready() {
            self.stage = Stage::Ended;
        }
        ended
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        match self.stage {
            Stage::Posted => self.desk.mailbox().give_up(self.slot),
            Stage::Held | Stage::Ended => self.desk.release(self.slot),
        }
    }
}
