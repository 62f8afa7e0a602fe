//! Each test gives a machine one sequence of events and checks the actions that it returns.

mod drains;
mod growth;

use dunlin_core::{CallErrorKind, CloseReason, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use super::*;
use crate::{AttemptId, Fault, LinkId, Opened, Outcome};

const MILLI: Nanos = Nanos::from_millis(1);
const OPENED: Opened = Opened {
    server: 1,
    endpoint: 0,
    endpoints: 1,
    window: 8,
    draining: false,
};

/// A machine whose addresses are all open.
fn open(names: &[&str], config: Config) -> (Machine, Vec<LinkId>) {
    let mut machine = Machine::new(config, 1, Nanos::ZERO);
    machine.on_addresses(names.iter().copied(), Nanos::ZERO);
    let mut links = Vec::new();
    while let Some(action) = machine.poll(Nanos::ZERO) {
        let Action::Connect { link, .. } = action else {
            panic!("{action:?}")
        };
        links.push(link);
    }
    for (server, link) in (1..).zip(&links) {
        let opened = Opened { server, ..OPENED };
        machine.on_opened(*link, &opened, Nanos::ZERO);
    }
    (machine, links)
}

fn call(machine: &mut Machine, idempotent: bool, now: Nanos) -> CallId {
    let terms = Terms {
        idempotent,
        ..Terms::default()
    };
    machine.on_call(terms, now).expect("there is room")
}

/// Polls until the machine sends a request, and marks it as issued. Skips `Connect` actions.
fn sent(machine: &mut Machine, now: Nanos) -> (AttemptId, LinkId) {
    loop {
        match machine.poll(now) {
            Some(Action::Send { attempt, link, .. }) => {
                machine.on_issued(attempt);
                return (attempt, link);
            }
            Some(Action::Connect { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn failed(action: Option<Action>) -> Failure {
    match action {
        Some(Action::End {
            end: CallEnd::Failed(failure),
            ..
        }) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_sent_and_answered() {
    let (mut machine, links) = open(&["a"], Config::DEFAULT);
    assert_eq!(machine.state(), State::Ready);
    let id = call(&mut machine, false, MILLI);
    let (attempt, link) = sent(&mut machine, MILLI);
    assert_eq!(link, links[0]);
    assert_eq!(machine.poll(MILLI), None);
    machine.on_end(attempt, Outcome::Answered, MILLI);
    let end = CallEnd::Answered(attempt);
    assert_eq!(machine.poll(MILLI), Some(Action::End { call: id, end }));
    assert_eq!(machine.poll(MILLI), None);
    assert_eq!(machine.next_wakeup(), None);
}

#[test]
fn a_call_that_may_have_run_is_not_repeated() {
    let (mut machine, _) = open(&["a", "b"], Config::DEFAULT);
    call(&mut machine, false, MILLI);
    let (attempt, _) = sent(&mut machine, MILLI);
    let fault = Fault::Sent(RpcError::PeerFailed(Ran::Unknown));
    machine.on_end(attempt, Outcome::Failed(fault), MILLI);
    let why = Why::Attempt(fault);
    let ran = Ran::Unknown;
    assert_eq!(failed(machine.poll(MILLI)), Failure { why, ran });
}

#[test]
fn a_repeat_of_an_idempotent_call_goes_to_another_server() {
    let (mut machine, _) = open(&["a", "b"], Config::DEFAULT);
    call(&mut machine, true, MILLI);
    let (attempt, first) = sent(&mut machine, MILLI);
    let fault = Fault::Sent(RpcError::PeerFailed(Ran::Unknown));
    machine.on_end(attempt, Outcome::Failed(fault), MILLI);
    assert_eq!(machine.poll(MILLI), None, "it pauses");
    let then = machine.next_wakeup().expect("until a time");
    assert!(MILLI.times(2) <= then && then <= MILLI.times(11));
    let again = std::iter::from_fn(|| machine.poll(then));
    let again: Vec<Action> = again.collect();
    let is_other = |action: &Action| matches!(action, Action::Send { link, .. } if *link != first);
    assert!(again.iter().any(is_other), "{again:?}");
}

#[test]
fn a_server_that_shuts_down_gets_no_calls_and_is_disconnected_after_its_last_one() {
    let (mut machine, links) = open(&["a", "b"], Config::DEFAULT);
    let mut calls: Vec<(AttemptId, LinkId)> = Vec::new();
    while calls.iter().filter(|(_, link)| *link == links[0]).count() < 2 {
        call(&mut machine, false, MILLI);
        calls.push(sent(&mut machine, MILLI));
    }
    calls.retain(|(_, link)| *link == links[0]);
    let gone = Fault::Sent(RpcError::rejected(ErrorCode::SHUTTING_DOWN, true));
    machine.on_end(calls[0].0, Outcome::Failed(gone), MILLI);
    assert_eq!(sent(&mut machine, MILLI).1, links[1]);
    for _ in 0..20 {
        call(&mut machine, false, MILLI);
        assert_eq!(sent(&mut machine, MILLI).1, links[1]);
    }
    assert_eq!(machine.state(), State::Degraded);
    machine.on_end(calls[1].0, Outcome::Answered, MILLI);
    let left: Vec<Action> = std::iter::from_fn(|| machine.poll(MILLI)).collect();
    let link = links[0];
    assert!(left.contains(&Action::Disconnect { link }), "{left:?}");
    assert_eq!(machine.counters().drains, 1);
    assert_eq!(machine.counters().paid_repeats, 0);
}

#[test]
fn a_late_refusal_says_nothing_about_the_process_that_came_after() {
    let (mut machine, links) = open(&["a"], Config::DEFAULT);
    call(&mut machine, false, MILLI);
    let (attempt, _) = sent(&mut machine, MILLI);
    machine.on_closed(links[0], CloseReason::Reset, MILLI);
    let then = machine.next_wakeup().expect("it is tried again");
    let Some(Action::Connect { link, .. }) = machine.poll(then) else {
        panic!("no connect")
    };
    machine.on_opened(link, &OPENED, then);
    let gone = Fault::Sent(RpcError::rejected(ErrorCode::SHUTTING_DOWN, true));
    machine.on_end(attempt, Outcome::Failed(gone), then);
    assert_eq!(sent(&mut machine, then).1, link);
    assert_eq!(machine.counters().drains, 0);
}

#[test]
fn a_cancelled_call_that_was_not_handed_out_leaves_no_packet() {
    let (mut machine, _) = open(&["a"], Config::DEFAULT);
    let id = call(&mut machine, false, MILLI);
    machine.on_cancel(id, MILLI);
    assert_eq!(machine.poll(MILLI), None);
    let outstanding = machine.addresses().map(|view| view.outstanding);
    assert_eq!(outstanding.sum::<u32>(), 0);
}

#[test]
fn a_cancelled_call_stays_outstanding_until_its_attempt_ends() {
    let (mut machine, _) = open(&["a"], Config::DEFAULT);
    let id = call(&mut machine, false, MILLI);
    let (attempt, _) = sent(&mut machine, MILLI);
    machine.on_cancel(id, MILLI);
    assert_eq!(machine.poll(MILLI), Some(Action::Cancel { attempt }));
    let outstanding = |machine: &Machine| machine.addresses().map(|it| it.outstanding).sum::<u32>();
    assert_eq!(outstanding(&machine), 1);
    machine.on_end(attempt, Outcome::Answered, MILLI);
    assert_eq!(outstanding(&machine), 0);
    assert_eq!(machine.poll(MILLI), None, "nothing is delivered");
}

#[test]
fn a_request_that_was_not_taken_goes_elsewhere_when_its_link_is_lost() {
    let (mut machine, links) = open(&["a", "b"], Config::DEFAULT);
    for (lost, drains) in [(links[0], true), (links[1], false)] {
        let mut waiting = 0;
        for _ in 0..16 {
            call(&mut machine, false, MILLI);
            waiting += 1;
        }
        match drains {
            true => machine.on_serving(lost, true, 1, MILLI),
            false => machine.on_closed(lost, CloseReason::Reset, MILLI),
        }
        while let Some(action) = machine.poll(MILLI) {
            if let Action::Send { link, .. } = action {
                assert_ne!(link, lost);
                waiting -= 1;
            }
        }
        let expected = if drains { 0 } else { 16 };
        assert_eq!(waiting, expected, "those without a server wait for one");
    }
}

#[test]
fn an_attempt_that_has_ended_is_not_cancelled() {
    let (mut machine, _) = open(&["a"], Config::DEFAULT);
    let id = call(&mut machine, false, MILLI);
    let (attempt, _) = sent(&mut machine, MILLI);
    machine.on_cancel(id, MILLI);
    machine.on_end(attempt, Outcome::Answered, MILLI);
    assert_eq!(machine.poll(MILLI), None);
}

#[test]
fn an_end_that_was_not_taken_is_not_delivered_after_the_drop() {
    let (mut machine, _) = open(&["a"], Config::DEFAULT);
    let id = call(&mut machine, false, MILLI);
    let (attempt, _) = sent(&mut machine, MILLI);
    machine.on_end(attempt, Outcome::Answered, MILLI);
    machine.on_cancel(id, MILLI);
    assert_eq!(machine.poll(MILLI), None);
}

#[test]
fn a_full_window_asks_for_another_link_at_another_endpoint() {
    let (mut machine, links) = open(&["a"], Config::DEFAULT);
    let opened = Opened {
        endpoints: 2,
        window: 2,
        ..OPENED
    };
    // The same server, which now reports how many endpoints it has.
    machine.on_closed(links[0], CloseReason::Reset, MILLI);
    let now = machine.next_wakeup().expect("it is tried again");
    let Some(Action::Connect { link, .. }) = machine.poll(now) else {
        panic!("no connect")
    };
    machine.on_opened(link, &opened, now);
    for _ in 0..2 {
        call(&mut machine, false, now);
        assert_eq!(sent(&mut machine, now).1, link);
    }
    assert_eq!(machine.poll(now), None);
    let later = now + Config::DEFAULT.reconnect.most;
    call(&mut machine, false, later);
    let endpoint = match machine.poll(later) {
        Some(Action::Connect { endpoint, .. }) => endpoint,
        other => panic!("{other:?}"),
    };
    assert_eq!(endpoint, Some(1));
    assert_eq!(
        sent(&mut machine, later).1,
        link,
        "the call does not wait for it"
    );
    call(&mut machine, false, later);
    let next = machine.poll(later);
    assert!(
        matches!(next, Some(Action::Send { .. })),
        "one at a time: {next:?}"
    );
}

#[test]
fn two_addresses_of_one_process_are_one_server() {
    let mut machine = Machine::new(Config::DEFAULT, 1, Nanos::ZERO);
    machine.on_addresses(["a", "b", "c"], Nanos::ZERO);
    let mut links = Vec::new();
    while let Some(Action::Connect { link, .. }) = machine.poll(Nanos::ZERO) {
        links.push(link);
    }
    for (link, server) in links.iter().zip([1, 1, 2]) {
        let opened = Opened { server, ..OPENED };
        machine.on_opened(*link, &opened, Nanos::ZERO);
    }
    let mut got = [0; 3];
    for _ in 0..1000 {
        call(&mut machine, false, MILLI);
        let (attempt, link) = sent(&mut machine, MILLI);
        got[links.iter().position(|it| *it == link).expect("ours")] += 1;
        machine.on_end(attempt, Outcome::Answered, MILLI);
        machine.poll(MILLI);
    }
    assert_eq!(got[1], 0);
    assert!((400..600).contains(&got[0]), "{got:?}");
    machine.on_closed(links[0], CloseReason::Reset, MILLI);
    let mut seen = false;
    for _ in 0..50 {
        call(&mut machine, false, MILLI);
        seen |= sent(&mut machine, MILLI).1 == links[1];
    }
    assert!(seen, "its second address takes over");
}

#[test]
fn without_patience_a_call_fails_at_once() {
    let config = Config {
        patience: Nanos::ZERO,
        ..Config::DEFAULT
    };
    let mut machine = Machine::new(config, 1, Nanos::ZERO);
    call(&mut machine, false, Nanos::ZERO);
    let ran = Ran::No;
    let why = Why::NoServer;
    assert_eq!(failed(machine.poll(Nanos::ZERO)), Failure { why, ran });
}

#[test]
fn a_full_backlog_is_tried_again_after_a_pause() {
    let (mut machine, links) = open(&["a"], Config::DEFAULT);
    let id = call(&mut machine, false, MILLI);
    let mut now = MILLI;
    for _ in 0..2 {
        let (attempt, link) = sent(&mut machine, now);
        assert_eq!(link, links[0]);
        let full = Fault::NotTaken(CallErrorKind::Overloaded);
        machine.on_end(attempt, Outcome::Failed(full), now);
        assert_eq!(machine.poll(now), None);
        let then = machine.next_wakeup().expect("it pauses");
        assert!(then > now);
        now = then;
    }
    let (attempt, _) = sent(&mut machine, now);
    machine.on_end(attempt, Outcome::Answered, now);
    let end = CallEnd::Answered(attempt);
    assert_eq!(machine.poll(now), Some(Action::End { call: id, end }));
}

#[test]
fn a_channel_has_a_limit() {
    let config = Config {
        calls: 2,
        ..Config::DEFAULT
    };
    let (mut machine, _) = open(&["a"], config);
    let first = call(&mut machine, false, MILLI);
    call(&mut machine, false, MILLI);
    assert_eq!(machine.on_call(Terms::default(), MILLI), Err(Full));
    machine.on_cancel(first, MILLI);
    assert!(machine.on_call(Terms::default(), MILLI).is_ok());
}

#[test]
fn a_closed_channel_ends_its_calls_and_its_links() {
    let (mut machine, links) = open(&["a", "b"], Config::DEFAULT);
    call(&mut machine, true, MILLI);
    let (attempt, _) = sent(&mut machine, MILLI);
    machine.close(MILLI);
    let actions: Vec<Action> = std::iter::from_fn(|| machine.poll(MILLI)).collect();
    assert!(actions.contains(&Action::Cancel { attempt }));
    for link in links {
        assert!(actions.contains(&Action::Disconnect { link }));
    }
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::End { .. }))
    );
    machine.on_end(attempt, Outcome::Answered, MILLI);
    call(&mut machine, true, MILLI);
    assert_eq!(failed(machine.poll(MILLI)).why, Why::Closed);
    assert_eq!(machine.next_wakeup(), None);
}

#[test]
fn a_channel_with_an_empty_list_is_connecting() {
    let mut machine = Machine::new(Config::DEFAULT, 1, Nanos::ZERO);
    assert_eq!(machine.state(), State::Connecting);
    machine.on_addresses([], Nanos::ZERO);
    assert_eq!(machine.state(), State::Connecting);
    assert_eq!(machine.next_wakeup(), None);
}

#[test]
fn a_state_names_the_last_error_of_each_address() {
    let (mut machine, links) = open(&["a", "b"], Config::DEFAULT);
    let version = machine.version();
    machine.on_closed(links[0], CloseReason::PeerFailed, MILLI);
    assert!(machine.version() > version);
    assert_eq!(machine.state(), State::Degraded);
    let reason = crate::Reason::Closed(CloseReason::PeerFailed);
    let views: Vec<_> = machine
        .addresses()
        .map(|it| (it.state, it.last_error))
        .collect();
    assert_eq!(views, [(State::Gone, Some(reason)), (State::Ready, None)]);
    machine.on_closed(links[1], CloseReason::PeerFailed, MILLI);
    assert_eq!(machine.state(), State::Gone);
}

/// Like [`sent`], but does not mark the request as issued: it still waits in the driver.
fn waits(machine: &mut Machine, now: Nanos) -> (AttemptId, LinkId) {
    loop {
        match machine.poll(now) {
            Some(Action::Send { attempt, link, .. }) => return (attempt, link),
            Some(Action::Connect { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn attempts_that_never_left_do_not_count_until_patience_is_over() {
    let patience = MILLI.times(2000);
    let config = Config {
        patience,
        ..Config::DEFAULT
    };
    let (mut machine, _) = open(&["a"], config);
    call(&mut machine, false, MILLI);
    let full = Fault::NotTaken(CallErrorKind::Overloaded);
    let (mut now, mut count) = (MILLI, 0);
    let failure = loop {
        match machine.poll(now) {
            Some(Action::Send { attempt, .. }) => {
                machine.on_end(attempt, Outcome::Failed(full), now);
                count += 1;
            }
            None => now = machine.next_wakeup().expect("it pauses"),
            end => break failed(end),
        }
    };
    assert!(count > 10, "{count}");
    assert!(
        MILLI + patience <= now && now <= MILLI.times(2110),
        "{now:?}"
    );
    let (why, ran) = (Why::Attempt(full), Ran::No);
    assert_eq!(failure, Failure { why, ran });
}

#[test]
fn a_deadline_that_passes_in_the_driver_proves_that_the_call_has_not_run() {
    for (is_issued, ran) in [(false, Ran::No), (true, Ran::Unknown)] {
        let (mut machine, _) = open(&["a"], Config::DEFAULT);
        let deadline = Some(MILLI.times(5));
        let terms = Terms {
            deadline,
            ..Terms::default()
        };
        machine.on_call(terms, MILLI).expect("there is room");
        let (attempt, _) = waits(&mut machine, MILLI);
        if is_issued {
            machine.on_issued(attempt);
        }
        let actions = std::iter::from_fn(|| machine.poll(MILLI.times(5)));
        let end = actions.filter(|action| matches!(action, Action::End { .. }));
        let why = Why::DeadlinePassed;
        assert_eq!(failed(end.last()), Failure { why, ran });
    }
}

#[test]
fn an_attempt_that_waits_moves_to_a_new_link() {
    let mut machine = Machine::new(Config::DEFAULT, 1, Nanos::ZERO);
    machine.on_addresses(["a"], Nanos::ZERO);
    let narrow = Opened {
        window: 1,
        ..OPENED
    };
    let connect = |machine: &mut Machine| match machine.poll(Nanos::ZERO) {
        Some(Action::Connect { link, .. }) => link,
        other => panic!("{other:?}"),
    };
    let first = connect(&mut machine);
    machine.on_opened(first, &narrow, Nanos::ZERO);
    for _ in 0..3 {
        call(&mut machine, false, Nanos::ZERO);
    }
    let mut second = None;
    let mut sent = Vec::new();
    while let Some(action) = machine.poll(Nanos::ZERO) {
        match action {
            Action::Connect { link, .. } => second = Some(link),
            Action::Send { attempt, link, .. } => sent.push((attempt, link)),
            other => panic!("{other:?}"),
        }
    }
    assert!(sent.iter().all(|(_, link)| *link == first));
    machine.on_issued(sent[0].0);
    assert_eq!(machine.move_waiting(sent[1].0), None, "there is no room");
    let second = second.expect("the first is full");
    machine.on_opened(second, &narrow, Nanos::ZERO);
    assert_eq!(machine.move_waiting(sent[0].0), None, "it may have left");
    assert_eq!(machine.move_waiting(sent[1].0), Some(second));
    assert_eq!(machine.move_waiting(sent[2].0), None, "that is full too");
    machine.on_issued(sent[1].0);
    machine.on_end(sent[0].0, Outcome::Answered, MILLI);
    assert_eq!(
        machine.move_waiting(sent[2].0),
        None,
        "it waits for the same"
    );
}
