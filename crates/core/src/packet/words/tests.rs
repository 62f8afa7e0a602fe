//! The first packet of a frame, if the frame begins with a whole message, and answers that state a
//! residence.

use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

use super::*;

/// A request whose header states `size` bytes, of which `present` follow.
fn packet(size: u32, present: usize) -> Vec<u8> {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 1,
        session: SessionNum(2),
        token: Token(3),
        size,
        pkt: PktNum(0),
        req: ReqNum(4),
    };
    let mut bytes = header.encode().to_vec();
    bytes.resize(HEADER_LEN + present, 7);
    bytes
}

#[test]
fn the_first_packet_ends_where_the_next_one_begins() {
    let frame = [packet(5, 5), packet(0, 0), packet(40, 40)].concat();
    let mut rest = &frame[..];
    for len in [5, 0, 40] {
        let first = first_packet(rest).expect("a packet is left");
        assert_eq!(first.len(), HEADER_LEN + len);
        rest = &rest[first.len()..];
    }
    assert!(first_packet(rest).is_none(), "nothing is left");
}

#[test]
fn neither_a_cut_packet_nor_a_part_of_a_message_is_a_first_packet() {
    assert!(first_packet(&packet(5, 4)).is_none());
    assert!(first_packet(&packet(0, 0)[..HEADER_LEN - 1]).is_none());
    assert!(first_packet(&packet(1 << 20, 1000)).is_none());
}

#[test]
fn only_a_response_without_flags_that_states_a_residence_is_timed() {
    let header = |kind, flags, residence: Residence| Header {
        kind,
        flags,
        aux: residence.0,
        session: SessionNum(2),
        token: Token(3),
        size: 0,
        pkt: PktNum(0),
        req: ReqNum(4),
    };
    let timed = Residence::from_nanos(700);
    for (header, expected) in [
        (header(PacketType::Resp, Flags::NONE, timed), true),
        (header(PacketType::Resp, Flags::NONE, Residence::ZERO), true),
        (
            header(PacketType::Resp, Flags::NONE, Residence::NO_SAMPLE),
            false,
        ),
        (
            header(PacketType::Resp, Flags::RETRANSMISSION, timed),
            false,
        ),
        (header(PacketType::Err, Flags::NONE, timed), false),
    ] {
        let words = words(&header.encode());
        assert_eq!(is_timed(&words), expected, "{header:?}");
        assert_eq!(residence_of(&words), header.residence());
    }
}
