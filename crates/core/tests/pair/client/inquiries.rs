//! Calls that make no progress, and the account that the peer gives of them over the control plane
//! (rules S11, C11).

use dunlin_core::{Account, Config, Nanos, Question, Report, RpcError, SessionOptions, Tag};
use dunlin_testkit::forger::{Forger, KINDS};
use dunlin_testkit::pair::{DATA_SIZE, ECHO, HOLD, Pair, deliver};
use dunlin_wire::control::Fate;
use dunlin_wire::{PacketType, Ran, ReqNum};

const TIMEOUT: Nanos = Nanos::from_secs(1);
const STEP: Nanos = Nanos::from_millis(10);

/// The client's question, if it has one.
fn question(pair: &mut Pair) -> Option<Question> {
    match pair.client.rpc.lifecycle().take_report()? {
        Report::Question(question) => Some(question),
        Report::Closed(_) | Report::Challenged(_) => None,
    }
}

fn account(pair: &mut Pair, account: &Account) {
    let session = pair.session;
    pair.client.rpc.lifecycle().on_account(session, account);
    pair.client.rpc.run_once();
}

/// Lets the server's endpoint answer the question.
fn answer_question(pair: &mut Pair, question: &Question) {
    let back = pair.back;
    let fates = pair.server.rpc.lifecycle();
    let fates = Account::Fates(fates.fates_of(back, &question.requests));
    account(pair, &fates);
}

/// Lets time pass with `pass`, and answers questions with `answer`. Returns the time until the
/// first call ends, if that is within `span`.
fn end_within(
    pair: &mut Pair,
    span: Nanos,
    mut pass: impl FnMut(&mut Pair),
    mut answer: impl FnMut(&mut Pair, &Question),
) -> Option<Nanos> {
    let start = pair.clock.read();
    while pair.clock.read() < start + span {
        pass(pair);
        if let Some(question) = question(pair) {
            answer(pair, &question);
        }
        if !pair.done().is_empty() {
            return Some(pair.clock.read().since(start));
        }
    }
    None
}

fn alone(pair: &mut Pair) {
    pair.pass_alone(STEP);
}

fn together(pair: &mut Pair) {
    pair.pass(STEP);
}

fn assert_failed(pair: &Pair) {
    assert_eq!(
        pair.done(),
        [(Tag(1), Err(RpcError::PeerFailed(Ran::Unknown)))]
    );
}

#[test]
fn the_client_asks_about_a_call_without_progress_for_the_timeout() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.call(ECHO, b"y", 2);
    pair.pass_alone(Nanos::from_millis(990));
    assert_eq!(question(&mut pair), None);
    pair.pass_alone(Nanos::from_millis(140));
    let asked = question(&mut pair).unwrap();
    assert_eq!(asked.session, pair.session);
    assert_eq!(asked.requests, [ReqNum(0), ReqNum(1)]);
    assert_eq!(question(&mut pair), None, "once");
}

#[test]
fn a_peer_that_is_in_a_handler_does_not_fail() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    let mut asked = 0;
    let away = |pair: &mut Pair, _: &Question| {
        asked += 1;
        account(pair, &Account::Away(TIMEOUT));
    };
    let ended = end_within(&mut pair, Nanos::from_secs(60), alone, away);
    assert_eq!(ended, None);
    assert!((50..=60).contains(&asked), "asked {asked} times in 60 s");
    pair.pass(Nanos::from_millis(300));
    assert_eq!(pair.done(), [(Tag(1), Ok(b"x".to_vec()))]);
    pair.assert_clean();
}

#[test]
fn a_request_that_is_handled_for_a_minute_is_waited_for() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    let ended = end_within(&mut pair, Nanos::from_secs(60), together, answer_question);
    assert_eq!(ended, None);
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    held.reply_bytes(&mut pair.server.rpc.cx(), b"done");
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"done".to_vec()))]);
    pair.assert_clean();
}

#[test]
fn a_deadline_ends_the_call_of_a_handler_that_never_returns() {
    let mut pair = Pair::new();
    let deadline = Nanos::from_millis(2_500);
    pair.call_for(ECHO, b"x", 1, Some(deadline));
    let away = |pair: &mut Pair, _: &Question| account(pair, &Account::Away(TIMEOUT));
    let ended = end_within(&mut pair, TIMEOUT.times(5), alone, away).unwrap();
    assert!(ended < deadline + STEP.times(2), "{ended:?}");
    assert_eq!(
        pair.done(),
        [(Tag(1), Err(RpcError::DeadlinePassed(Ran::Unknown)))]
    );
    // The slot stays taken until the handler returns or the session ends.
    pair.client.rpc.app_mut().done.clear();
    assert_eq!(end_within(&mut pair, TIMEOUT.times(20), alone, away), None);
    assert_eq!(pair.client.rpc.session_count(), 1);
}

#[test]
fn a_peer_that_lives_and_cannot_be_reached_has_failed_within_two_timeouts() {
    for data in [&b"x"[..], &[7; 5_000]] {
        let mut pair = Pair::new();
        pair.call(ECHO, data, 1);
        let ended = end_within(&mut pair, TIMEOUT.times(3), alone, answer_question).unwrap();
        assert!(TIMEOUT < ended && ended < TIMEOUT.times(2), "{ended:?}");
        assert_failed(&pair);
    }
}

#[test]
fn a_peer_whose_answers_are_lost_has_failed_within_two_timeouts() {
    for kind in [ECHO, HOLD] {
        let mut pair = Pair::new();
        pair.call(kind, b"x", 1);
        let deaf = |pair: &mut Pair| {
            pair.pass_at_client(STEP);
            pair.step_server();
            pair.server.out.borrow_mut().clear();
        };
        let ended = end_within(&mut pair, TIMEOUT.times(3), deaf, answer_question).unwrap();
        assert!(TIMEOUT < ended && ended < TIMEOUT.times(2), "{ended:?}");
        assert_failed(&pair);
    }
}

#[test]
fn a_peer_that_says_nothing_at_all_has_failed_after_two_timeouts() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    let ended = end_within(&mut pair, TIMEOUT.times(3), alone, |_, _| {}).unwrap();
    let limit = TIMEOUT.times(2) + Nanos(TIMEOUT.0 / 4);
    assert!(TIMEOUT.times(2) <= ended && ended < limit, "{ended:?}");
    assert_failed(&pair);
}

#[test]
fn a_peer_that_cannot_be_asked_fails_by_its_silence() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    let nothing = |pair: &mut Pair, _: &Question| account(pair, &Account::Nothing);
    let ended = end_within(&mut pair, TIMEOUT.times(3), alone, nothing).unwrap();
    let limit = TIMEOUT + Nanos(TIMEOUT.0 / 3);
    assert!(TIMEOUT < ended && ended < limit, "{ended:?}");
    assert_failed(&pair);
    // A server that answers probes is not silent.
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    assert_eq!(
        end_within(&mut pair, TIMEOUT.times(20), together, nothing),
        None
    );
}

/// Makes calls for sixty seconds, with a forger that attacks both sides. Each call ends in time,
/// with the right response or an error. Returns the number of calls that ended.
fn survive_forger(seed: u64, kinds: &[PacketType]) -> usize {
    const LIMIT: Nanos = TIMEOUT.times(6);
    const SIZES: [usize; 3] = [16, 5_000, 40_000];
    let options = SessionOptions::DEFAULT.with_window(1);
    let mut forger = Forger::new(seed, DATA_SIZE);
    let (mut ended, mut passed) = (0, Nanos::ZERO);
    while passed < Nanos::from_secs(60) {
        let mut pair = Pair::with(Config::default(), options);
        let (session, back) = (pair.session, pair.back);
        let at_client = pair.client.rpc.lifecycle().offer_of(session).unwrap();
        let at_server = pair.server.rpc.lifecycle().offer_of(back).unwrap();
        for req in 0.. {
            if pair.client.rpc.session_count() == 0 || passed >= Nanos::from_secs(60) {
                break;
            }
            let data = vec![7; SIZES[req as usize % SIZES.len()]];
            crate::transfer::large::call(&mut pair, ECHO, &data, u64::from(req));
            let begun = pair.clock.read();
            // The first packets arrive before those of the forger.
            pair.step_client();
            deliver(&pair.client.out, &pair.server.inbox);
            while pair.done().is_empty() {
                for kind in kinds {
                    let (inbox, offer) = match kind {
                        PacketType::Cr | PacketType::Resp => (&pair.client.inbox, &at_client),
                        _ => (&pair.server.inbox, &at_server),
                    };
                    let names = (offer.session, offer.token);
                    let packet = forger.packet(*kind, names, ReqNum(req));
                    inbox.borrow_mut().push_back(packet);
                }
                pair.pass(STEP);
                if let Some(asked) = question(&mut pair) {
                    answer_question(&mut pair, &asked);
                }
                let took = pair.clock.read().since(begun);
                assert!(took < LIMIT, "seed {seed}, {kinds:?}: call {req} hangs");
            }
            passed += pair.clock.read().since(begun) + STEP;
            let (_, result) = pair.client.rpc.app_mut().done.pop().unwrap();
            let right = result.is_err() || result == Ok(data);
            assert!(
                right,
                "seed {seed}, {kinds:?}: call {req} has a wrong answer, {result:?}"
            );
            ended += 1;
        }
    }
    ended
}

#[test]
fn no_call_hangs_while_a_forger_knows_the_token_of_its_session() {
    let alone = KINDS.map(|kind| vec![kind]);
    for (seed, kinds) in alone.iter().chain([&KINDS.to_vec()]).enumerate() {
        let ended = survive_forger(seed as u64, kinds);
        assert!(ended >= 10, "{ended} calls in 60 s");
    }
}

#[test]
fn an_account_that_was_not_asked_for_changes_nothing() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.run();
    for _ in 0..100 {
        account(&mut pair, &Account::Fates(vec![(ReqNum(0), Fate::Gone)]));
        account(&mut pair, &Account::Nothing);
        pair.pass(STEP);
    }
    assert!(pair.done().is_empty());
}

#[test]
fn a_direction_that_loses_nearly_every_packet_is_no_failure() {
    let options = SessionOptions::DEFAULT.with_window(8).with_credits(4);
    let mut pair = Pair::with(Config::default(), options);
    for tag in 0..8 {
        crate::transfer::large::call(&mut pair, ECHO, &[7; 100_000], tag);
    }
    let trickle = |pair: &mut Pair| {
        pair.clock.pass(STEP);
        pair.step_client();
        let sent = pair.client.out.borrow_mut().drain(..).next();
        pair.server.inbox.borrow_mut().extend(sent);
        pair.step_server();
        let sent = pair.server.out.borrow_mut().drain(..).next();
        pair.client.inbox.borrow_mut().extend(sent);
    };
    end_within(&mut pair, TIMEOUT.times(20), trickle, answer_question);
    let failed = Err(RpcError::PeerFailed(Ran::Unknown));
    assert!(pair.done().iter().all(|(_, result)| *result != failed));
    assert_eq!(pair.client.rpc.session_count(), 1);
}

#[test]
fn the_fates_of_requests_are_known() {
    let mut pair = Pair::new();
    let fates = |pair: &mut Pair| {
        let back = pair.back;
        let numbers = [0, 1, 2, 3, 8].map(ReqNum);
        let fates = pair.server.rpc.lifecycle().fates_of(back, &numbers);
        fates.into_iter().map(|(_, fate)| fate).collect::<Vec<_>>()
    };
    assert_eq!(fates(&mut pair), [Fate::Unknown; 5]);
    pair.call(ECHO, b"answered", 1);
    pair.call(HOLD, b"runs", 2);
    pair.run();
    assert_eq!(
        fates(&mut pair)[..3],
        [Fate::Answered, Fate::Running, Fate::Unknown]
    );
    pair.pass(Nanos::from_secs(3));
    assert_eq!(fates(&mut pair)[..2], [Fate::Gone, Fate::Running]);
}
