//! Notices without an endpoint: each comes out once, in order, and those for the control plane wait
//! until it takes them.

use dunlin_wire::{HEADER_LEN, ReqNum, Token};

use super::*;
use crate::error::CloseReason;
use crate::handle::{EndpointNum, RequestId, Session, SessionIdx};
use crate::session::challenge::header_to;
use crate::session::lifecycle::Closed;
use crate::tests::{TERMS, open_session};

fn session(index: u32) -> Session {
    Session::new(SessionIdx(index), 1, EndpointNum::chosen(1))
}

#[test]
fn events_come_out_in_their_order_and_once() {
    let (first, second) = (session(1), session(2));
    let mut notices = Notices::default();
    notices.on_session(SessionEvent::Connected(first));
    notices.on_session(SessionEvent::Accepted(second));
    assert!(notices.is_waiting());
    let next = notices.pop_session();
    assert!(matches!(next, Some(SessionEvent::Connected(it)) if it == first));
    let next = notices.pop_session();
    assert!(matches!(next, Some(SessionEvent::Accepted(it)) if it == second));
    assert!(notices.pop_session().is_none() && !notices.is_waiting());
}

#[test]
fn a_request_that_is_given_up_waits_for_the_user() {
    let request = RequestId {
        index: crate::handle::RequestIdx(3),
        generation: 1,
        req: ReqNum(9),
    };
    let mut notices = Notices::default();
    notices.on_given_up(request);
    assert!(notices.is_waiting());
    assert_eq!(notices.pop_given_up(), Some(request));
    assert_eq!(
        (notices.pop_given_up(), notices.is_waiting()),
        (None, false)
    );
}

#[test]
fn a_challenge_is_reported_once_all_reports_before_it_are_taken() {
    let (sessions, session) = open_session(&TERMS);
    let offer = sessions.offer_of(session).expect("a live session");
    let mut bytes = header_to((offer.session, offer.token)).encode().to_vec();
    bytes.extend_from_slice(&7_u64.to_le_bytes());
    let mut notices = Notices::default();
    notices.on_challenge(&sessions, &bytes[..HEADER_LEN]);
    assert!(!notices.has_reports(), "the challenge has no secret");
    notices.on_challenge(&sessions, &bytes);
    notices.on_challenge(&sessions, &bytes);
    let is_it = |report| matches!(report, Some(Report::Challenged(it)) if it.secret == 7);
    assert!(is_it(notices.pop_report()));
    assert!(notices.pop_report().is_none());
    notices.on_challenge(&sessions, &bytes);
    assert!(is_it(notices.pop_report()));
}

#[test]
fn notices_for_the_control_plane_do_not_keep_the_loop_awake() {
    let closed = Closed {
        session: session(1),
        token: Token(7),
        reason: CloseReason::PeerFailed,
        remote: None,
        tell: false,
    };
    let mut notices = Notices::default();
    notices.on_report(Report::Closed(closed));
    assert!(!notices.is_waiting());
    assert!(notices.has_reports());
    assert!(matches!(notices.pop_report(), Some(Report::Closed(it)) if it == closed));
    assert!(notices.pop_report().is_none());
    assert!(!notices.has_reports());
}
