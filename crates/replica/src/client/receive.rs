//! Ends of calls.

use dunlin_core::{Cx, Done, RpcError};
use dunlin_wire::ErrorCode;

use super::operation::{Kind, Operation};
use super::options::{End, Error};
use super::{Client, Identity};
use crate::wire::{Answer, MAX_ITEM};

impl Client {
    /// Takes the end of a call. Returns ends that belong to other calls.
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        let Some(operation) = self.sent.take(done.tag) else {
            return Some(done);
        };
        self.is_stirred |= !self.waiting.is_empty();
        match done.result {
            Ok(()) => match Answer::decode(done.response.data()) {
                Ok(answer) => self.on_answer(operation, answer, cx),
                Err(_) => self.end_failed(operation, Error::Incompatible),
            },
            Err(error) => self.on_failure(operation, error, cx),
        }
        cx.recycle([done.request, done.response]);
        self.settle(cx);
        None
    }

    fn on_answer(&mut self, mut operation: Operation, answer: Answer, cx: &mut Cx<'_>) {
        operation.refusals = 0;
        match (&operation.kind, &answer) {
            (Kind::Open, Answer::Opened(client)) => {
                self.identity = Identity::Open(*client);
                self.is_stirred = true;
            }
            (Kind::Get, Answer::Found(..) | Answer::Missing)
            | (Kind::Range { .. }, Answer::Items { .. })
            | (Kind::Watch(_), Answer::Events { .. } | Answer::Forgotten(_))
            | (
                Kind::Change(_),
                Answer::Written(_) | Answer::Differs(_) | Answer::Deleted(_) | Answer::Conflict(_),
            ) => {
                self.end(operation, Ok(answer));
            }
            (_, Answer::Moved(address)) => {
                let leader = self.lanes.find(address);
                self.on_moved(operation, leader, cx);
            }
            (_, Answer::Busy) => self.repeat(operation, cx),
            (_, Answer::Full) => {
                operation.attempts -= 1;
                self.end_failed(operation, Error::Full);
            }
            // A misnamed write has the name of another client, perhaps of an earlier cluster.
            (Kind::Change(_), Answer::Expired | Answer::Misnamed) => {
                self.on_expired(operation, cx);
            }
            _ => self.end_failed(operation, Error::Incompatible),
        }
    }

    /// Handles a refusal by a replica that does not lead, and that may know the lane to the leader.
    fn on_moved(&mut self, mut operation: Operation, leader: Option<usize>, cx: &mut Cx<'_>) {
        let can_ask = |lane: &usize| *lane != operation.lane && self.lanes.open(*lane).is_some();
        let Some(leader) = leader.filter(can_ask) else {
            return self.on_silent(operation, cx);
        };
        self.leader = leader;
        // Two replicas may name each other as the leader for a while.
        if operation.is_redirected || operation.deadline <= cx.now() {
            return self.repeat(operation, cx);
        }
        operation.is_redirected = true;
        self.is_stirred = true;
        self.waiting.push_front(operation);
    }

    /// Handles a replica that has not answered, or does not know the leader.
    fn on_silent(&mut self, operation: Operation, cx: &mut Cx<'_>) {
        // Another operation may have found the leader meanwhile.
        if self.leader == operation.lane {
            self.leader = (operation.lane + 1) % self.lanes.len();
        }
        self.repeat(operation, cx);
    }

    fn repeat(&mut self, operation: Operation, cx: &mut Cx<'_>) {
        match operation.deadline > cx.now() {
            true => self.try_later(operation, cx),
            false => self.end_late(operation),
        }
    }

    /// Handles the answer that the cluster has forgotten the client's name.
    fn on_expired(&mut self, mut operation: Operation, cx: &mut Cx<'_>) {
        let name = operation.name;
        if name.is_some_and(|(client, _)| self.identity == Identity::Open(client)) {
            self.identity = Identity::None;
        }
        if operation.attempts > 1 {
            // An earlier attempt may have been applied before the name was forgotten.
            return self.end(operation, Err(Error::Unknown));
        }
        if let Some((_, number)) = operation.name.take() {
            self.numbers.end(number);
        }
        operation.attempts = 0;
        self.repeat(operation, cx);
    }

    fn on_failure(&mut self, mut operation: Operation, error: RpcError, cx: &mut Cx<'_>) {
        match error {
            RpcError::ResponseTooLarge { size }
                if operation.kind.is_read()
                    && (operation.room + 1..=Answer::HEAD + MAX_ITEM)
                        .contains(&(size as usize)) =>
            {
                operation.room = size as usize;
                self.is_stirred = true;
                self.waiting.push_front(operation);
            }
            RpcError::Rejected(ErrorCode::UNDECODABLE | ErrorCode::UNKNOWN_TYPE, _) => {
                operation.attempts -= 1;
                self.on_unreadable(operation, cx);
            }
            RpcError::TooLarge { .. } => {
                operation.attempts -= 1;
                self.end_failed(operation, Error::TooLong);
            }
            RpcError::DeadlinePassed(_) => {
                operation.on_silence();
                self.on_silent(operation, cx);
            }
            _ => self.on_silent(operation, cx),
        }
    }

    /// Handles the answer that a replica cannot decode an operation. Others may run another
    /// version.
    fn on_unreadable(&mut self, mut operation: Operation, cx: &mut Cx<'_>) {
        operation.refusals += 1;
        match operation.refusals < self.lanes.len() {
            true => self.on_silent(operation, cx),
            false => self.end_failed(operation, Error::Incompatible),
        }
    }

    /// Ends an operation whose deadline has passed.
    pub(super) fn end_late(&mut self, operation: Operation) {
        self.end_failed(operation, Error::Unavailable);
    }

    /// Ends an operation with an error, or with [`Error::Unknown`] if it may have changed a key.
    pub(super) fn end_failed(&mut self, operation: Operation, error: Error) {
        let error = match operation.may_change() {
            true => Error::Unknown,
            false => error,
        };
        self.end(operation, Err(error));
    }

    pub(super) fn end(&mut self, operation: Operation, result: Result<Answer, Error>) {
        if let Some((_, number)) = operation.name {
            self.numbers.end(number);
        }
        if operation.kind != Kind::Open {
            let token = operation.token;
            return self.ends.push_back(End { token, result });
        }
        self.identity = Identity::None;
        if let Err(error @ (Error::Incompatible | Error::Full)) = result {
            // No write can get a name.
            let writes = self.take_waiting(Operation::is_change);
            writes.into_iter().for_each(|it| self.end_failed(it, error));
        }
    }
}
