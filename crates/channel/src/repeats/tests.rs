//! Repeats at one server.

use dunlin_core::{CallErrorKind, Nanos, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use super::{Failures, Repeats};
use crate::config::Config;
use crate::fault::Fault;

const NOW: Nanos = Nanos::from_secs(5);

fn lost() -> Fault {
    Fault::Sent(RpcError::PeerFailed(Ran::Unknown))
}

fn repeats() -> Repeats {
    Repeats::new(Config::DEFAULT.retry, 3)
}

#[test]
fn a_request_that_may_have_run_is_repeated_twice_at_most_and_only_if_it_may_run_twice() {
    let (mut repeats, mut failures) = (repeats(), Failures::default());
    assert_eq!(repeats.on_failure(&mut failures, &lost(), false, NOW), None);
    let mut failures = Failures::default();
    let mut when = || repeats.on_failure(&mut failures, &lost(), true, NOW);
    let pauses = [when(), when(), when()];
    assert!(pauses[0] > Some(NOW) && pauses[1] > Some(NOW), "{pauses:?}");
    assert_eq!(pauses[2], None);
}

#[test]
fn requests_that_have_not_run_are_repeated_without_limit_after_pauses() {
    let (mut repeats, mut failures) = (repeats(), Failures::default());
    let refused = RpcError::rejected(ErrorCode::SHUTTING_DOWN, true);
    for fault in [
        Fault::NotTaken(CallErrorKind::NoSession),
        Fault::NotTaken(CallErrorKind::Overloaded),
        Fault::Sent(refused),
    ] {
        for _ in 0..1000 {
            let at = repeats.on_failure(&mut failures, &fault, false, NOW);
            let most = NOW + Config::DEFAULT.retry.pause.most;
            assert!(at > Some(NOW) && at <= Some(most), "{fault:?}: {at:?}");
        }
    }
}

#[test]
fn many_requests_that_fail_share_a_budget() {
    let overloaded = Fault::Sent(RpcError::rejected(ErrorCode::OVERLOADED, true));
    let mut repeats = repeats();
    let mut paid = 0;
    for _ in 0..10_000 {
        repeats.on_request();
        let when = repeats.on_failure(&mut Failures::default(), &overloaded, true, NOW);
        paid += u32::from(when.is_some());
    }
    // A tenth of the requests, the budget of the beginning, and ten for each of five seconds.
    assert!((1000..=1100 + 50).contains(&paid), "{paid}");
    // A request whose session has ended waits for another session, and has no more attempts than
    // others.
    let mut failures = Failures::default();
    for is_repeated in [true, true, false] {
        let when = repeats.on_failure(&mut failures, &lost(), true, NOW);
        assert_eq!(when.is_some(), is_repeated);
    }
}
