//! The ledger finds every kind of fault that it checks for.

use dunlin_core::{CloseReason, Nanos, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use super::{Allowed, Issue, Ledger, Phase, SessionName, Shared};
use crate::cluster::message::{Kind, answer_of};
use crate::world::ProcessId;
use crate::world::net::PortId;
use crate::world::record::Recorder;

const CALLER: ProcessId = ProcessId {
    port: PortId(0),
    life: 1,
};
const SERVER: PortId = PortId(1);
/// The server opened it.
const SESSION: SessionName = (SERVER, 7);
const FORGETTING: Allowed = Allowed {
    anything: false,
    shortage: false,
    forgetting: true,
};

fn issue(ledger: &mut Ledger, kind: Kind, parts: (bool, bool)) -> u64 {
    let deadline = Some(Nanos(100));
    let (at, to) = (Nanos(1000), SERVER);
    ledger.issue(Issue {
        kind,
        from: CALLER,
        to,
        session: SESSION,
        at,
        deadline,
        answer_len: 8,
        room: 40,
        parts,
    })
}

/// The ledger's verdict after `body`, which gets an issued echo.
fn verdict(body: impl FnOnce(&mut Ledger, u64)) -> Option<String> {
    let shared = Shared::new(FORGETTING, false, Recorder::default());
    let mut ledger = shared.lock();
    let call = issue(&mut ledger, Kind::Echo, (false, false));
    body(&mut ledger, call);
    ledger.take_violation()
}

fn end(ledger: &mut Ledger, call: u64, result: Result<(), RpcError>) {
    let mut response = [0; 8];
    answer_of(call, &mut response);
    ledger.complete(call, CALLER, Nanos(1050), result, &response);
}

#[test]
fn a_call_that_runs_and_ends_once_is_fine() {
    let verdict = verdict(|ledger, call| {
        assert!(ledger.execute(Some(call), Kind::Echo, SERVER));
        end(ledger, call, Ok(()));
        assert_eq!(ledger.pending(), 0);
    });
    assert_eq!(verdict, None);
}

#[test]
fn handlers_that_run_twice_elsewhere_or_for_no_call_are_detected() {
    type Body = fn(&mut Ledger, u64);
    let cases: [(&str, Body); 4] = [
        ("more than once", |ledger, call| {
            ledger.execute(Some(call), Kind::Echo, SERVER);
            ledger.execute(Some(call), Kind::Echo, SERVER);
        }),
        ("wrong process", |ledger, call| {
            ledger.execute(Some(call), Kind::Echo, PortId(2));
        }),
        ("wrong handler", |ledger, call| {
            ledger.execute(Some(call), Kind::Later, SERVER);
        }),
        ("no call", |ledger, _| {
            ledger.execute(None, Kind::Echo, SERVER);
        }),
    ];
    for (expected, body) in cases {
        let verdict = verdict(body).unwrap();
        assert!(verdict.contains(expected), "{verdict}");
    }
}

#[test]
fn ends_that_nothing_explains_are_detected() {
    let wrong = [
        Ok(()),
        Err(RpcError::DeadlinePassed(Ran::Unknown)),
        Err(RpcError::Cancelled(Ran::Unknown)),
        Err(RpcError::rejected(ErrorCode::HANDLER_FAILED, true)),
        Err(RpcError::rejected(ErrorCode::CANCELLED, true)),
        Err(RpcError::ResponseTooLarge { size: 8 }),
    ];
    for result in wrong {
        assert!(
            verdict(|ledger, call| end(ledger, call, result)).is_some(),
            "{result:?}"
        );
    }
    let allowed = [
        Err(RpcError::PeerFailed(Ran::Unknown)),
        Err(RpcError::SessionClosed(CloseReason::Reset, Ran::Unknown)),
        Err(RpcError::rejected(ErrorCode::RESPONSE_GONE, true)),
    ];
    for result in allowed {
        assert_eq!(
            verdict(|ledger, call| end(ledger, call, result)),
            None,
            "{result:?}"
        );
    }
}

#[test]
fn an_end_must_report_correctly_whether_the_handler_ran() {
    let cancelled = |ran| Err(RpcError::Cancelled(ran));
    let late = verdict(|ledger, call| {
        ledger.cancel(call);
        end(ledger, call, cancelled(Ran::No));
        ledger.execute(Some(call), Kind::Echo, SERVER);
    });
    assert!(late.is_some_and(|what| what.contains("says that it does not")));
    let ends = [
        (true, Ran::No, true),
        (true, Ran::Yes, false),
        (true, Ran::Unknown, false),
        (false, Ran::No, false),
        (false, Ran::Yes, true),
    ];
    for (runs, ran, is_lie) in ends {
        let verdict = verdict(|ledger, call| {
            if runs {
                ledger.execute(Some(call), Kind::Echo, SERVER);
            }
            ledger.cancel(call);
            end(ledger, call, cancelled(ran));
        });
        assert_eq!(verdict.is_some(), is_lie, "{runs} {ran:?}: {verdict:?}");
    }
}

#[test]
fn the_calm_phase_allows_no_failures() {
    let verdict = verdict(|ledger, _| {
        (ledger.phase, ledger.lossy) = (Phase::Calm, false);
        let call = issue(ledger, Kind::Echo, (false, false));
        end(ledger, call, Err(RpcError::PeerFailed(Ran::Unknown)));
    });
    assert!(verdict.is_some());
}

#[test]
fn only_the_calls_of_a_session_that_was_given_up_may_end_with_it() {
    let disconnected = |given_up: &[SessionName]| {
        verdict(|ledger, _| {
            (ledger.phase, ledger.lossy) = (Phase::Calm, false);
            given_up.iter().for_each(|session| ledger.give_up(*session));
            let call = issue(ledger, Kind::Echo, (false, false));
            let error = RpcError::SessionClosed(CloseReason::Disconnected, Ran::Unknown);
            end(ledger, call, Err(error));
        })
    };
    assert_eq!(disconnected(&[SESSION]), None);
    let others = [(SERVER, SESSION.1 + 1), (CALLER.port, SESSION.1)];
    assert!(disconnected(&others).is_some());
    assert!(disconnected(&[]).is_some());
}

#[test]
fn ending_twice_or_with_another_response_is_detected() {
    let twice = verdict(|ledger, call| {
        ledger.execute(Some(call), Kind::Echo, SERVER);
        end(ledger, call, Ok(()));
        end(ledger, call, Ok(()));
    });
    assert!(twice.is_some_and(|what| what.contains("ended twice")));
    let mixed_up = verdict(|ledger, call| {
        ledger.execute(Some(call), Kind::Echo, SERVER);
        ledger.complete(call, CALLER, Nanos(1050), Ok(()), &[1; 8]);
    });
    assert!(mixed_up.is_some_and(|what| what.contains("another call's response")));
}

#[test]
fn a_crash_ends_only_the_calls_of_its_process() {
    let shared = Shared::new(FORGETTING, false, Recorder::default());
    let mut ledger = shared.lock();
    issue(&mut ledger, Kind::Echo, (false, false));
    ledger.end_process(ProcessId { life: 2, ..CALLER });
    assert_eq!(ledger.pending(), 1);
    ledger.end_process(CALLER);
    assert_eq!((ledger.pending(), ledger.counts.void), (0, 1));
}

#[test]
fn large_messages_are_given_up_only_where_endpoints_forget() {
    let given_up = |allowed: Allowed, parts| {
        let shared = Shared::new(allowed, false, Recorder::default());
        let mut ledger = shared.lock();
        let call = issue(&mut ledger, Kind::Echo, parts);
        end(
            &mut ledger,
            call,
            Err(RpcError::rejected(ErrorCode::OVERLOADED, true)),
        );
        ledger.take_violation()
    };
    assert_eq!(given_up(FORGETTING, (true, false)), None);
    assert!(given_up(FORGETTING, (false, true)).is_some());
    assert!(given_up(Allowed::default(), (true, false)).is_some());
}

#[test]
fn a_peer_failure_after_all_have_reached_each_other_is_detected() {
    let verdict = verdict(|ledger, call| {
        ledger.trusted_from = Nanos(1050);
        end(ledger, call, Err(RpcError::PeerFailed(Ran::Unknown)));
    });
    assert!(verdict.is_some());
}

#[test]
fn an_empty_request_that_runs_twice_is_detected() {
    let verdict = verdict(|ledger, _| {
        issue(ledger, Kind::Empty, (false, false));
        ledger.execute_empty(&[], SERVER);
        assert!(ledger.take_violation().is_none());
        ledger.execute_empty(&[], SERVER);
    });
    assert!(verdict.is_some());
}

#[test]
fn an_empty_request_that_was_refused_must_not_run() {
    let verdict = verdict(|ledger, _| {
        let call = issue(ledger, Kind::Empty, (false, false));
        ledger.refuse(call);
        ledger.execute_empty(&[], SERVER);
    });
    assert!(verdict.is_some());
}
