//! Each error states whether the handler ran. The lists are complete: without a line for a new
//! variant, this does not compile.

use super::*;

/// Whether the handler ran, for each error, without a wildcard.
fn expected(error: &Error) -> Ran {
    match error {
        Error::Rpc(error) => error.ran(),
        Error::Refused(
            CallErrorKind::Overloaded
            | CallErrorKind::NoSession
            | CallErrorKind::WrongEndpoint
            | CallErrorKind::TooLarge { .. },
        )
        | Error::Memory(_)
        | Error::NoSession
        | Error::WrongEndpoint
        | Error::Unavailable => Ran::No,
    }
}

/// Whether the handler ran, for each failure, without a wildcard.
fn of_failure(failure: &Failure<u8>) -> Ran {
    match failure {
        Failure::Method(_) | Failure::BadResponse(_) => Ran::Yes,
        Failure::UnknownMethod(ran) | Failure::BadRequest(ran) => *ran,
        Failure::BadValue | Failure::BadMeta(_) => Ran::No,
        Failure::Call(error) => expected(error),
    }
}

const ERRORS: [Error; 10] = [
    Error::Rpc(RpcError::PeerFailed(Ran::No)),
    Error::Rpc(RpcError::PeerFailed(Ran::Unknown)),
    Error::Rpc(RpcError::ResponseTooLarge { size: 1 }),
    Error::gone(Ran::Unknown),
    Error::Refused(CallErrorKind::Overloaded),
    Error::Refused(CallErrorKind::WrongEndpoint),
    Error::Memory(AllocError::Limit),
    Error::NoSession,
    Error::WrongEndpoint,
    Error::Unavailable,
];

#[test]
fn every_error_and_every_failure_says_if_the_handler_ran() {
    for error in ERRORS {
        assert_eq!(error.ran(), expected(&error), "{error:?}");
    }
    let mut failures = vec![
        Failure::Method(1),
        Failure::BadResponse(DecodeError::Malformed),
        Failure::BadValue,
        Failure::BadMeta(MetaError::Key),
    ];
    for ran in [Ran::No, Ran::Unknown] {
        failures.extend([Failure::UnknownMethod(ran), Failure::BadRequest(ran)]);
    }
    failures.extend(ERRORS.map(Failure::Call));
    for failure in failures {
        assert_eq!(failure.ran(), of_failure(&failure), "{failure:?}");
    }
}

#[test]
fn a_code_of_the_typed_layer_keeps_its_proof() {
    for keeps_rules in [true, false] {
        let ran = if keeps_rules { Ran::No } else { Ran::Unknown };
        let of = |code| Failure::<u8>::from(Error::Rpc(RpcError::rejected(code, keeps_rules)));
        assert_eq!(of(ErrorCode::UNKNOWN_TYPE), Failure::UnknownMethod(ran));
        assert_eq!(of(ErrorCode::UNDECODABLE), Failure::BadRequest(ran));
    }
}
