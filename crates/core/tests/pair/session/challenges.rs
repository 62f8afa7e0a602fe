//! Challenges (rule C13). A challenge is a packet for a session of the receiver, which may still be
//! connecting. The receiver reports the challenge's bytes, and answers with no packet.

use dunlin_core::{Bypasses, Challenged, Config, Report, SessionOffer, SessionOptions};
use dunlin_testkit::pair::*;
use dunlin_testkit::wire::Wire;
use dunlin_wire::{HEADER_LEN, PacketType, Token};

const SECRET: u64 = 0x0102_0304_0506_0708;

/// A pair with the common path, and one without.
fn pairs() -> [Pair; 2] {
    [true, false].map(|common| {
        let usual = Config::default();
        let bypasses = Bypasses {
            common,
            ..usual.bypasses
        };
        let config = Config { bypasses, ..usual };
        Pair::with(config, SessionOptions::DEFAULT)
    })
}

/// Lets the server challenge the client's session; returns the frame.
fn challenge(pair: &mut Pair, to: &SessionOffer) -> Vec<u8> {
    let to = (to.session, to.token);
    let mut lifecycle = pair.server.rpc.lifecycle();
    lifecycle.challenge(Wire::PEER, to, SECRET);
    pair.step_server();
    let frames: Vec<_> = pair.server.out.borrow_mut().drain(..).collect();
    let [frame] = &frames[..] else {
        panic!("{} frames", frames.len())
    };
    frame.clone()
}

/// Brings a frame to the client, and returns the client's reports.
fn reports(pair: &mut Pair, frame: Vec<u8>) -> Vec<Report> {
    pair.client.inbox.borrow_mut().push_back(frame);
    pair.step_client();
    assert!(take(&pair.client.out).is_empty(), "no packet answers it");
    let client = &mut pair.client.rpc;
    std::iter::from_fn(|| client.lifecycle().take_report()).collect()
}

/// Packets that the client has dropped.
fn dropped(pair: &Pair) -> u64 {
    let drops = pair.client.rpc.counters().drops.named();
    drops.iter().map(|(_, count)| count).sum()
}

fn challenged(to: &SessionOffer) -> Report {
    Report::Challenged(Challenged {
        session: to.session,
        token: to.token,
        secret: SECRET,
    })
}

#[test]
fn a_challenge_is_reported_for_a_session_that_is_connecting_or_open() {
    for mut pair in pairs() {
        let connecting = pair.client.open(&SessionOptions::DEFAULT);
        for session in [connecting, pair.session] {
            let to = pair.client.rpc.lifecycle().offer_of(session).unwrap();
            let frame = challenge(&mut pair, &to);
            assert_eq!(frame.len(), 32);
            assert_eq!(reports(&mut pair, frame), [challenged(&to)]);
        }
        let drops = pair.client.rpc.counters().drops.named();
        assert!(drops.iter().all(|(_, count)| *count == 0), "{drops:?}");
        let open = |session| pair.client.rpc.session_info(session).unwrap().open;
        assert_eq!([connecting, pair.session].map(open), [false, true]);
    }
}

#[test]
fn bytes_that_are_no_challenge_for_the_session_are_dropped() {
    for mut pair in pairs() {
        let connecting = pair.client.open(&SessionOptions::DEFAULT);
        for session in [connecting, pair.session] {
            let to = pair.client.rpc.lifecycle().offer_of(session).unwrap();
            let frame = challenge(&mut pair, &to);
            let with = |place: usize, byte: u8| {
                let mut other = frame.clone();
                other[place] = byte;
                other
            };
            let wrong_token = SessionOffer {
                token: Token(to.token.0 ^ 1),
                ..to
            };
            let other_token = challenge(&mut pair, &wrong_token);
            let other_type = with(0, frame[0] & 0xF0 | PacketType::Err as u8);
            let short = frame[..HEADER_LEN + 7].to_vec();
            for bytes in [other_token, other_type, short, with(20, 1), with(4, 77)] {
                let before = dropped(&pair);
                assert_eq!(reports(&mut pair, bytes), []);
                assert!(dropped(&pair) > before || session == pair.session);
            }
        }
    }
}

/// A flood of challenges leaves a single report: a challenge that comes while a report of any kind
/// waits is dropped.
#[test]
fn while_a_report_waits_challenges_are_dropped() {
    for mut pair in pairs() {
        let connecting = pair.client.open(&SessionOptions::DEFAULT);
        let to = pair.client.rpc.lifecycle().offer_of(connecting).unwrap();
        let frame = challenge(&mut pair, &to);
        for _ in 0..100 {
            pair.client.inbox.borrow_mut().push_back(frame.clone());
        }
        assert_eq!(reports(&mut pair, frame.clone()), [challenged(&to)]);
        assert_eq!(reports(&mut pair, frame), [challenged(&to)], "again");
    }
}
