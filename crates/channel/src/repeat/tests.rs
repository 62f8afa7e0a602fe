//! Each line of the table, and a law that holds for all inputs.

use dunlin_core::CloseReason;

use super::*;

fn closed(ran: Ran) -> RpcError {
    RpcError::SessionClosed(CloseReason::Reset, ran)
}

fn failed(ran: Ran) -> RpcError {
    RpcError::PeerFailed(ran)
}

fn cancelled(ran: Ran) -> RpcError {
    RpcError::Cancelled(ran)
}

fn late(ran: Ran) -> RpcError {
    RpcError::DeadlinePassed(ran)
}

fn codes() -> impl Iterator<Item = ErrorCode> {
    (0..=13)
        .chain([0x1_0000, 0x1_FFFF, 0x2_0000])
        .map(ErrorCode)
}

fn errors() -> Vec<RpcError> {
    let mut errors = vec![
        RpcError::ResponseTooLarge { size: 1 },
        RpcError::TooLarge { limit: 1 },
    ];
    for ran in [Ran::No, Ran::Unknown] {
        errors.extend([closed(ran), failed(ran), cancelled(ran), late(ran)]);
    }
    for keeps_rules in [true, false] {
        errors.extend(codes().map(|code| RpcError::rejected(code, keeps_rules)));
    }
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
    faults.extend(errors().into_iter().map(Fault::of));
    faults
}

#[test]
fn each_line_of_the_table() {
    use Fault::NotTaken;
    use Repeat::{AtOnce, Later, Never, Paid};
    let code = |code| Fault::of(RpcError::rejected(code, true));
    let claim = |code| Fault::of(RpcError::rejected(code, false));
    let unsent = |end: fn(Ran) -> RpcError| Fault::of(end(Ran::No));
    let sent = |end: fn(Ran) -> RpcError| Fault::of(end(Ran::Unknown));
    // The fault, and how it is repeated for a call that may run twice and for one that may not. A
    // claim is an error code of a server that does not keep the rules.
    let table = [
        (NotTaken(CallErrorKind::NoSession), [AtOnce; 2]),
        (NotTaken(CallErrorKind::Overloaded), [Later; 2]),
        (NotTaken(CallErrorKind::WrongEndpoint), [Never; 2]),
        (NotTaken(CallErrorKind::TooLarge { limit: 1 }), [Never; 2]),
        (Fault::of(RpcError::TooLarge { limit: 1 }), [Never; 2]),
        (
            Fault::of(RpcError::ResponseTooLarge { size: 1 }),
            [Never; 2],
        ),
        (unsent(failed), [AtOnce; 2]),
        (unsent(closed), [AtOnce; 2]),
        (unsent(late), [Never; 2]),
        (unsent(cancelled), [Never; 2]),
        (sent(failed), [Paid, Never]),
        (sent(closed), [Paid, Never]),
        (sent(late), [Never; 2]),
        (sent(cancelled), [Never; 2]),
        (code(ErrorCode::SHUTTING_DOWN), [AtOnce; 2]),
        (claim(ErrorCode::SHUTTING_DOWN), [Paid, Never]),
        (code(ErrorCode::OVERLOADED), [Paid; 2]),
        (claim(ErrorCode::OVERLOADED), [Paid, Never]),
        (code(ErrorCode::NO_RESPONSE_MEMORY), [Never; 2]),
        (code(ErrorCode::REFUSED), [Never; 2]),
        (code(ErrorCode::HANDLER_FAILED), [Never; 2]),
        (code(ErrorCode::TOO_LARGE), [Never; 2]),
        (code(ErrorCode::TIMED_OUT), [Never; 2]),
        (code(ErrorCode::RESPONSE_GONE), [Never; 2]),
        (code(ErrorCode::UNKNOWN_TYPE), [Never; 2]),
        (claim(ErrorCode::UNKNOWN_TYPE), [Never; 2]),
        (code(ErrorCode::application(4)), [Never; 2]),
    ];
    for (fault, expected) in table {
        let found = [true, false].map(|twice| repeat(&fault, twice));
        assert_eq!(found, expected, "{fault:?}");
    }
}

#[test]
fn a_call_that_may_not_run_twice_is_repeated_only_if_it_has_not_run() {
    for fault in faults() {
        let is_repeated = repeat(&fault, false) != Repeat::Never;
        assert!(!is_repeated || fault.ran() == Ran::No, "{fault:?}");
    }
}

#[test]
fn a_call_that_ran_is_never_repeated() {
    for fault in faults() {
        let is_repeated = repeat(&fault, true) != Repeat::Never;
        assert!(!is_repeated || fault.ran() != Ran::Yes, "{fault:?}");
    }
}

#[test]
fn no_code_of_a_server_without_rules_proves_that_nothing_ran() {
    for code in codes() {
        let fault = Fault::of(RpcError::rejected(code, false));
        assert_ne!(fault.ran(), Ran::No, "{code}");
    }
}

#[test]
fn an_error_says_whether_its_request_was_transmitted() {
    let ends = [closed, failed, cancelled, late];
    for end in ends {
        assert_eq!(Fault::of(end(Ran::No)), Fault::NotSent(end(Ran::No)));
        assert_eq!(Fault::of(end(Ran::Unknown)), Fault::Sent(end(Ran::Unknown)));
    }
    let unsent = RpcError::TooLarge { limit: 1 };
    assert_eq!(Fault::of(unsent), Fault::NotSent(unsent));
    // The server has the request, although no handler ran.
    let refused = RpcError::rejected(ErrorCode::OVERLOADED, true);
    assert_eq!(Fault::of(refused), Fault::Sent(refused));
}
