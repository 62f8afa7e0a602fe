//! Packets that a client has asked for leave in turns.

use super::*;

#[test]
fn small_packets_count_as_they_cost() {
    let mut server = Server::with(Terms {
        data_size: 64,
        credits: 128,
        ..TERMS
    });
    let idx = server.accepted(FIRST);
    server.reply(idx, 8192);
    server.sent();
    let asked = Header {
        aux: 100,
        pkt: PktNum(1),
        ..header(PacketType::Rfr, FIRST, 0)
    };
    let line = server.sessions.at(server.session);
    let packet = Received::new(server.session, line, &asked, false);
    let (sessions, context) = (&server.sessions, &mut server.context);
    server.requests.on_asked(idx, &packet, sessions, context);
    server.requests.send_asked(sessions, context);
    let most = super::super::asked::ITERATION_BYTES / super::super::asked::LEAST_CHARGE;
    assert_eq!(server.sent().len(), most);
}
