//! Decides whether the handler, the faults and the plan explain the end of a call.
//!
//! Called by the ledger for every completion.

use dunlin_core::{CloseReason, Nanos, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use super::{Allowed, NESTED_FAILED, Phase, REJECTED, SessionName};
use crate::cluster::message::{Kind, is_answer_of};
use crate::world::ProcessId;
use crate::world::net::PortId;

/// One call, from its issue on.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) from: ProcessId,
    pub(super) to: PortId,
    pub(super) session: SessionName,
    pub(super) phase: Phase,
    pub(super) issued: Nanos,
    pub(super) deadline: Option<Nanos>,
    pub(super) answer_len: u32,
    /// The most bytes of a response for which the caller has room.
    pub(super) room: u32,
    /// Whether the request has more than one packet, and whether the answer does.
    pub(super) parts: (bool, bool),
    pub(super) cancelled: bool,
    pub(super) runs: u8,
    pub(super) ended: bool,
    /// Whether its completion proved that its handler did not and will not run.
    pub(super) never_runs: bool,
}

impl Call {
    /// Returns what is wrong with the completion of this call, if anything.
    pub(super) fn judge(
        &self,
        name: u64,
        result: &Result<(), RpcError>,
        response: &[u8],
        now: Nanos,
        (must_succeed, trusted, abandoned): (bool, bool, bool),
        allowed: Allowed,
    ) -> Option<String> {
        let fine = match result {
            Ok(()) => return self.judge_response(name, response),
            // All sessions of a world have the same limit, and callers observe it.
            Err(RpcError::TooLarge { .. }) => false,
            Err(RpcError::DeadlinePassed(_)) => {
                self.deadline.is_some_and(|span| now >= self.issued + span)
            }
            Err(RpcError::Cancelled(_)) => self.cancelled,
            // A connect may miss its deadline.
            Err(RpcError::SessionClosed(CloseReason::ConnectTimeout, _)) => true,
            Err(RpcError::SessionClosed(CloseReason::Refused, _)) if allowed.shortage => true,
            Err(RpcError::PeerFailed(_)) => !must_succeed && !trusted,
            Err(RpcError::SessionClosed(CloseReason::Disconnected, _)) if abandoned => true,
            Err(RpcError::SessionClosed(..)) => !must_succeed,
            // Even without loss, a large response may take longer than the server holds it.
            Err(RpcError::Rejected(ErrorCode::RESPONSE_GONE, _)) => {
                allowed.forgetting && (!must_succeed || self.parts.1)
            }
            Err(RpcError::Rejected(ErrorCode::OVERLOADED, _)) if allowed.shortage => true,
            Err(RpcError::Rejected(ErrorCode::NO_RESPONSE_MEMORY, _)) if allowed.shortage => true,
            Err(RpcError::Rejected(ErrorCode::OVERLOADED, _)) if self.parts.0 && self.runs == 0 => {
                allowed.forgetting || self.works_in_background()
            }
            Err(RpcError::Rejected(code, _)) => self.may_be_rejected(*code),
            Err(RpcError::ResponseTooLarge { size }) => {
                *size == self.answer_len && self.answer_len > self.room && self.runs == 1
            }
        };
        match result {
            _ if !fine => Some("ended in a way that nothing explains".to_owned()),
            Err(error) => self.judge_ran(error.ran()),
            Ok(()) => None,
        }
    }

    /// Compares the completion's claim about the handler with the handler's actual runs.
    fn judge_ran(&self, ran: Ran) -> Option<String> {
        let is_true = match ran {
            Ran::No => self.runs == 0,
            // Runs of empty requests have no names.
            Ran::Yes => self.runs == 1 || self.kind == Kind::Empty,
            Ran::Unknown => true,
        };
        (!is_true).then(|| format!("ran {} times, and its end says {ran:?}", self.runs))
    }

    fn judge_response(&self, name: u64, response: &[u8]) -> Option<String> {
        let runs = if self.kind == Kind::Empty { 0 } else { 1 };
        if self.runs != runs {
            return Some(format!("has a response, but ran {} times", self.runs));
        }
        if response.len() != self.answer_len as usize || !is_answer_of(name, response) {
            let head = &response[..response.len().min(24)];
            return Some(format!("has another call's response: {head:02x?}"));
        }
        let answers = !matches!(
            self.kind,
            Kind::Reject | Kind::Panic | Kind::Forget | Kind::Lose | Kind::Unknown | Kind::TooMuch
        );
        (!answers).then(|| "has a response that no handler gave".to_owned())
    }

    fn works_in_background(&self) -> bool {
        matches!(self.kind, Kind::Background | Kind::FailingBackground)
    }

    fn may_be_rejected(&self, code: ErrorCode) -> bool {
        let ran = self.runs == 1;
        match code {
            ErrorCode::UNKNOWN_TYPE => self.kind == Kind::Unknown && self.runs == 0,
            ErrorCode::RESPONSE_TOO_LARGE => ran && self.kind == Kind::TooMuch,
            ErrorCode::HANDLER_FAILED => {
                let fail = [
                    Kind::Panic,
                    Kind::Forget,
                    Kind::Lose,
                    Kind::FailingBackground,
                ];
                // When a handler panics, the rest of its batch fails without the ledger's
                // knowledge.
                ran && fail.contains(&self.kind) || self.kind == Kind::MixedBatch
            }
            ErrorCode::OVERLOADED => self.works_in_background() && self.runs == 0,
            REJECTED => {
                let rejects = [Kind::Reject, Kind::MixedBatch, Kind::FailingBackground];
                ran && rejects.contains(&self.kind)
            }
            NESTED_FAILED => ran && self.kind == Kind::Nested,
            _ => false,
        }
    }
}
