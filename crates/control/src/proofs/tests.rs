//! The times of challenges, and the bytes that end the wait for them.

use dunlin_wire::control::EndpointIndex;

use super::*;
use crate::types::ConnectTicket;

const TIMEOUT: Nanos = Nanos::from_secs(1);
const EIGHTH: Nanos = Nanos::from_millis(125);
const LINK: LinkId = LinkId(3);
const SECRET: u64 = 77;

fn proving(number: u64) -> Proving {
    Proving::Asked {
        endpoint: EndpointIndex(0),
        ticket: ConnectTicket(number),
    }
}

fn begun() -> Proofs {
    let mut proofs = Proofs::default();
    proofs.begin(proving(1), LINK, SECRET, Nanos(5));
    proofs
}

#[test]
fn three_challenges_and_the_wait_for_the_last_take_one_timeout() {
    let mut proofs = begun();
    let start = Nanos(5);
    for number in 0..3 {
        let due = start + EIGHTH.times(number);
        assert_eq!(proofs.next_due(), due);
        assert_eq!(proofs.next_turn(TIMEOUT, due.since(Nanos(1))), None);
        let send = Turn::Send(proving(1), SECRET);
        assert_eq!(proofs.next_turn(TIMEOUT, due), Some(send));
        assert_eq!(
            proofs.next_turn(TIMEOUT, due),
            None,
            "a challenge is sent once"
        );
    }
    let end = start + TIMEOUT;
    assert_eq!(proofs.next_due(), end);
    let give_up = Turn::GiveUp(proving(1));
    assert_eq!(proofs.next_turn(TIMEOUT, end), Some(give_up));
    assert!(proofs.is_empty());
    assert_eq!(proofs.next_due(), Nanos::MAX);
}

#[test]
fn bytes_prove_an_address_once_and_only_over_their_connection() {
    let mut proofs = begun();
    proofs.begin(proving(2), LinkId(4), SECRET, Nanos(6));
    for (link, secret) in [(LINK, SECRET + 1), (LinkId(5), SECRET)] {
        assert_eq!(proofs.on_proof(link, secret), None);
    }
    assert_eq!(proofs.on_proof(LINK, SECRET), Some(proving(1)));
    assert_eq!(proofs.on_proof(LINK, SECRET), None);
    assert_eq!(proofs.on_proof(LinkId(4), SECRET), Some(proving(2)));
    assert!(proofs.is_empty());
}

#[test]
fn a_proof_that_is_forgotten_or_begins_again_leaves_nothing() {
    let mut proofs = begun();
    proofs.begin(proving(1), LINK, SECRET + 1, Nanos(9));
    assert_eq!(
        proofs.on_proof(LINK, SECRET),
        None,
        "the challenge now has other bytes"
    );
    assert_eq!(proofs.next_due(), Nanos(9));
    assert!(proofs.forget(proving(1)));
    assert!(!proofs.forget(proving(1)));
    assert!(proofs.is_empty());
}
