//! Each error states whether the handler ran. The lists are complete: without a line for a new
//! variant, this does not compile.

use dunlin_wire::{ErrorCode, Ran};

use super::{CallErrorKind, CloseReason, RpcError};
use crate::law::Law;

/// The line of an error, without a wildcard.
fn expected(error: &RpcError) -> Ran {
    match error {
        RpcError::DeadlinePassed => Ran::Unknown,
        RpcError::Cancelled => Ran::Unknown,
        RpcError::PeerFailed => Ran::Unknown,
        RpcError::SessionClosed(CloseReason::Disconnected) => Ran::Unknown,
        RpcError::SessionClosed(CloseReason::PeerFailed) => Ran::Unknown,
        RpcError::SessionClosed(CloseReason::Reset) => Ran::Unknown,
        RpcError::SessionClosed(CloseReason::Refused) => Ran::No,
        RpcError::SessionClosed(CloseReason::ConnectTimeout) => Ran::No,
        RpcError::SessionClosed(CloseReason::EndpointClosed) => Ran::Unknown,
        RpcError::SessionClosed(CloseReason::Inconsistent(_)) => Ran::Unknown,
        RpcError::Rejected(code) => code.ran(),
        RpcError::ResponseTooLarge { .. } => Ran::Yes,
    }
}

const CLOSED: [CloseReason; 7] = [
    CloseReason::Disconnected,
    CloseReason::PeerFailed,
    CloseReason::Reset,
    CloseReason::Refused,
    CloseReason::ConnectTimeout,
    CloseReason::EndpointClosed,
    CloseReason::Inconsistent(Law::Slots),
];

#[test]
fn every_error_of_a_call_says_if_the_handler_ran() {
    let plain = [
        RpcError::DeadlinePassed,
        RpcError::Cancelled,
        RpcError::PeerFailed,
        RpcError::ResponseTooLarge { size: 9 },
    ];
    let closed = CLOSED.map(RpcError::SessionClosed);
    let codes = (0..=12)
        .chain([0x1_0000, 0x1_FFFF, 0x2_0000])
        .map(ErrorCode);
    let rejected = codes.map(RpcError::Rejected);
    for error in plain.into_iter().chain(closed).chain(rejected) {
        assert_eq!(error.ran(), expected(&error), "{error:?}");
    }
}

#[test]
fn a_call_that_was_not_taken_did_not_run() {
    let kinds = [
        CallErrorKind::Overloaded,
        CallErrorKind::NoSession,
        CallErrorKind::TooLarge { limit: 4 },
    ];
    for kind in kinds {
        assert_eq!(kind.ran(), Ran::No, "{kind:?}");
    }
}
