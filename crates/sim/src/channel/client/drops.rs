//! Callers that drop their calls: at a random time, or when an attempt ends. Called by the client.

use dunlin_channel::AttemptId;
use dunlin_core::HandleError;

use super::Client;

impl Client {
    pub(super) fn cancel_due(&mut self) {
        while let Some((at, name, call)) = self.cancel.first().copied() {
            if at > self.now {
                return;
            }
            self.cancel.pop_first();
            if self.ledger.borrow_mut().cancel(name) {
                self.machine.on_cancel(call, self.now);
            }
        }
    }

    pub(super) fn cancel_attempt(&mut self, id: AttemptId) {
        let mut attempts = self.attempts.values_mut();
        let Some(attempt) = attempts.find(|attempt| attempt.id == id) else {
            return self.violate(format!("{id:?} is cancelled, but is not in flight"));
        };
        attempt.is_cancelled = true;
        let call = attempt.call;
        // A cancelled call completes like any other, unless it has completed already.
        if self.rpc.cx().cancel(call) == Err(HandleError::WrongEndpoint) {
            self.violate(format!("{call:?} is of another endpoint"));
        }
    }

    /// Makes the caller drop a call before it ends.
    pub(super) fn drop_call(&mut self, name: usize) {
        let mut names = self.names.iter();
        let call = names
            .find(|(_, other)| **other == name)
            .map(|(call, _)| *call);
        if let Some(call) = call.filter(|_| self.ledger.borrow_mut().cancel(name)) {
            self.machine.on_cancel(call, self.now);
        }
    }
}
