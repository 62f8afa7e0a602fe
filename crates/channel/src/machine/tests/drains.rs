//! Calls that draining servers refuse.

use super::*;
use crate::CallEnd;

const GONE: Fault = Fault::Sent(RpcError::rejected(ErrorCode::SHUTTING_DOWN, true));

/// The next attempt. Moves the time on if a pause comes first.
fn next_sent(machine: &mut Machine, now: &mut Nanos) -> (AttemptId, LinkId) {
    loop {
        match machine.poll(*now) {
            Some(Action::Send { attempt, link, .. }) => {
                machine.on_issued(attempt);
                return (attempt, link);
            }
            Some(Action::Connect { .. } | Action::Disconnect { .. }) => {}
            Some(other) => panic!("{other:?}"),
            None => *now = machine.next_wakeup().expect("the call waits").max(*now),
        }
    }
}

#[test]
fn a_call_that_more_servers_refuse_than_it_has_attempts_goes_to_the_next() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let (mut machine, _) = open(&names, Config::DEFAULT);
    let id = call(&mut machine, false, MILLI);
    let (mut now, mut seen) = (MILLI, Vec::new());
    for _ in 1..names.len() {
        let (attempt, link) = next_sent(&mut machine, &mut now);
        assert!(!seen.contains(&link), "it drains");
        seen.push(link);
        machine.on_end(attempt, Outcome::Failed(GONE), now);
    }
    let (attempt, _) = next_sent(&mut machine, &mut now);
    machine.on_end(attempt, Outcome::Answered, now);
    let (call, end) = (id, CallEnd::Answered(attempt));
    let mut actions = std::iter::from_fn(|| machine.poll(now));
    assert!(actions.any(|action| action == Action::End { call, end }));
    assert_eq!(machine.counters().paid_repeats, 0);
}

#[test]
fn a_server_that_refuses_for_ever_ends_a_call_after_its_patience() {
    let config = Config {
        patience: MILLI.times(500),
        ..Config::DEFAULT
    };
    let (mut machine, links) = open(&["a"], config);
    let mut link = links[0];
    call(&mut machine, false, MILLI);
    let mut now = MILLI;
    let mut refusals = 0;
    // The server takes a new session after each refusal, as if it had come back.
    let end = loop {
        assert!(now < Nanos::from_secs(5), "the call never ends");
        match machine.poll(now) {
            Some(Action::Send { attempt, .. }) => {
                machine.on_issued(attempt);
                refusals += 1;
                machine.on_end(attempt, Outcome::Failed(GONE), now);
            }
            Some(Action::Disconnect { .. }) => {
                machine.on_closed(link, CloseReason::Disconnected, now);
            }
            Some(Action::Connect { link: next, .. }) => {
                link = next;
                machine.on_opened(link, &OPENED, now);
            }
            Some(Action::End { end, .. }) => break end,
            Some(other) => panic!("{other:?}"),
            None => now = machine.next_wakeup().expect("the call waits").max(now),
        }
    };
    assert!(matches!(end, CallEnd::Failed(_)), "{end:?}");
    assert!(now >= MILLI.times(500), "{now:?}");
    assert!(refusals > 3, "{refusals}");
}

/// Brings the only server back after it has drained.
fn come_back(machine: &mut Machine, now: &mut Nanos) {
    loop {
        match machine.poll(*now) {
            Some(Action::Connect { link, .. }) => {
                return machine.on_opened(link, &OPENED, *now);
            }
            Some(Action::Disconnect { .. }) => {}
            Some(other) => panic!("{other:?}"),
            None => *now = machine.next_wakeup().expect("it connects again").max(*now),
        }
    }
}

#[test]
fn a_refused_call_goes_before_a_later_call_that_waits_already() {
    let (mut machine, links) = open(&["a"], Config::DEFAULT);
    let mut now = MILLI;
    let old = call(&mut machine, false, now);
    let (attempt, _) = sent(&mut machine, now);
    machine.on_serving(links[0], true, 1, now);
    call(&mut machine, false, now);
    machine.on_end(attempt, Outcome::Failed(GONE), now);
    come_back(&mut machine, &mut now);
    let sends = std::iter::from_fn(|| machine.poll(now));
    let mut calls = sends.filter_map(|action| match action {
        Action::Send { call, .. } => Some(call),
        _ => None,
    });
    assert_eq!(calls.next(), Some(old));
    assert!(calls.next().is_some(), "the other one is sent too");
}

#[test]
fn a_call_that_was_refused_often_waits_without_a_pause() {
    let (mut machine, _) = open(&["a"], Config::DEFAULT);
    let mut now = MILLI;
    let only = call(&mut machine, false, now);
    for _ in 0..5 {
        let Some(Action::Send { attempt, call, .. }) = machine.poll(now) else {
            panic!("the call is not sent at once");
        };
        assert_eq!(call, only);
        machine.on_issued(attempt);
        machine.on_end(attempt, Outcome::Failed(GONE), now);
        come_back(&mut machine, &mut now);
    }
}
