//! Challenges alone, with a table of sessions: only a challenge for one of them yields its bytes.

use super::*;
use crate::handle::{EndpointNum, Session};
use crate::session::terms::Terms;
use crate::transport::PeerId;

const SECRET: u64 = 0x0102_0304_0506_0708;

/// A table with a session that waits for the peer's answer.
fn connecting() -> (Sessions, Session) {
    let mut sessions = Sessions::new(4, 1, EndpointNum::chosen(1));
    let terms = Terms {
        peer: PeerId(0),
        window: 8,
        data_size: 1024,
        max_message: 4096,
        credits: 8,
        first_req: ReqNum(0),
    };
    let index = sessions.begin(&terms, false, None).expect("room");
    let session = sessions.handle(index);
    (sessions, session)
}

fn packet(header: &Header) -> Vec<u8> {
    [&header.encode()[..], &SECRET.to_le_bytes()].concat()
}

#[test]
fn a_challenge_reaches_a_session_before_it_is_open() {
    let (sessions, session) = connecting();
    let (number, token) = (session.number(), sessions.at(session.index()).token());
    let challenged = sessions.challenged(&packet(&header_to((number, token))));
    let expected = Challenged {
        session: number,
        token,
        secret: SECRET,
    };
    assert_eq!(challenged, Some(expected));
}

#[test]
fn a_packet_with_a_wrong_token_or_type_or_for_an_ended_session_is_no_challenge() {
    let (mut sessions, session) = connecting();
    let (number, token) = (session.number(), sessions.at(session.index()).token());
    let good = header_to((number, token));
    let request = Header {
        kind: PacketType::Req,
        size: 8,
        ..good
    };
    for other in [header_to((number, Token(token.0 ^ 1))), request] {
        assert_eq!(sessions.challenged(&packet(&other)), None, "{other:?}");
    }
    let mut short = packet(&good);
    short.pop();
    assert_eq!(sessions.challenged(&short), None);
    sessions.end(session.index());
    assert_eq!(sessions.challenged(&packet(&good)), None);
}
