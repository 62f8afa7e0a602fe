//! A trace is a pcapng file that readers can read.

use dunlin_insight::Packet;
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

use super::*;

fn packet(sent: bool) -> Packet {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 1,
        session: SessionNum(5),
        token: Token(6),
        size: 32,
        pkt: PktNum(0),
        req: ReqNum(8),
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(&[7; 9]);
    Packet {
        at_ns: 1_700_000_000_000_000_007,
        endpoint: 258,
        sent,
        congestion: false,
        peer: Some(258),
        dropped: (!sent).then(|| "token".into()),
        len: 56,
        bytes,
    }
}

/// The blocks of a file: their types and bodies.
fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let len = word(file, 4) as usize;
        assert!(len.is_multiple_of(4));
        assert_eq!(word(file, len - 4) as usize, len, "the length at the end");
        blocks.push((word(file, 0), file[8..len - 4].to_vec()));
        file = &file[len..];
    }
    blocks
}

#[test]
fn a_file_has_a_section_an_interface_and_packets() {
    let mut file = Vec::new();
    let mut writer = pcapng::Writer::begin(&mut file, 88).unwrap();
    writer.write(&packet(true), 0).unwrap();
    writer.write(&packet(false), 3).unwrap();
    drop(writer);
    let blocks = blocks(&file);
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 6]);
    let body = &blocks[2].1;
    let word = |at: usize| u32::from_le_bytes(*body[at..].first_chunk().unwrap());
    let time = u64::from(word(4)) << 32 | u64::from(word(8));
    assert_eq!(time, 1_700_000_000_000_000_007);
    // Interface 0; 42 bytes of lower headers, then 33 bytes captured of a packet of 56.
    assert_eq!([word(0), word(12), word(16)], [0, 42 + 33, 42 + 56]);
    let ip = &body[20 + 14..][..20];
    assert_eq!(
        (&ip[12..16], &ip[16..]),
        (&[10, 0, 1, 2][..], &[10, 128, 1, 2][..])
    );
    let dropped = String::from_utf8_lossy(&blocks[3].1).into_owned();
    assert!(dropped.contains("dropped: token"));
    assert!(!String::from_utf8_lossy(body).contains("dropped"));
}

#[test]
fn a_line_names_sender_receiver_and_packet() {
    let line = lines::line(&packet(true));
    assert!(line.contains("258 -> 258"), "{line}");
    assert!(line.contains("REQ"), "{line}");
    assert!(
        line.contains("session 5 request 8 packet 0 size 32, 56 bytes"),
        "{line}"
    );
    let line = lines::line(&packet(false));
    assert!(line.ends_with("DROPPED: token"), "{line}");
    let mut short = packet(true);
    short.bytes.truncate(3);
    assert!(lines::line(&short).contains("no header"));
    let json: serde_json::Value = serde_json::from_str(&lines::json(&packet(false))).unwrap();
    assert_eq!(
        (&json["dropped"], &json["header"]["request"]),
        (&"token".into(), &8.into())
    );
}
