//! Inquiries alone: one session, calls by number, and a clock that the test moves.

use super::*;
use crate::handle::EndpointNum;

const TIMEOUT: Nanos = Nanos(8_000);
const CALL: ReqNum = ReqNum(3);

fn session(generation: u16) -> Session {
    Session::new(SessionIdx(1), generation, EndpointNum::chosen(1))
}

/// All calls of the test are overdue. Unless `silent`, packets of the session still come.
fn overdue(silent: bool) -> (impl Fn(ReqNum) -> bool, bool) {
    (|_| true, silent)
}

fn unknown() -> Account {
    Account::Fates(vec![(CALL, Fate::Unknown)])
}

/// Asks again and again, and gets the same account each time. Returns the number of accounts after
/// which the peer has failed, or `None` if it takes more than `most`.
fn accounts_until_failed(account: &Account, silent: bool, most: u8) -> Option<u8> {
    let mut inquiries = Inquiries::default();
    let mut now = Nanos::ZERO;
    (1..=most).find(|_| {
        inquiries.on_asked(session(1), &[CALL], now);
        now += Nanos(TIMEOUT.0 / QUESTIONS);
        inquiries.on_account(session(1), account, overdue(silent), TIMEOUT)
    })
}

#[test]
fn the_first_overdue_call_asks_and_the_next_ones_wait_for_the_account() {
    let mut inquiries = Inquiries::default();
    let next = |inquiries: &Inquiries, at| {
        inquiries.on_overdue(session(1), overdue(true), Nanos(at), TIMEOUT)
    };
    assert_eq!(next(&inquiries, 0), Next::Ask);
    inquiries.on_asked(session(1), &[CALL], Nanos(0));
    assert_eq!(next(&inquiries, 7_999), Next::Wait);
    assert_eq!(
        next(&inquiries, 8_000),
        Next::Fail,
        "neither account nor packet"
    );
}

#[test]
fn a_question_without_an_account_is_repeated_while_packets_come() {
    let mut inquiries = Inquiries::default();
    inquiries.on_asked(session(1), &[CALL], Nanos(0));
    let next = inquiries.on_overdue(session(1), overdue(false), TIMEOUT, TIMEOUT);
    assert_eq!(next, Next::Ask);
    let none = (|_| false, true);
    let next = inquiries.on_overdue(session(1), none, TIMEOUT, TIMEOUT);
    assert_eq!(next, Next::Ask, "the calls of the question have ended");
}

#[test]
fn accounts_in_vain_show_a_failure_sooner_in_a_silent_session() {
    assert_eq!(accounts_until_failed(&unknown(), true, 40), Some(SILENT));
    assert_eq!(accounts_until_failed(&unknown(), false, 40), Some(PATIENT));
}

#[test]
fn a_running_handler_excuses_a_peer_whose_packets_come() {
    let running = Account::Fates(vec![(CALL, Fate::Running)]);
    assert_eq!(accounts_until_failed(&running, false, 40), None);
    assert_eq!(accounts_until_failed(&running, true, 40), Some(SILENT));
}

#[test]
fn an_absent_peer_has_not_failed_but_a_silent_peer_without_an_account_has() {
    let away = Account::Away(Nanos(1));
    assert_eq!(accounts_until_failed(&away, true, 40), None);
    assert_eq!(accounts_until_failed(&Account::Nothing, true, 40), Some(1));
    assert_eq!(accounts_until_failed(&Account::Nothing, false, 40), None);
}

#[test]
fn after_an_absence_accounts_in_vain_are_counted_anew() {
    let mut inquiries = Inquiries::default();
    for round in 0..4 * u64::from(SILENT) {
        inquiries.on_asked(session(1), &[CALL], Nanos(round));
        let account = match round % 3 {
            2 => Account::Away(Nanos(1)),
            _ => unknown(),
        };
        assert!(!inquiries.on_account(session(1), &account, overdue(true), TIMEOUT));
    }
}

#[test]
fn questions_are_frequent_only_while_accounts_are_in_vain() {
    for (account, rest) in [
        (unknown(), TIMEOUT.0 / QUESTIONS),
        (Account::Away(Nanos(1)), TIMEOUT.0),
    ] {
        let mut inquiries = Inquiries::default();
        inquiries.on_asked(session(1), &[CALL], Nanos(0));
        inquiries.on_account(session(1), &account, overdue(true), TIMEOUT);
        let next = |at| inquiries.on_overdue(session(1), overdue(true), Nanos(at), TIMEOUT);
        assert_eq!((next(rest - 1), next(rest)), (Next::Wait, Next::Ask));
    }
}

#[test]
fn an_account_without_a_question_or_for_an_earlier_session_is_ignored() {
    let mut inquiries = Inquiries::default();
    let nothing = &Account::Nothing;
    assert!(!inquiries.on_account(session(1), nothing, overdue(true), TIMEOUT));
    inquiries.on_asked(session(2), &[CALL], Nanos(0));
    assert!(!inquiries.on_account(session(1), nothing, overdue(true), TIMEOUT));
    assert!(inquiries.on_account(session(2), nothing, overdue(true), TIMEOUT));
    let next = inquiries.on_overdue(session(1), overdue(true), Nanos(1), TIMEOUT);
    assert_eq!(next, Next::Ask, "the earlier session has no question");
    inquiries.on_ended(SessionIdx(1));
    let next = inquiries.on_overdue(session(2), overdue(true), Nanos(1), TIMEOUT);
    assert_eq!(next, Next::Ask);
}
