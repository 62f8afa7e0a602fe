//! The deadline of a session passes in each stage: the session times out, returns the resources of
//! the stage, passes its turn on, and is counted under the stage.

use super::*;

/// Another endpoint's session, which waits for the turn of session 0.
const NEXT: u32 = 1;

/// Session 0 at this stage, with [`NEXT`] in the queue after it.
fn queued(at: At) -> Tested {
    let mut handshake = fresh();
    bring(&mut handshake, 0, at);
    bring(&mut handshake, NEXT, At::Asked);
    if at >= At::Offering {
        handshake.on_event(found(NEXT, 1)).unwrap();
        assert_eq!(steps(&mut handshake), [], "session 0 has the turn");
    }
    handshake
}

/// The plane reports that the deadline of session 0 has passed.
fn expire(handshake: &mut Tested, failure: ConnectFailure) -> Vec<Taken> {
    let key = key(0);
    let failed = Event::ConnectFailed { key, failure };
    handshake.on_event(failed).unwrap();
    steps(handshake)
}

/// Checks that session 0 has ended with this failure and is counted only under this stage, and that
/// nothing of it is left once the other sessions have ended too.
fn check_ended(mut handshake: Tested, failure: ConnectFailure, stage: &str) {
    assert_eq!(handshake.failure(Session::NONE), Some(failure));
    let counts = handshake.overdue().named();
    let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts, [(stage, 1)]);
    assert!(handshake.named(key(0)).is_none());
    for other in [NEXT, 99] {
        handshake.on_ended(key(other), &closed(CloseReason::Disconnected, None, true));
    }
    assert!(handshake.is_idle(), "{stage}");
}

const LATE: ConnectFailure = ConnectFailure::TimedOut(None);
const TIMED_OUT: CloseReason = CloseReason::ConnectTimeout;

#[test]
fn the_deadline_passes_while_the_endpoint_is_looked_for() {
    let mut handshake = queued(At::Asked);
    // No nexus was reached, and the program gets this reason.
    let failure = ConnectFailure::Unreachable;
    let ended = expire(&mut handshake, failure);
    assert_eq!(ended, [closes(0, TIMED_OUT)]);
    check_ended(handshake, failure, "asked");
}

#[test]
fn the_deadline_passes_while_the_session_waits_for_its_turn() {
    let mut handshake = queued(At::Waiting);
    let ended = expire(&mut handshake, LATE);
    assert_eq!(ended, [closes(0, TIMED_OUT)]);
    // The session that has the turn does not pass it to one that has ended.
    handshake.on_ended(key(99), &closed(CloseReason::Disconnected, None, true));
    assert_eq!(
        steps(&mut handshake),
        [abandons(99), Step::Abandon { pending: 99 }]
    );
    check_ended(handshake, LATE, "waiting");
}

/// The transport is slow to make the offer.
#[test]
fn the_deadline_passes_while_the_transport_makes_its_offer() {
    let mut handshake = queued(At::Offering);
    let ended = expire(&mut handshake, LATE);
    assert_eq!(ended, [closes(0, TIMED_OUT), offers(NEXT, 1)]);
    handshake.on_offered(key(0), VIA, Ok((5, side(0))));
    assert_eq!(steps(&mut handshake), [Step::Abandon { pending: 5 }]);
    check_ended(handshake, LATE, "offered");
}

#[test]
fn the_deadline_passes_while_the_other_side_has_the_offer() {
    let mut handshake = queued(At::Offered);
    let ended = expire(&mut handshake, LATE);
    let given_back = Step::Abandon { pending: 0 };
    assert_eq!(ended, [closes(0, TIMED_OUT), given_back, offers(NEXT, 1)]);
    // The grant comes too late, and changes nothing: the plane has given it back.
    handshake.on_event(accepted(0)).unwrap();
    assert_eq!(steps(&mut handshake), []);
    check_ended(handshake, LATE, "offered");
}

/// The channel is gone between the grant and its completion.
#[test]
fn the_deadline_passes_while_a_grant_is_completed() {
    let mut handshake = queued(At::Completing);
    let code = RefuseCode::Busy;
    handshake.on_completed(key(0), Completion::Failed(code), DEADLINE);
    let ended = [disconnects(0), closes(0, TIMED_OUT), offers(NEXT, 1)];
    assert_eq!(steps(&mut handshake), ended);
    check_ended(
        handshake,
        ConnectFailure::TimedOut(Some(code)),
        "completing",
    );
}

/// A grant that is completed at the deadline opens the session, because the peer has it.
#[test]
fn a_grant_that_can_be_completed_is_in_time() {
    let mut handshake = queued(At::Completing);
    handshake.on_completed(key(0), Completion::Open(PeerId(1)), DEADLINE);
    assert_eq!(steps(&mut handshake), [offers(NEXT, 1)]);
    assert_eq!(handshake.overdue(), Overdue::default());
}

#[test]
fn the_deadline_passes_while_the_peer_proves_its_address() {
    let mut handshake = queued(At::Completing);
    let (peer, offer) = (PeerId(4), side(1000).offer);
    handshake.on_completed(key(0), Completion::Unproven { peer, offer }, NOW);
    steps(&mut handshake);
    let proving = crate::types::Proving::Granted(key(0));
    let unproven = Event::Proven {
        proving,
        proven: false,
    };
    handshake.on_event(unproven).unwrap();
    let key = key(0);
    let ended = [Step::Release { peer }, Step::Unproven { key }];
    assert_eq!(steps(&mut handshake), ended);
    let code = RefuseCode::UnprovenAddress;
    handshake.on_completed(key, Completion::Failed(code), DEADLINE);
    let ended = [disconnects(0), closes(0, TIMED_OUT), offers(NEXT, 1)];
    assert_eq!(steps(&mut handshake), ended);
    check_ended(handshake, ConnectFailure::TimedOut(Some(code)), "proving");
}

/// Core is slow to give the session another token. The plane knows the session by the old token, so
/// its report does not concern the new attempt, which has the same deadline.
#[test]
fn the_deadline_passes_while_core_renames_the_session() {
    let mut handshake = queued(At::Offered);
    handshake.on_event(void(0, true)).unwrap();
    steps(&mut handshake);
    assert_eq!(expire(&mut handshake, LATE), []);
    let old = key(0);
    let new = SessionKey {
        token: Token(1),
        ..old
    };
    handshake.on_renamed(old, Some(new));
    assert_eq!(steps(&mut handshake), [asks_by(new), abandons(0)]);
    let failed = Event::ConnectFailed {
        key: new,
        failure: LATE,
    };
    handshake.on_event(failed).unwrap();
    let (key, reason) = (new, TIMED_OUT);
    assert_eq!(steps(&mut handshake), [Step::Close { key, reason }]);
    check_ended(handshake, LATE, "asked");
}
