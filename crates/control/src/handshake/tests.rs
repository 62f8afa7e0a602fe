//! Tests of the handshake alone: each row of its table, and the resources that it must return.

use std::net::SocketAddr;

use dunlin_core::transport::PeerId;
use dunlin_core::{Remote, SessionOffer};
use dunlin_wire::control::{EndpointUid, Incarnation};
use dunlin_wire::{ReqNum, Token};

use super::channels::MAX_OFFERS;
use super::failures::MAX_FAILURES;
use super::*;

mod given_back;
mod model;
mod overdue;
mod proofs;

const DEADLINE: Nanos = Nanos::from_secs(1);
const NOW: Nanos = Nanos::from_millis(1);
const VIA: LinkId = LinkId(7);

type Tested = Handshake<u32, u64>;
type Taken = Step<u32, u64>;

fn key(number: u32) -> SessionKey {
    SessionKey {
        endpoint: EndpointIndex(3),
        session: SessionNum(number),
        token: Token(number + 100),
    }
}

fn uid(peer: u8) -> EndpointUid {
    EndpointUid([peer; 16])
}

fn end(peer: u8) -> OtherEnd {
    OtherEnd::of(&identity(peer))
}

fn identity(peer: u8) -> PeerIdentity {
    PeerIdentity {
        endpoint: uid(peer),
        incarnation: Incarnation(1),
        same_host: true,
        same_process: false,
        proves: true,
        local: None,
        remote: None,
        nexus: None,
        index: None,
    }
}

fn side(number: u32) -> Side<u32> {
    let offer = SessionOffer {
        session: SessionNum(number),
        token: Token(number + 100),
        window: 8,
        credits: 32,
        data_size: 1024,
        max_message: 4096,
        first_req: ReqNum(0),
        keeps_code_rules: true,
    };
    let transports = Vec::new();
    Side { offer, transports }
}

fn wish() -> Wish {
    Wish {
        to: vec![SocketAddr::from(([127, 0, 0, 1], 31850))],
        target: EndpointIndex(0),
        deadline: DEADLINE,
    }
}

fn closed(reason: CloseReason, peer: Option<u32>, tell: bool) -> Closed {
    Closed {
        session: Session::NONE,
        token: Token(0),
        reason,
        remote: peer.map(|peer| Remote {
            peer: PeerId(peer),
            session: SessionNum(0),
            token: Token(0),
        }),
        tell,
    }
}

fn steps(handshake: &mut Tested) -> Vec<Taken> {
    std::iter::from_fn(|| handshake.next_step()).collect()
}

fn fresh() -> Tested {
    Handshake::new(EndpointIndex(3))
}

fn asks(number: u32) -> Taken {
    asks_by(key(number))
}

fn asks_by(key: SessionKey) -> Taken {
    let Wish {
        to,
        target,
        deadline,
    } = wish();
    Step::Command(Command::Connect {
        key,
        to,
        target,
        deadline,
    })
}

fn disconnects(number: u32) -> Taken {
    let (key, reason) = (key(number), CloseReason::Disconnected);
    Step::Command(Command::Disconnect { key, reason })
}

fn abandons(number: u32) -> Taken {
    Step::Command(Command::Abandon { key: key(number) })
}

fn offers(number: u32, peer: u8) -> Taken {
    let (key, peer) = (key(number), identity(peer));
    Step::Offer {
        key,
        via: VIA,
        peer,
    }
}

fn closes(number: u32, reason: CloseReason) -> Taken {
    let key = key(number);
    Step::Close { key, reason }
}

/// The stage to which `bring` brings a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum At {
    Asked,
    Waiting,
    Offering,
    Offered,
    Completing,
    Open,
}

const STAGES: [At; 5] = [
    At::Asked,
    At::Waiting,
    At::Offering,
    At::Offered,
    At::Completing,
];

/// Brings session `number` to this stage, with endpoint 1; its offer has the same number. For
/// `Waiting`, another session, 99, has the only turn.
fn bring(handshake: &mut Tested, number: u32, at: At) {
    if at == At::Waiting {
        bring(handshake, 99, At::Offered);
    }
    handshake.on_connect(Session::NONE, key(number), wish());
    if at >= At::Waiting {
        handshake.on_event(found(number, 1)).unwrap();
    }
    if at >= At::Offered {
        let made = Ok((u64::from(number), side(number)));
        handshake.on_offered(key(number), VIA, made);
    }
    if at >= At::Completing {
        handshake.on_event(accepted(number)).unwrap();
    }
    if at >= At::Open {
        handshake.on_completed(key(number), Completion::Open(PeerId(1)), NOW);
    }
    steps(handshake);
}

fn found(number: u32, peer: u8) -> Event<u32> {
    found_by(key(number), peer)
}

fn found_by(key: SessionKey, peer: u8) -> Event<u32> {
    let (via, peer) = (VIA, identity(peer));
    Event::Found { key, via, peer }
}

/// Brings a session from found to granted.
fn offer(handshake: &mut Tested, key: SessionKey) {
    handshake.on_event(found_by(key, 1)).unwrap();
    handshake.on_offered(key, VIA, Ok((0, side(0))));
    let side = side(1000);
    handshake.on_event(Event::Accepted { key, side }).unwrap();
}

fn void(number: u32, lost: bool) -> Event<u32> {
    let key = key(number);
    Event::OfferVoid { key, lost }
}

fn accepted(number: u32) -> Event<u32> {
    Event::Accepted {
        key: key(number),
        side: side(number + 1000),
    }
}

#[test]
fn a_session_is_asked_for_offered_completed_and_open() {
    let mut handshake = fresh();
    handshake.on_connect(Session::NONE, key(0), wish());
    assert_eq!(steps(&mut handshake), [asks(0)]);
    handshake.on_event(found(0, 1)).unwrap();
    assert_eq!(steps(&mut handshake), [offers(0, 1)]);
    handshake.on_offered(key(0), VIA, Ok((5, side(0))));
    let offer = Command::Offer {
        key: key(0),
        via: VIA,
        side: side(0),
    };
    assert_eq!(steps(&mut handshake), [Step::Command(offer)]);
    handshake.on_event(accepted(0)).unwrap();
    let complete = Step::Complete {
        key: key(0),
        pending: 5,
        side: side(1000),
    };
    assert_eq!(steps(&mut handshake), [complete]);
    handshake.on_completed(key(0), Completion::Open(PeerId(4)), NOW);
    assert_eq!(steps(&mut handshake), []);
    assert_eq!(handshake.connecting(), 0);
}

#[test]
fn the_first_offer_is_made_alone_and_then_a_few_at_a_time() {
    let mut handshake = fresh();
    let all = 2 * u32::try_from(MAX_OFFERS).unwrap();
    bring(&mut handshake, 0, At::Offering);
    for number in 1..=all {
        bring(&mut handshake, number, At::Asked);
        handshake.on_event(found(number, 1)).unwrap();
        assert_eq!(steps(&mut handshake), [], "there is no channel to share");
    }
    handshake.on_offered(key(0), VIA, Ok((0, side(0))));
    handshake.on_event(accepted(0)).unwrap();
    handshake.on_completed(key(0), Completion::Open(PeerId(1)), NOW);
    let made = steps(&mut handshake);
    let turns: Vec<Taken> = (1..=all / 2).map(|number| offers(number, 1)).collect();
    assert_eq!(
        made[2..],
        turns,
        "the offers come in the order in which the sessions were found"
    );
    // Each offer that ends, in any way, passes its turn to the next.
    handshake.on_offered(key(1), VIA, Err(RefuseCode::Busy));
    assert!(steps(&mut handshake).contains(&offers(all / 2 + 1, 1)));
    handshake.on_ended(key(2), &closed(CloseReason::Disconnected, None, true));
    assert!(steps(&mut handshake).contains(&offers(all / 2 + 2, 1)));
    // Another endpoint has turns of its own.
    bring(&mut handshake, 500, At::Asked);
    handshake.on_event(found(500, 2)).unwrap();
    assert_eq!(steps(&mut handshake), [offers(500, 2)]);
}

#[test]
fn an_offer_that_cannot_be_made_fails_the_session() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Offering);
    handshake.on_offered(key(0), VIA, Err(RefuseCode::NoCommonTransport));
    let expected = [abandons(0), closes(0, CloseReason::Refused)];
    assert_eq!(steps(&mut handshake), expected);
    let failure = ConnectFailure::Refused(RefuseCode::NoCommonTransport);
    assert_eq!(handshake.failure(Session::NONE), Some(failure));
}

#[test]
fn a_grant_that_cannot_be_completed_is_asked_for_again_three_times() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    let gone = Completion::Failed(RefuseCode::Busy);
    let mut asked = key(0);
    for retry in 1..=MAX_RETRIES {
        handshake.on_completed(asked, gone, NOW);
        let token = Token(retry);
        let (old, new) = (asked, SessionKey { token, ..asked });
        assert_eq!(steps(&mut handshake), [Step::Rename { key: old }]);
        handshake.on_renamed(old, Some(new));
        let again = [asks_by(new), Step::Command(Command::Abandon { key: old })];
        assert_eq!(steps(&mut handshake), again);
        asked = new;
        offer(&mut handshake, asked);
        assert_eq!(steps(&mut handshake).len(), 3);
    }
    handshake.on_completed(asked, gone, NOW);
    let reason = CloseReason::Disconnected;
    let given_back = Step::Command(Command::Disconnect { key: asked, reason });
    let reason = CloseReason::Refused;
    let closed = Step::Close { key: asked, reason };
    assert_eq!(steps(&mut handshake), [given_back, closed]);
    let failure = ConnectFailure::Refused(RefuseCode::Busy);
    assert_eq!(handshake.failure(Session::NONE), Some(failure));
}

#[test]
fn after_the_deadline_nothing_is_asked_for_again() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    let gone = Completion::Failed(RefuseCode::Busy);
    handshake.on_completed(key(0), gone, DEADLINE);
    let expected = [disconnects(0), closes(0, CloseReason::ConnectTimeout)];
    assert_eq!(steps(&mut handshake), expected);
    let failure = ConnectFailure::TimedOut(Some(RefuseCode::Busy));
    assert_eq!(handshake.failure(Session::NONE), Some(failure));
}

#[test]
fn the_end_of_a_grant_that_was_given_back_does_not_end_the_session() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    handshake.on_completed(key(0), Completion::Failed(RefuseCode::Busy), NOW);
    steps(&mut handshake);
    // The end comes both before and after the session gets its new token.
    let reason = CloseReason::PeerFailed;
    let ended = Event::Closed {
        key: key(0),
        reason,
    };
    handshake.on_event(ended).unwrap();
    assert_eq!(steps(&mut handshake), []);
    let (old, token) = (key(0), Token(1));
    let key = SessionKey { token, ..old };
    handshake.on_renamed(old, Some(key));
    steps(&mut handshake);
    handshake.on_event(Event::Closed { key, reason }).unwrap();
    assert_eq!(steps(&mut handshake), []);
    offer(&mut handshake, key);
    assert_eq!(handshake.connecting(), 1);
}

#[test]
fn a_session_that_ends_while_it_is_completed_is_closed_once_it_is_open() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    let reason = CloseReason::PeerFailed;
    let ended = Event::Closed {
        key: key(0),
        reason,
    };
    handshake.on_event(ended.clone()).unwrap();
    assert_eq!(steps(&mut handshake), []);
    handshake.on_completed(key(0), Completion::Open(PeerId(1)), NOW);
    assert_eq!(steps(&mut handshake), [closes(0, reason)]);
    handshake.on_event(ended).unwrap();
    assert_eq!(
        steps(&mut handshake),
        [closes(0, reason)],
        "the session is open"
    );
}

#[test]
fn a_grant_that_exceeds_the_request_is_given_back() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Completing);
    handshake.on_completed(key(0), Completion::Unfit(PeerId(1)), NOW);
    let release = Step::Release { peer: PeerId(1) };
    let expected = [release, disconnects(0), closes(0, CloseReason::Refused)];
    assert_eq!(steps(&mut handshake), expected);
}

#[test]
fn a_request_is_answered() {
    let mut handshake = fresh();
    let (ticket, peer) = (ConnectTicket(1), identity(1));
    let event = Event::Incoming {
        ticket,
        peer,
        side: side(1),
    };
    let answer = Step::Answer {
        ticket,
        peer,
        side: side(1),
    };
    handshake.on_event(event).unwrap();
    assert_eq!(steps(&mut handshake), [answer]);
    let id = PeerId(4);
    let granted = Answer::Granted {
        peer: id,
        side: side(9),
    };
    handshake.on_answered(ticket, &peer, granted);
    let accept = Step::Command(Command::Accept {
        ticket,
        key: key(9),
        side: side(9),
    });
    assert_eq!(steps(&mut handshake), [accept]);
    let code = RefuseCode::TooManySessions;
    let refuse = || Step::Command(Command::Refuse { ticket, code });
    handshake.on_answered(ticket, &peer, Answer::NoRoom { peer: id, code });
    assert_eq!(
        steps(&mut handshake),
        [Step::Release { peer: id }, refuse()]
    );
    handshake.on_answered(ticket, &peer, Answer::NoWay(code));
    assert_eq!(steps(&mut handshake), [refuse()]);
}

#[test]
fn an_event_out_of_turn_is_an_error_and_leaves_nothing() {
    for at in [At::Waiting, At::Offering, At::Offered, At::Completing] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        let wrong = handshake.on_event(found(0, 1)).unwrap_err();
        assert_eq!((wrong.key, wrong.event), (key(0), "Found"));
        assert_eq!(steps(&mut handshake), [], "{at:?}");
    }
    for at in [At::Asked, At::Waiting, At::Offering, At::Completing] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        handshake.on_event(accepted(0)).unwrap_err();
        let expected = [disconnects(0), closes(0, CloseReason::Refused)];
        assert_eq!(steps(&mut handshake), expected, "{at:?}");
        assert!(handshake.named(key(0)).is_none());
    }
    for at in [At::Asked, At::Completing] {
        let mut handshake = fresh();
        bring(&mut handshake, 0, at);
        let void = void(0, false);
        handshake.on_event(void).unwrap_err();
    }
}

#[test]
fn only_the_latest_failures_are_stored() {
    let mut handshake = fresh();
    for number in 0..100 {
        bring(&mut handshake, number, At::Asked);
        let (key, failure) = (key(number), ConnectFailure::Unreachable);
        handshake
            .on_event(Event::ConnectFailed { key, failure })
            .unwrap();
    }
    assert_eq!(handshake.failures.len(), MAX_FAILURES);
}

#[test]
fn one_session_may_show_a_peers_nexus_and_another_one_its_index() {
    let mut handshake = fresh();
    bring(&mut handshake, 0, At::Open);
    assert_eq!(handshake.whereabouts(PeerId(1)), (None, None));
    let (nexus, index) = (wish().to.first().copied(), Some(EndpointIndex(2)));
    for (number, peer) in [
        (
            1,
            PeerIdentity {
                nexus,
                ..identity(1)
            },
        ),
        (
            2,
            PeerIdentity {
                index,
                ..identity(1)
            },
        ),
    ] {
        let granted = Answer::Granted {
            peer: PeerId(1),
            side: side(number),
        };
        handshake.on_answered(ConnectTicket(1), &peer, granted);
    }
    assert_eq!(handshake.whereabouts(PeerId(1)), (nexus, index));
    assert_eq!(handshake.whereabouts(PeerId(2)), (None, None));
}
