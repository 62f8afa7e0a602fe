//! Each error states whether the handler ran. The lists are complete: a new variant without a line
//! here does not compile, and a new protocol code without a line fails a test.

use dunlin_wire::{ErrorCode, Ran};

use super::{CallErrorKind, CloseReason, RpcError};
use crate::law::Law;

/// The expected facts of an error, without a wildcard: whether the handler ran, and whether a
/// packet left.
fn expected(error: &RpcError) -> (Ran, bool) {
    match *error {
        RpcError::DeadlinePassed(ran)
        | RpcError::Cancelled(ran)
        | RpcError::PeerFailed(ran)
        | RpcError::SessionClosed(
            CloseReason::Disconnected
            | CloseReason::PeerFailed
            | CloseReason::Reset
            | CloseReason::Refused
            | CloseReason::ConnectTimeout
            | CloseReason::EndpointClosed
            | CloseReason::Inconsistent(_),
            ran,
        ) => (ran, ran != Ran::No),
        RpcError::Rejected(_, ran) => (ran, true),
        RpcError::TooLarge { .. } => (Ran::No, false),
        RpcError::ResponseTooLarge { .. } => (Ran::Yes, true),
    }
}

/// The expected fact of a protocol code. Codes that are not listed are reserved or the
/// application's.
fn line_of(code: ErrorCode) -> Option<Ran> {
    Some(match code {
        ErrorCode::UNKNOWN_TYPE
        | ErrorCode::TOO_LARGE
        | ErrorCode::OVERLOADED
        | ErrorCode::UNDECODABLE
        | ErrorCode::SHUTTING_DOWN => Ran::No,
        ErrorCode::RESPONSE_TOO_LARGE | ErrorCode::NO_RESPONSE_MEMORY | ErrorCode::REFUSED => {
            Ran::Yes
        }
        ErrorCode::HANDLER_FAILED
        | ErrorCode::RESPONSE_GONE
        | ErrorCode::CANCELLED
        | ErrorCode::TIMED_OUT => Ran::Unknown,
        _ => return None,
    })
}

fn of_code(code: ErrorCode) -> Ran {
    let is_of_application = code.as_application().is_some();
    let other = || {
        if is_of_application {
            Ran::Yes
        } else {
            Ran::Unknown
        }
    };
    line_of(code).unwrap_or_else(other)
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
fn every_error_of_a_call_shows_whether_the_handler_ran() {
    let mut errors = vec![
        RpcError::ResponseTooLarge { size: 9 },
        RpcError::TooLarge { limit: 9 },
    ];
    for ran in [Ran::No, Ran::Unknown] {
        let plain = [
            RpcError::DeadlinePassed,
            RpcError::Cancelled,
            RpcError::PeerFailed,
        ];
        errors.extend(plain.map(|error| error(ran)));
        errors.extend(CLOSED.map(|reason| RpcError::SessionClosed(reason, ran)));
    }
    for error in errors {
        let found = (error.ran(), error.transmitted());
        assert_eq!(found, expected(&error), "{error:?}");
    }
}

#[test]
fn a_code_is_proof_if_the_server_keeps_the_rules() {
    let codes = (0..=20).chain([0x1_0000, 0x1_FFFF, 0x2_0000]);
    for code in codes.map(ErrorCode) {
        let error = RpcError::rejected(code, true);
        assert_eq!((error.ran(), error.transmitted()), (of_code(code), true));
        assert_eq!(error, RpcError::Rejected(code, of_code(code)));
        let claim = RpcError::rejected(code, false);
        let proof = match of_code(code) {
            Ran::No => Ran::Unknown,
            ran => ran,
        };
        assert_eq!((claim.ran(), claim.transmitted()), (proof, true), "{code}");
    }
}

/// The named codes are those of the protocol (a test of the wire format compares them).
#[test]
fn each_code_with_a_name_has_a_line() {
    for code in (0..=0xFFFF).map(ErrorCode) {
        let has_name = !code.to_string().starts_with("error 0x");
        assert_eq!(line_of(code).is_some(), has_name, "{code}");
    }
}

/// The next kind in the list of all kinds; after `None`, the first.
fn after(kind: Option<CallErrorKind>) -> Option<CallErrorKind> {
    match kind {
        None => Some(CallErrorKind::Overloaded),
        Some(CallErrorKind::Overloaded) => Some(CallErrorKind::NoSession),
        Some(CallErrorKind::NoSession) => Some(CallErrorKind::WrongEndpoint),
        Some(CallErrorKind::WrongEndpoint) => Some(CallErrorKind::TooLarge { limit: 4 }),
        Some(CallErrorKind::TooLarge { .. }) => None,
    }
}

#[test]
fn a_call_that_was_not_taken_did_not_run() {
    let kinds: Vec<_> = std::iter::successors(after(None), |kind| after(Some(*kind))).collect();
    assert_eq!(kinds.len(), 4);
    for kind in kinds {
        assert_eq!(kind.ran(), Ran::No, "{kind:?}");
    }
}
