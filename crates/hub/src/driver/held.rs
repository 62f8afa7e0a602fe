//! Requests that a server may still hold although their calls have ended at this side, by
//! cancellation or at their deadlines (rule S6). Until the server has answered or the session has
//! ended, each still counts for the channel's limit, for its session's window, and for the
//! outstanding requests by which a server is picked. So a stuck server never looks idle.

use dunlin_channel::{CallId, Fault, Outcome};
use dunlin_core::RpcError;
use dunlin_mailbox::{Slot, TakenPlace};
use dunlin_wire::Ran;

use super::{Around, Attempt, Driver, put};

#[derive(Debug)]
pub(super) struct Held {
    /// The places of calls, by the index of the attempt.
    places: Vec<Option<TakenPlace>>,
    /// The indexes of attempts whose calls have ended only at this side.
    attempts: Vec<usize>,
}

impl Held {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            attempts: Vec::new(),
        }
    }
}

impl Driver {
    /// True if a server may still hold a request whose call has ended.
    pub(crate) const fn holds(&self) -> bool {
        !self.held.attempts.is_empty()
    }

    /// Ends attempts that servers no longer hold; true if there were any.
    pub(crate) fn check_held(&mut self, around: &mut Around<'_>) -> bool {
        let before = self.held.attempts.len();
        let mut at = 0;
        while let Some(index) = self.held.attempts.get(at).copied() {
            let attempt = self.attempts[index].expect("it is held");
            if is_held(&attempt, around) {
                at += 1;
                continue;
            }
            self.held.attempts.swap_remove(at);
            // The call of this attempt has ended, or ends for the same reason at its deadline.
            let ended = Fault::Sent(RpcError::Cancelled(Ran::Unknown));
            self.on_ended(index, &attempt, Outcome::Failed(ended), around);
        }
        self.held.attempts.len() != before
    }

    /// Keeps an attempt that has ended at this side, if its server may still hold it.
    pub(super) fn hold(
        &mut self,
        index: usize,
        attempt: &Attempt,
        around: &mut Around<'_>,
    ) -> bool {
        let is_held = is_held(attempt, around);
        if is_held {
            self.held.attempts.push(index);
        }
        is_held
    }

    /// Gives an attempt the place of its call, unless another attempt has it.
    pub(super) fn take_place(&mut self, index: usize, call: CallId, around: &mut Around<'_>) {
        if self.held.places.get(index).is_some_and(Option::is_some) {
            return;
        }
        let slot = self.slot_of(call);
        let place = slot.and_then(|slot| around.mailbox.with(slot, |letter| letter.take_place()));
        if let Some(place) = place {
            put(&mut self.held.places, index, place);
        }
    }

    /// Gives the place of an attempt back to its call, or frees it if the call has ended.
    pub(super) fn return_place(&mut self, index: usize, call: CallId, around: &mut Around<'_>) {
        let place = self.held.places.get_mut(index).and_then(Option::take);
        if let (Some(place), Some(slot)) = (place, self.slot_of(call)) {
            around
                .mailbox
                .with(slot, |letter| letter.return_place(place));
        }
    }

    /// The slot of a call that has not ended.
    pub(super) fn slot_of(&self, call: CallId) -> Option<Slot> {
        let seat = self.seats.get(call.index())?.as_ref();
        seat.filter(|seat| seat.id == call).map(|seat| seat.slot)
    }
}

fn is_held(attempt: &Attempt, around: &mut Around<'_>) -> bool {
    let issued = attempt.issued;
    issued.is_some_and(|issued| around.rpc.cx_again().is_unanswered(issued.call))
}
