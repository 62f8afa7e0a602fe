//! The header: round trips of valid ones, a reason for each invalid one, and no panic on any input.

use std::vec::Vec;

use proptest::prelude::*;

use super::{Flags, HEADER_LEN, Header, HeaderError, PacketType, VERSION};
use crate::{PktNum, ReqNum, SessionNum, Token, check};

const TYPES: [PacketType; 7] = [
    PacketType::Req,
    PacketType::Cr,
    PacketType::Rfr,
    PacketType::Resp,
    PacketType::Err,
    PacketType::Cancel,
    PacketType::Challenge,
];

/// Headers that an endpoint may send.
fn headers() -> impl Strategy<Value = Header> {
    let extents = prop::sample::select(&[0_u32, 1, 2, 3, 4, 0x11, 0x44, 0x62, 0x71][..]);
    let arrivals = (0_u32..1 << 24, extents);
    let words = (
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
    );
    (0..TYPES.len(), any::<u8>(), any::<u16>(), words, arrivals).prop_map(
        |(kind, flags, aux, (session, token, size, pkt, req), (cumulative, bitmap))| {
            let kind = TYPES[kind];
            let arrivals = Header::arrivals(PktNum(cumulative), bitmap);
            let (aux, size, pkt, flags_known) = match kind {
                PacketType::Req => (aux, size, pkt, Flags::OF_REQ),
                PacketType::Resp => (aux, size, pkt, Flags::KNOWN),
                PacketType::Cr => (aux, arrivals, pkt, Flags::WITH_BITMAP),
                PacketType::Rfr => (0, arrivals, pkt, Flags::WITH_BITMAP),
                PacketType::Err => (aux, size, 0, Flags::KNOWN),
                PacketType::Cancel => (0, 0, 0, Flags::KNOWN),
                PacketType::Challenge => (0, 0, 0, Flags::WITH_BITMAP),
            };
            let req = if kind == PacketType::Challenge {
                0
            } else {
                req
            };
            Header {
                kind,
                flags: Flags(flags & flags_known.0),
                aux,
                session: SessionNum(session),
                token: Token(token),
                size,
                pkt: PktNum(pkt),
                req: ReqNum(req),
            }
        },
    )
}

/// A header and the bytes that follow it, with enough bytes for its extension.
fn packet_of(header: &Header, behind: &[u8]) -> Vec<u8> {
    let mut packet = header.encode().to_vec();
    packet.resize(HEADER_LEN + header.extension_len(), 0xA5);
    packet.extend_from_slice(behind);
    packet
}

fn example(kind: PacketType) -> Header {
    Header {
        kind,
        flags: Flags::NONE,
        aux: 0,
        session: SessionNum(7),
        token: Token(9),
        size: 0,
        pkt: PktNum(0),
        req: ReqNum(11),
    }
}

proptest! {
    #[test]
    fn a_header_survives_encoding_and_decoding(
        header in headers(),
        behind in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let packet = packet_of(&header, &behind);
        prop_assert_eq!(Header::decode(&packet), Ok(header));
        check::packet(&packet);
    }

    #[test]
    fn mutated_packets_are_decoded_or_refused_with_a_reason(
        header in headers(),
        behind in prop::collection::vec(any::<u8>(), 0..40),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut packet = packet_of(&header, &behind);
        for (place, bits) in mutations {
            let place = place.index(packet.len());
            packet[place] ^= bits;
        }
        check::packet(&packet);
        packet.truncate(cut.index(packet.len()));
        check::packet(&packet);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused_with_a_reason(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        force_version in any::<bool>(),
    ) {
        if force_version && let Some(first) = bytes.first_mut() {
            *first = VERSION << 4 | *first & 0x7;
        }
        check::packet(&bytes);
    }

    #[test]
    fn the_packets_of_a_message_add_up_to_it(size in 0_u32..100_000, data_size in 16_u32..5000) {
        let packet = |pkt| Header { size, pkt: PktNum(pkt), ..example(PacketType::Resp) };
        let lengths = (0..).map_while(|pkt| packet(pkt).data_len(data_size));
        let lengths: Vec<u32> = lengths.collect();
        prop_assert_eq!(lengths.iter().sum::<u32>(), size);
        prop_assert_eq!(lengths.len(), (size.div_ceil(data_size)).max(1) as usize);
    }

    #[test]
    fn packets_back_to_back_are_found_again(
        sizes in prop::collection::vec(0_u32..200, 1..8),
        acks in any::<u8>(),
    ) {
        let data_size = 200;
        let mut frame = Vec::new();
        let mut sent = Vec::new();
        for (i, size) in sizes.into_iter().enumerate() {
            let flags = if acks >> i & 1 == 1 { Flags::ACK_VECTOR } else { Flags::NONE };
            let header = Header { size, flags, ..example(PacketType::Req) };
            frame.extend(packet_of(&header, &std::vec![0x5A; size as usize]));
            sent.push(header);
        }
        let mut rest = frame.as_slice();
        for header in sent {
            prop_assert_eq!(Header::decode(rest), Ok(header));
            rest = &rest[header.packet_len(data_size).expect("packet 0 exists")..];
        }
        prop_assert!(rest.is_empty());
    }
}

#[test]
fn each_invalid_header_is_refused_with_its_reason() {
    let bytes = |header: Header| header.encode();
    let good = bytes(example(PacketType::Req));
    assert_eq!(
        Header::decode(&good[..HEADER_LEN - 1]),
        Err(HeaderError::Short)
    );
    assert_eq!(Header::decode(&[]), Err(HeaderError::Short));

    for version in (0..16).filter(|version| *version != VERSION) {
        let mut other = good;
        other[0] = version << 4;
        assert_eq!(Header::decode(&other), Err(HeaderError::Version));
    }
    for kind in 7..16 {
        let mut other = good;
        other[0] = VERSION << 4 | kind;
        assert_eq!(Header::decode(&other), Err(HeaderError::Type));
    }
    for flags in [4, 32, 64, 128, Flags::ENCRYPTED.0] {
        let mut other = good;
        other[1] = flags;
        assert_eq!(Header::decode(&other), Err(HeaderError::Flags));
    }
}

#[test]
fn fields_that_a_type_does_not_use_are_zero() {
    let refused = |header: Header, error| {
        let packet = packet_of(&header, &[0; 64]);
        assert_eq!(Header::decode(&packet), Err(error), "{header:?}");
    };
    for kind in [PacketType::Cr, PacketType::Rfr] {
        let flags = Flags::ACK_VECTOR;
        refused(
            Header {
                flags,
                ..example(kind)
            },
            HeaderError::Flags,
        );
        refused(
            Header {
                size: 5 << 24,
                ..example(kind)
            },
            HeaderError::Field,
        );
    }
    refused(
        Header {
            aux: 257,
            ..example(PacketType::Rfr)
        },
        HeaderError::Field,
    );
    for kind in [PacketType::Err, PacketType::Cancel, PacketType::Challenge] {
        refused(
            Header {
                pkt: PktNum(1),
                ..example(kind)
            },
            HeaderError::Field,
        );
    }
    for kind in [PacketType::Cancel, PacketType::Challenge] {
        refused(
            Header {
                size: 1,
                ..example(kind)
            },
            HeaderError::Field,
        );
        refused(
            Header {
                aux: 1,
                ..example(kind)
            },
            HeaderError::Field,
        );
    }
    refused(
        Header {
            req: ReqNum(1),
            ..example(PacketType::Challenge)
        },
        HeaderError::Field,
    );
}

#[test]
fn an_extension_that_is_cut_off_makes_the_packet_short() {
    let acks = Header {
        flags: Flags::ACK_VECTOR,
        ..example(PacketType::Resp)
    };
    let bitmap = Header {
        size: Header::arrivals(PktNum(3), 4),
        ..example(PacketType::Cr)
    };
    let challenge = Header {
        req: ReqNum(0),
        ..example(PacketType::Challenge)
    };
    for header in [acks, bitmap, challenge] {
        let packet = packet_of(&header, &[]);
        assert_eq!(Header::decode(&packet), Ok(header));
        for len in HEADER_LEN..packet.len() {
            assert_eq!(Header::decode(&packet[..len]), Err(HeaderError::Short));
        }
    }
}

#[test]
fn types_for_the_server_are_those_that_a_client_sends() {
    let for_server: Vec<_> = TYPES
        .into_iter()
        .filter(|kind| kind.is_for_server())
        .collect();
    assert_eq!(
        for_server,
        [PacketType::Req, PacketType::Rfr, PacketType::Cancel]
    );
}

#[test]
fn a_message_of_one_gibibyte_ends_where_it_should() {
    let header = |pkt| Header {
        size: 1 << 30,
        pkt: PktNum(pkt),
        ..example(PacketType::Req)
    };
    assert_eq!(header((1 << 18) - 1).data_len(4096), Some(4096));
    assert_eq!(header(1 << 18).data_len(4096), None);
    assert_eq!(header(u32::MAX).data_len(u32::MAX), None, "no overflow");
}
