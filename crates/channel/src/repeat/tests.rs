//! The table, line by line, and its law over all of its inputs.

use dunlin_core::CloseReason;

use super::*;

fn closed(reason: CloseReason) -> RpcError {
    RpcError::SessionClosed(reason)
}

fn errors() -> Vec<RpcError> {
    use CloseReason::*;
    let plain = [
        RpcError::DeadlinePassed,
        RpcError::Cancelled,
        RpcError::PeerFailed,
        RpcError::ResponseTooLarge { size: 1 },
    ];
    let reasons = [
        Disconnected,
        PeerFailed,
        Reset,
        Refused,
        ConnectTimeout,
        EndpointClosed,
    ];
    let codes = (0..=12)
        .chain([0x1_0000, 0x1_FFFF, 0x2_0000])
        .map(ErrorCode);
    let mut errors = Vec::from(plain);
    errors.extend(reasons.map(closed));
    errors.extend(codes.map(RpcError::Rejected));
    errors
}

fn faults() -> Vec<Fault> {
    let kinds = [
        CallErrorKind::Overloaded,
        CallErrorKind::NoSession,
        CallErrorKind::WrongEndpoint,
        CallErrorKind::TooLarge { limit: 1 },
    ];
    let mut faults: Vec<Fault> = kinds.map(Fault::NotTaken).into();
    faults.extend(errors().into_iter().map(Fault::NotSent));
    faults.extend(errors().into_iter().map(Fault::Sent));
    faults
}

#[test]
fn each_line_of_the_table() {
    use CloseReason::{ConnectTimeout, Disconnected, Reset};
    use Fault::{NotSent, NotTaken, Sent};
    use Repeat::{AtOnce, Later, Never, Paid};
    let code = |code| Sent(RpcError::Rejected(code));
    // The fault; whether a precise server's is repeated, for a call that may run twice and for one
    // that may not; and the same for another server.
    let table = [
        (NotTaken(CallErrorKind::NoSession), [AtOnce; 2], [AtOnce; 2]),
        (NotTaken(CallErrorKind::Overloaded), [Later; 2], [Later; 2]),
        (
            NotTaken(CallErrorKind::WrongEndpoint),
            [Never; 2],
            [Never; 2],
        ),
        (
            NotTaken(CallErrorKind::TooLarge { limit: 1 }),
            [Never; 2],
            [Never; 2],
        ),
        (NotSent(RpcError::PeerFailed), [AtOnce; 2], [AtOnce; 2]),
        (NotSent(closed(Reset)), [AtOnce; 2], [AtOnce; 2]),
        (NotSent(RpcError::DeadlinePassed), [Never; 2], [Never; 2]),
        (NotSent(RpcError::Cancelled), [Never; 2], [Never; 2]),
        (Sent(closed(ConnectTimeout)), [AtOnce; 2], [AtOnce; 2]),
        (Sent(RpcError::PeerFailed), [Paid, Never], [Paid, Never]),
        (Sent(closed(Disconnected)), [Paid, Never], [Paid, Never]),
        (Sent(RpcError::DeadlinePassed), [Never; 2], [Never; 2]),
        (code(ErrorCode::SHUTTING_DOWN), [AtOnce; 2], [Paid, Never]),
        (code(ErrorCode::OVERLOADED), [Paid; 2], [Paid, Never]),
        (code(ErrorCode::NO_RESPONSE_MEMORY), [Never; 2], [Never; 2]),
        (code(ErrorCode::REFUSED), [Never; 2], [Never; 2]),
        (code(ErrorCode::HANDLER_FAILED), [Never; 2], [Never; 2]),
        (code(ErrorCode::RESPONSE_GONE), [Never; 2], [Never; 2]),
        (code(ErrorCode::UNKNOWN_TYPE), [Never; 2], [Never; 2]),
        (code(ErrorCode::application(4)), [Never; 2], [Never; 2]),
    ];
    for (fault, precise, other) in table {
        assert_eq!(
            [true, false].map(|twice| repeat(&fault, twice, true)),
            precise,
            "{fault:?}"
        );
        assert_eq!(
            [true, false].map(|twice| repeat(&fault, twice, false)),
            other,
            "{fault:?}"
        );
    }
}

#[test]
fn a_call_that_may_not_run_twice_is_repeated_only_if_it_has_not_run() {
    for fault in faults() {
        for precise in [true, false] {
            let is_repeated = repeat(&fault, false, precise) != Repeat::Never;
            assert!(!is_repeated || fault.ran(precise) == Ran::No, "{fault:?}");
        }
    }
}

#[test]
fn what_ran_is_never_repeated() {
    for fault in faults() {
        for precise in [true, false] {
            let is_repeated = repeat(&fault, true, precise) != Repeat::Never;
            assert!(!is_repeated || fault.ran(precise) != Ran::Yes, "{fault:?}");
        }
    }
}

#[test]
fn a_server_that_is_not_precise_proves_nothing_by_a_code() {
    for code in (0..=12).map(ErrorCode) {
        let fault = Fault::Sent(RpcError::Rejected(code));
        assert_ne!(fault.ran(false), Ran::No, "{code}");
    }
}
