//! Packets that a client has asked for leave in turns. In a session with a declared path, they
//! leave no faster than the NIC sends them.

use super::*;
use crate::congestion::constants::egress::{AHEAD_PACKETS, FRAME_BYTES};
use crate::packet::words::HEADER_BYTES;
use crate::session::line::PathTraits;

/// A server that has begun to answer with `len` bytes.
fn answering(data_size: u32, len: usize) -> (Server, RequestIdx) {
    let mut server = Server::with(Terms {
        data_size,
        credits: 128,
        ..TERMS
    });
    let idx = server.accepted(FIRST);
    server.reply(idx, len);
    server.sent();
    (server, idx)
}

/// A client asks for `count` packets after the first.
fn ask(server: &mut Server, idx: RequestIdx, count: u16) {
    let asked = Header {
        aux: count,
        pkt: PktNum(1),
        ..header(PacketType::Rfr, FIRST, 0)
    };
    let line = server.sessions.at(server.session);
    let packet = Received::new(server.session, line, &asked, false);
    let (sessions, context) = (&server.sessions, &mut server.context);
    server.requests.on_asked(idx, &packet, sessions, context);
    server.requests.send_asked(sessions, context);
}

#[test]
fn a_small_packet_counts_as_the_least_charge() {
    let (mut server, idx) = answering(64, 8192);
    ask(&mut server, idx, 100);
    let most = super::super::asked::ITERATION_BYTES / super::super::asked::LEAST_CHARGE;
    assert_eq!(server.sent().len(), most);
}

#[test]
fn packets_wait_for_the_nic_if_the_path_is_declared() {
    let (mut server, idx) = answering(1024, 8192);
    let session = server.session;
    server.sessions.at_mut(session).on_path(PathTraits {
        declared: true,
        ..PathTraits::default()
    });
    ask(&mut server, idx, 7);
    let ahead = usize::try_from(AHEAD_PACKETS).unwrap();
    // The NIC may hold this many, and one more packet is on the cable.
    assert_eq!(server.sent().len(), ahead + 1);
    // The cable of `context` carries a byte a nanosecond.
    let packet = Nanos(u64::from(1024 + HEADER_BYTES + FRAME_BYTES));
    let now = server.context.moment.now();
    assert_eq!(server.context.agenda.due(), now + packet);
    assert!(!server.requests.is_waiting(), "the agenda has an entry");
    for left in (0..6 - ahead).rev() {
        server.pass(packet);
        let context = &mut server.context;
        context.agenda.call_attention_to_asked(context.moment.now());
        assert!(context.agenda.needs_attention());
        context.agenda.on_drained(false);
        server.requests.send_asked(&server.sessions, context);
        assert_eq!(server.sent().len(), 1, "{left} are left");
    }
    server.context.agenda.find_due(Nanos::MAX);
    let asked = server.context.agenda.due();
    assert!(
        asked > server.context.moment.now() + packet,
        "no packet is left"
    );
}

#[test]
fn packets_do_not_wait_if_the_line_rate_may_be_wrong() {
    let (mut server, idx) = answering(1024, 8192);
    ask(&mut server, idx, 7);
    assert_eq!(server.sent().len(), 7);
}
