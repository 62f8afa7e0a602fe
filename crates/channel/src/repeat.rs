//! Decides, in one table, which failed attempts are repeated. Other code checks the remaining
//! attempts, budget and time.
//!
//! | the attempt | repeated |
//! |---|---|
//! | was not taken: no session; was never transmitted | at once, free of charge |
//! | was not taken: the link's backlog is full | after a pause, free of charge |
//! | `SHUTTING_DOWN` of a server that keeps the rules of codes | at once, free of charge |
//! | `OVERLOADED` of such a server | after a pause, from the budget |
//! | ended without an answer and may have run; idempotent call | after a pause, from the budget |
//! | anything else; a notification that has left | never |

use dunlin_core::{CallErrorKind, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use crate::fault::Fault;

/// Whether and how an attempt is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeat {
    Never,
    AtOnce,
    Later,
    Paid,
}

pub(crate) fn repeat(fault: &Fault, idempotent: bool) -> Repeat {
    match fault {
        Fault::NotTaken(CallErrorKind::TooLarge { .. } | CallErrorKind::WrongEndpoint)
        | Fault::NotSent(RpcError::TooLarge { .. }) => Repeat::Never,
        Fault::NotTaken(CallErrorKind::Overloaded) => Repeat::Later,
        Fault::NotTaken(CallErrorKind::NoSession) => Repeat::AtOnce,
        // These faults end the call itself.
        Fault::NotSent(error) | Fault::Sent(error) if is_ours(error) => Repeat::Never,
        Fault::NotSent(_) => Repeat::AtOnce,
        Fault::Sent(RpcError::Rejected(ErrorCode::SHUTTING_DOWN, Ran::No)) => Repeat::AtOnce,
        Fault::Sent(RpcError::Rejected(ErrorCode::OVERLOADED, Ran::No)) => Repeat::Paid,
        Fault::Sent(RpcError::Rejected(ErrorCode::OVERLOADED | ErrorCode::SHUTTING_DOWN, _)) => {
            when(idempotent)
        }
        Fault::Sent(RpcError::Rejected(..) | RpcError::ResponseTooLarge { .. }) => Repeat::Never,
        Fault::Sent(error) if error.ran() == Ran::No => Repeat::AtOnce,
        Fault::Sent(_) => when(idempotent),
    }
}

const fn is_ours(error: &RpcError) -> bool {
    matches!(error, RpcError::DeadlinePassed(_) | RpcError::Cancelled(_))
}

const fn when(idempotent: bool) -> Repeat {
    if idempotent {
        Repeat::Paid
    } else {
        Repeat::Never
    }
}

#[cfg(test)]
mod tests;
