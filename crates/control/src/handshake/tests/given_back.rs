//! Sessions that never open, or are no longer open: each returns exactly the resources of its
//! stage.

use super::*;

#[test]
fn a_lost_connection_gives_the_offer_back_in_every_stage() {
    for at in [At::Waiting, At::Offering, At::Offered] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        handshake.on_event(void(0, false)).unwrap();
        let given_back = match at {
            At::Offered => vec![Step::Abandon { pending: 0 }],
            _ => Vec::new(),
        };
        assert_eq!(steps(&mut handshake), given_back, "{at:?}");
        // The next connection leads to the process that has replaced the first one.
        handshake.on_event(found(0, 2)).unwrap();
        assert_eq!(steps(&mut handshake), [offers(0, 2)], "{at:?}");
    }
}

#[test]
fn an_offer_that_may_have_been_granted_is_made_again_under_another_token() {
    for at in [At::Waiting, At::Offering, At::Offered] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        handshake.on_event(void(0, true)).unwrap();
        if at != At::Offered {
            assert_eq!(
                steps(&mut handshake),
                [],
                "no other process has seen the token"
            );
            continue;
        }
        let (old, token) = (key(0), Token(1));
        let expected = [Step::Rename { key: old }, Step::Abandon { pending: 0 }];
        assert_eq!(steps(&mut handshake), expected);
        // The plane still knows the session by its old token.
        for event in [found(0, 1), accepted(0), void(0, true)] {
            handshake.on_event(event).unwrap();
            assert_eq!(steps(&mut handshake), []);
        }
        let new = SessionKey { token, ..old };
        handshake.on_renamed(old, Some(new));
        assert_eq!(steps(&mut handshake), [asks_by(new), abandons(0)]);
        handshake.on_event(found_by(new, 1)).unwrap();
        assert_eq!(steps(&mut handshake).len(), 1);
        // The first attempt reached a nexus, so the session has timed out, although the second
        // attempt reached none.
        let failure = ConnectFailure::Unreachable;
        let key = new;
        handshake
            .on_event(Event::ConnectFailed { key, failure })
            .unwrap();
        let failure = ConnectFailure::TimedOut(None);
        assert_eq!(handshake.failure(Session::NONE), Some(failure));
    }
}

#[test]
fn a_failed_connect_ends_the_session_in_every_stage() {
    for at in STAGES {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        bring(&mut handshake, 1, At::Asked);
        if at != At::Waiting {
            handshake.on_event(found(1, 1)).unwrap();
            steps(&mut handshake);
        }
        let failure = ConnectFailure::TimedOut(None);
        let key = key(0);
        handshake
            .on_event(Event::ConnectFailed { key, failure })
            .unwrap();
        let mut expected = vec![closes(0, CloseReason::ConnectTimeout)];
        if at == At::Offered {
            expected.push(Step::Abandon { pending: 0 });
        }
        if at >= At::Offering {
            expected.push(offers(1, 1));
        }
        assert_eq!(steps(&mut handshake), expected, "{at:?}");
        assert_eq!(handshake.failure(Session::NONE), Some(failure));
        assert!(handshake.named(key).is_none());
    }
}

#[test]
fn disconnecting_ends_the_session_in_every_stage() {
    for at in STAGES {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        handshake.on_ended(key(0), &closed(CloseReason::Disconnected, None, true));
        let mut expected = vec![abandons(0)];
        if at == At::Offered {
            expected.push(Step::Abandon { pending: 0 });
        }
        assert_eq!(steps(&mut handshake), expected, "{at:?}");
        // Events that the plane has already sent change nothing.
        for event in [found(0, 1), accepted(0), void(0, false)] {
            handshake.on_event(event).unwrap();
            assert_eq!(steps(&mut handshake), [], "{at:?}");
        }
    }
}

#[test]
fn results_that_come_too_late_are_given_back() {
    let mut handshake = fresh();
    handshake.on_offered(key(0), VIA, Ok((8, side(0))));
    assert_eq!(steps(&mut handshake), [Step::Abandon { pending: 8 }]);
    for done in [Completion::Open(PeerId(1)), Completion::Unfit(PeerId(1))] {
        handshake.on_completed(key(0), done, NOW);
        let release = Step::Release { peer: PeerId(1) };
        assert_eq!(steps(&mut handshake), [release]);
    }
    // An offer for the previous connection is not valid for this one.
    bring(&mut handshake, 1, At::Offering);
    handshake.on_offered(key(1), LinkId(6), Ok((9, side(1))));
    assert_eq!(steps(&mut handshake), [Step::Abandon { pending: 9 }]);
}

#[test]
fn the_last_session_with_a_dead_peer_removes_it() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Open);
    bring(&mut handshake, 1, At::Open);
    let (peer, failed) = (PeerId(1), closed(CloseReason::PeerFailed, Some(1), false));
    handshake.on_ended(key(0), &failed);
    assert_eq!(steps(&mut handshake), [Step::Release { peer }]);
    handshake.on_ended(key(1), &failed);
    assert_eq!(steps(&mut handshake), [Step::Remove { peer }]);
    bring(&mut handshake, 2, At::Open);
    let ended = closed(CloseReason::Disconnected, Some(1), true);
    handshake.on_ended(key(2), &ended);
    assert_eq!(
        steps(&mut handshake),
        [disconnects(2), Step::Release { peer }]
    );
}

/// Another nexus claims the first one's endpoint, and answers nothing.
#[test]
fn an_endpoint_that_claims_anothers_identity_takes_no_turn_from_it() {
    let mut handshake = fresh();
    let at = |host| PeerIdentity {
        remote: Some(std::net::IpAddr::from([10, 0, 0, host])),
        ..identity(1)
    };
    for (number, host) in [(0, 9), (1, 1)] {
        bring(&mut handshake, number, At::Asked);
        let (key, via, peer) = (key(number), VIA, at(host));
        handshake.on_event(Event::Found { key, via, peer }).unwrap();
        assert_eq!(steps(&mut handshake), [Step::Offer { key, via, peer }]);
        handshake.on_offered(key, VIA, Ok((u64::from(number), side(number))));
        steps(&mut handshake);
    }
    // An endpoint with two addresses, which is one peer to the transport, keeps no turn either.
    for (number, host) in [(20, 1), (21, 2)] {
        let (peer, side) = (PeerId(4), side(number));
        handshake.on_answered(ConnectTicket(1), &at(host), Answer::Granted { peer, side });
    }
    steps(&mut handshake);
    for number in [0, 1] {
        let ended = closed(CloseReason::Disconnected, None, true);
        handshake.on_ended(key(number), &ended);
    }
    for number in [20, 21] {
        let ended = closed(CloseReason::Disconnected, Some(4), true);
        handshake.on_ended(key(number), &ended);
    }
    assert!(handshake.is_idle());
}
