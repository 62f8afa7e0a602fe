//! Sessions that wait for the proof of an address: requested by the peer, or granted by it.

use dunlin_core::Challenged;

use super::*;
use crate::types::Proving;

const PEER: PeerId = PeerId(4);
const TICKET: ConnectTicket = ConnectTicket(1);
const SECRET: u64 = 0x5eed;

fn asked() -> Proving {
    Proving::Asked {
        endpoint: EndpointIndex(3),
        ticket: TICKET,
    }
}

fn challenge(proving: Proving) -> Taken {
    Step::Command(Command::Challenge { proving })
}

fn send(proving: Proving) -> Event<u32> {
    let secret = SECRET;
    Event::Challenge { proving, secret }
}

fn sends(number: u32) -> Taken {
    Step::Challenge {
        peer: PEER,
        to: (SessionNum(number), side(number).offer.token),
        secret: SECRET,
    }
}

fn ends(proving: Proving, proven: bool) -> Event<u32> {
    Event::Proven { proving, proven }
}

fn release() -> Taken {
    Step::Release { peer: PEER }
}

/// A handshake in which the peer has asked for a session, with number 7 at the peer, and the
/// transport has taken the peer's offer.
fn requested() -> Tested {
    let mut handshake = fresh();
    let (peer, side) = (PEER, side(7));
    handshake.on_answered(TICKET, &identity(1), Answer::Unproven { peer, side });
    assert_eq!(
        steps(&mut handshake),
        [challenge(asked())],
        "the endpoint sends no Accept"
    );
    handshake
}

/// A handshake whose session 0 the peer has granted. At the peer, the session has number 1000.
fn granted() -> Tested {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    let offer = side(1000).offer;
    let unproven = Completion::Unproven { peer: PEER, offer };
    handshake.on_completed(key(0), unproven, NOW);
    let proving = Proving::Granted(key(0));
    assert_eq!(steps(&mut handshake), [challenge(proving)]);
    handshake
}

fn unproven(handshake: &Tested) -> Vec<PeerId> {
    handshake.unproven().collect()
}

#[test]
fn a_request_waits_for_the_proof_and_is_admitted_after_it() {
    let mut handshake = requested();
    assert_eq!(unproven(&handshake), [PEER]);
    assert!(!handshake.is_idle());
    for _ in 0..3 {
        handshake.on_event(send(asked())).unwrap();
        assert_eq!(steps(&mut handshake), [sends(7)]);
    }
    handshake.on_event(ends(asked(), true)).unwrap();
    let admit = Step::Admit {
        ticket: TICKET,
        identity: identity(1),
        peer: PEER,
        side: side(7),
    };
    assert_eq!(steps(&mut handshake), [admit]);
    // The request is over: neither another proof nor another challenge has an effect.
    for event in [ends(asked(), true), ends(asked(), false), send(asked())] {
        handshake.on_event(event).unwrap();
        assert_eq!(steps(&mut handshake), []);
    }
    assert_eq!(unproven(&handshake), []);
    assert!(handshake.is_idle());
}

#[test]
fn a_request_without_a_proof_is_refused_and_its_peer_released() {
    let mut handshake = requested();
    handshake.on_event(ends(asked(), false)).unwrap();
    let (ticket, code) = (TICKET, RefuseCode::UnprovenAddress);
    let refuse = Step::Command(Command::Refuse { ticket, code });
    assert_eq!(steps(&mut handshake), [release(), refuse]);
    assert!(handshake.is_idle());
}

#[test]
fn core_opens_a_granted_session_only_after_the_proof() {
    let mut handshake = granted();
    let proving = Proving::Granted(key(0));
    assert_eq!(unproven(&handshake), [PEER]);
    handshake.on_event(send(proving)).unwrap();
    assert_eq!(steps(&mut handshake), [sends(1000)]);
    handshake.on_event(ends(proving, true)).unwrap();
    let open = Step::Open {
        key: key(0),
        peer: PEER,
        offer: side(1000).offer,
    };
    assert_eq!(steps(&mut handshake), [open]);
    handshake.on_completed(key(0), Completion::Open(PEER), NOW);
    assert_eq!(steps(&mut handshake), []);
    assert_eq!((handshake.connecting(), unproven(&handshake).len()), (0, 0));
}

#[test]
fn a_grant_without_a_proof_is_given_back_and_asked_for_again() {
    let mut handshake = granted();
    handshake
        .on_event(ends(Proving::Granted(key(0)), false))
        .unwrap();
    let fails = Step::Unproven { key: key(0) };
    assert_eq!(steps(&mut handshake), [release(), fails]);
    let failed = Completion::Failed(RefuseCode::UnprovenAddress);
    handshake.on_completed(key(0), failed, NOW);
    assert_eq!(steps(&mut handshake), [Step::Rename { key: key(0) }]);
    let (old, token) = (key(0), Token(1));
    let new = SessionKey { token, ..old };
    handshake.on_renamed(old, Some(new));
    assert_eq!(steps(&mut handshake), [asks_by(new), abandons(0)]);
}

#[test]
fn a_grant_keeps_its_turn_until_the_proof_ends() {
    for proven in [true, false] {
        let mut handshake = granted();
        bring(&mut handshake, 1, At::Asked);
        handshake.on_event(found(1, 1)).unwrap();
        let proving = Proving::Granted(key(0));
        handshake.on_event(send(proving)).unwrap();
        handshake.on_event(ends(proving, proven)).unwrap();
        assert!(!steps(&mut handshake).contains(&offers(1, 1)));
        let done = match proven {
            true => Completion::Open(PEER),
            false => Completion::Failed(RefuseCode::UnprovenAddress),
        };
        handshake.on_completed(key(0), done, NOW);
        assert!(steps(&mut handshake).contains(&offers(1, 1)));
    }
}

#[test]
fn a_program_may_end_a_granted_session_before_the_proof() {
    let (key, reason) = (key(0), CloseReason::Disconnected);
    for by_peer in [true, false] {
        let mut handshake = granted();
        let first = if by_peer {
            handshake.on_event(Event::Closed { key, reason }).unwrap();
            closes(0, reason)
        } else {
            handshake.on_ended(key, &closed(CloseReason::Disconnected, None, true));
            abandons(0)
        };
        assert_eq!(steps(&mut handshake), [first, release()]);
        let proving = Proving::Granted(key);
        for event in [send(proving), ends(proving, true), ends(proving, false)] {
            handshake.on_event(event).unwrap();
            assert_eq!(steps(&mut handshake), []);
        }
        assert!(handshake.is_idle());
    }
    // The end may come while the transport completes the grant.
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    handshake.on_event(Event::Closed { key, reason }).unwrap();
    let (peer, offer) = (PEER, side(1000).offer);
    handshake.on_completed(key, Completion::Unproven { peer, offer }, NOW);
    assert_eq!(steps(&mut handshake), [closes(0, reason), release()]);
}

#[test]
fn a_grant_that_is_lost_before_its_proof_is_asked_for_again() {
    let key = key(0);
    for reason in [CloseReason::PeerFailed, CloseReason::Reset] {
        let mut handshake = granted();
        handshake.on_event(Event::Closed { key, reason }).unwrap();
        assert_eq!(steps(&mut handshake), [release(), Step::Unproven { key }]);
        let failed = Completion::Failed(RefuseCode::UnprovenAddress);
        handshake.on_completed(key, failed, NOW);
        assert_eq!(steps(&mut handshake), [Step::Rename { key }]);
    }
}

#[test]
fn a_peer_stays_after_its_last_open_session_while_another_waits_for_a_proof() {
    for waits in [true, false] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, At::Open);
        let peer = PeerId(1);
        if waits {
            let unproven = Answer::Unproven {
                peer,
                side: side(7),
            };
            handshake.on_answered(TICKET, &identity(1), unproven);
        }
        steps(&mut handshake);
        let failed = closed(CloseReason::PeerFailed, Some(peer.0), false);
        handshake.on_ended(key(0), &failed);
        let end = match waits {
            true => Step::Release { peer },
            false => Step::Remove { peer },
        };
        assert_eq!(steps(&mut handshake), [end]);
    }
}

#[test]
fn a_void_offer_is_an_error_while_a_session_waits_for_a_proof() {
    let mut handshake = granted();
    handshake.on_event(void(0, false)).unwrap_err();
    assert_eq!(unproven(&handshake), [PEER]);
}

/// Hands over the peer's challenge for a session of this side, and returns the steps.
fn challenged(handshake: &mut Tested, key: SessionKey) -> Vec<Taken> {
    handshake.on_challenged(&Challenged {
        session: key.session,
        token: key.token,
        secret: SECRET,
    });
    steps(handshake)
}

fn proves(key: SessionKey) -> Vec<Taken> {
    let secret = SECRET;
    vec![Step::Command(Command::Prove { key, secret })]
}

#[test]
fn three_challenges_of_each_offer_are_answered() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Offered);
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(challenged(&mut handshake, key(0)), proves(key(0)));
        }
        for _ in 0..100 {
            assert_eq!(challenged(&mut handshake, key(0)), []);
        }
        // The peer refuses the session because it got no proof, and this side asks again.
        handshake.on_event(void(0, false)).unwrap();
        handshake.on_event(found(0, 1)).unwrap();
        handshake.on_offered(key(0), VIA, Ok((1, side(0))));
        steps(&mut handshake);
    }
}

#[test]
fn three_challenges_for_an_open_session_are_answered_until_it_ends() {
    let mut handshake = fresh();
    let (peer, side) = (PEER, side(9));
    handshake.on_answered(TICKET, &identity(1), Answer::Granted { peer, side });
    steps(&mut handshake);
    for _ in 0..2 {
        for count in 0..100 {
            let expected = if count < 3 { proves(key(9)) } else { vec![] };
            assert_eq!(challenged(&mut handshake, key(9)), expected);
        }
        let ended = closed(CloseReason::Disconnected, Some(PEER.0), false);
        handshake.on_ended(key(9), &ended);
        assert!(handshake.is_idle(), "the count ends with the session");
        steps(&mut handshake);
    }
}

#[test]
fn a_challenge_for_a_session_that_no_peer_is_making_is_not_answered() {
    for at in [At::Asked, At::Waiting, At::Offering, At::Completing] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        assert_eq!(challenged(&mut handshake, key(0)), [], "{at:?}");
    }
    let mut handshake = granted();
    assert_eq!(challenged(&mut handshake, key(0)), []);
    // A challenge for an earlier attempt of the session is not answered, either.
    bring(&mut handshake, 1, At::Offered);
    let token = Token(1);
    let old = SessionKey { token, ..key(1) };
    assert_eq!(challenged(&mut handshake, old), []);
}
