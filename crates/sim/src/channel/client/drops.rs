//! Callers that drop their calls: at a random time, or when an attempt ends. Called by the client.

use dunlin_channel::AttemptId;
use dunlin_core::{HandleError, Nanos, RpcError};
use dunlin_wire::Ran;

use super::around::Around;
use super::channel::Channel;

impl Channel {
    pub(super) fn cancel_due(&mut self, now: Nanos) {
        while let Some((at, name, call)) = self.cancel.first().copied() {
            if at > now {
                return;
            }
            self.cancel.pop_first();
            if self.ledger.borrow_mut().cancel(name) {
                self.machine.on_cancel(call, now);
            }
        }
    }

    pub(super) fn cancel_attempt(&mut self, id: AttemptId, around: &mut Around) {
        let mut attempts = self.attempts.iter_mut();
        let Some((tag, attempt)) = attempts.find(|(_, attempt)| attempt.id == id) else {
            return self.violate(format!("{id:?} is cancelled, but is not in flight"));
        };
        attempt.is_cancelled = true;
        let Some(issued) = attempt.issued else {
            let tag = *tag;
            return self.never_sent(tag, RpcError::Cancelled(Ran::No), around.now);
        };
        let call = issued.call;
        // A cancelled call completes like any other, unless it has completed already.
        if around.lines.rpc().cx().cancel(call) == Err(HandleError::WrongEndpoint) {
            self.violate(format!("{call:?} is of another endpoint"));
        }
    }

    /// Makes the caller drop a call before it ends.
    pub(super) fn drop_call(&mut self, name: usize, now: Nanos) {
        let mut names = self.names.iter();
        let call = names
            .find(|(_, other)| **other == name)
            .map(|(call, _)| *call);
        if let Some(call) = call.filter(|_| self.ledger.borrow_mut().cancel(name)) {
            self.machine.on_cancel(call, now);
        }
    }
}
