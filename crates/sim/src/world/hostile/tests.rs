//! The attacker sends the packets that each attack's name promises.

use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

use super::{Attack, Tap};
use crate::world::net::PortId;
use crate::world::rng::Rng;

const TOKEN: Token = Token(0xABCD_0123);

fn request() -> Vec<u8> {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 3,
        session: SessionNum(9),
        token: TOKEN,
        size: 8,
        pkt: PktNum(0),
        req: ReqNum(5),
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(&[7; 8]);
    bytes
}

fn tap() -> Tap {
    let mut tap = Tap::default();
    tap.start();
    let mut frame = request();
    frame.extend(request());
    for _ in 0..100 {
        tap.record(PortId(1), &frame);
    }
    tap
}

#[test]
fn outsiders_never_send_the_right_token_except_in_copies() {
    let (tap, mut rng) = (tap(), Rng::new(1));
    for attack in [Attack::Mutation, Attack::FutureGuess] {
        for _ in 0..500 {
            let (to, bytes) = tap.forge(attack, 4, 1024, &mut rng).unwrap();
            assert_eq!(to, PortId(1));
            assert!(
                bytes.len() <= request().len(),
                "only one packet of the frame is left"
            );
            assert_ne!(bytes[8..12], TOKEN.0.to_le_bytes());
        }
    }
}

#[test]
fn future_requests_stay_in_their_slot_and_jump() {
    let (tap, mut rng) = (tap(), Rng::new(2));
    for _ in 0..500 {
        let (_, bytes) = tap.forge(Attack::FutureInsider, 4, 1024, &mut rng).unwrap();
        let header = Header::decode(&bytes).unwrap();
        assert_eq!(header.token, TOKEN);
        let ahead = header.req.0.wrapping_sub(5);
        assert!(ahead.is_multiple_of(64) && (1 << 17..1 << 31).contains(&ahead));
    }
}

#[test]
fn replays_are_copies_and_noise_needs_no_record() {
    let (tap, mut rng) = (tap(), Rng::new(3));
    let (_, bytes) = tap.forge(Attack::Replay, 4, 1024, &mut rng).unwrap();
    assert_eq!(bytes.len(), 2 * request().len());
    assert!(
        Tap::default()
            .forge(Attack::Noise, 4, 1024, &mut rng)
            .is_some()
    );
    assert!(
        Tap::default()
            .forge(Attack::Replay, 4, 1024, &mut rng)
            .is_none()
    );
}

#[test]
fn a_tap_that_is_off_records_nothing() {
    let mut tap = Tap::default();
    tap.record(PortId(0), &request());
    assert!(
        tap.forge(Attack::Replay, 1, 1024, &mut Rng::new(4))
            .is_none()
    );
}
