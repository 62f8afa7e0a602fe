//! Each error of a channel states whether the call ran. The list is complete: a new variant without
//! a line here does not compile.

use super::*;

/// Whether the call ran, for each error, without a wildcard.
fn expected(error: &ChannelError) -> Ran {
    match error {
        ChannelError::NoServer(_)
        | ChannelError::Full
        | ChannelError::Address(_)
        | ChannelError::NoAddress
        | ChannelError::NoQueue
        | ChannelError::NoAttempt
        | ChannelError::NoGrowth
        | ChannelError::NeverHedges
        | ChannelError::Endpoint
        | ChannelError::Closed
        | ChannelError::Meta(_)
        | ChannelError::Hub(_) => Ran::No,
        ChannelError::Call { ran, .. } => *ran,
    }
}

fn errors() -> Vec<ChannelError> {
    let thread = HubError::Thread(io::ErrorKind::OutOfMemory.into());
    let mut errors = vec![
        ChannelError::NoServer(Reasons::default()),
        ChannelError::Full,
        ChannelError::Address("nowhere".to_owned()),
        ChannelError::NoAddress,
        ChannelError::NoQueue,
        ChannelError::NoAttempt,
        ChannelError::NoGrowth,
        ChannelError::NeverHedges,
        ChannelError::Endpoint,
        ChannelError::Closed,
        MetaError::Key.into(),
        thread.into(),
        ChannelError::abandoned(),
    ];
    for ran in [Ran::No, Ran::Yes, Ran::Unknown] {
        let error = Error::NoSession;
        errors.push(ChannelError::Call { error, ran });
    }
    errors
}

#[test]
fn every_error_says_if_the_call_ran() {
    for error in errors() {
        assert_eq!(error.ran(), expected(&error), "{error:?}");
    }
    assert_eq!(ChannelError::abandoned().ran(), Ran::Unknown);
}

#[test]
fn an_error_with_an_earlier_attempt_answers_for_both() {
    for ran in [Ran::No, Ran::Yes, Ran::Unknown] {
        for mut error in errors() {
            let (before, text) = (error.ran(), error.to_string());
            error.on_earlier(ran);
            assert_eq!(error.ran(), before.join(ran), "{error:?}");
            // An error that has not changed keeps its text.
            assert_eq!(error.to_string() == text, error.ran() == before);
        }
    }
}

#[test]
fn the_end_of_a_call_says_whether_any_attempt_ran() {
    let reasons = || Reasons::default();
    for ran in [Ran::No, Ran::Yes, Ran::Unknown] {
        let whys = [
            Why::Closed,
            Why::DeadlinePassed,
            Why::NoServer,
            Why::Attempt(Fault::of(RpcError::PeerFailed(Ran::No))),
            Why::Attempt(Fault::of(RpcError::PeerFailed(Ran::Unknown))),
        ];
        for why in whys {
            let error = ChannelError::of(Failure { why, ran }, reasons);
            assert_eq!(error.ran(), ran, "{error}");
        }
    }
    // The deadline belongs to the call, so the error concerns all attempts.
    let why = Why::DeadlinePassed;
    let ran = Ran::No;
    let end = ChannelError::of(Failure { why, ran }, reasons);
    let ChannelError::Call { error, .. } = end else {
        panic!("the error is not a call's: {end}");
    };
    assert_eq!(error.ran(), Ran::No);
}
