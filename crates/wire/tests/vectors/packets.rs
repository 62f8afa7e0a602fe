//! Vectors of packets: every type, every extension, and every reason to refuse one.

use dunlin_wire::{
    AckVector, Bitmap, ErrorCode, Flags, Header, PacketType, PktNum, ReqNum, Residence, SessionNum,
    Token,
};

use crate::text::Block;

/// Data per packet of the session that the vectors belong to.
const DATA_SIZE: u32 = 64;

pub(crate) fn blocks() -> Vec<Block> {
    let valid = valid()
        .into_iter()
        .map(|(name, packet)| described(name, &packet));
    let invalid = invalid()
        .into_iter()
        .map(|(name, packet)| described(name, &packet));
    valid.chain(invalid).collect()
}

pub(crate) fn reread(block: &Block) -> Block {
    described(block.get("name"), &block.bytes("hex"))
}

fn base(kind: PacketType) -> Header {
    Header {
        kind,
        flags: Flags::NONE,
        aux: 0,
        session: SessionNum(0x0102_0304),
        token: Token(0xA1B2_C3D4),
        size: 0,
        pkt: PktNum(0),
        req: ReqNum(0x0000_1235),
    }
}

/// A packet with its data: as many counting bytes as the header says.
fn packet(header: Header, extension: &[u8]) -> Vec<u8> {
    let data = header.data_len(DATA_SIZE).unwrap_or(0);
    let mut packet = header.encode().to_vec();
    packet.extend_from_slice(extension);
    packet.extend((0..=u8::MAX).cycle().take(data as usize));
    packet
}

fn valid() -> Vec<(&'static str, Vec<u8>)> {
    let req = Header {
        aux: 0x0123,
        size: 32,
        ..base(PacketType::Req)
    };
    let resp = Header {
        aux: Residence::from_nanos(750).0,
        size: 32,
        ..base(PacketType::Resp)
    };
    let cr = Header {
        aux: Residence::from_nanos(51_000).0,
        ..base(PacketType::Cr)
    };
    let rfr = base(PacketType::Rfr);
    let err = Header {
        aux: Residence::from_nanos(2048).0,
        ..base(PacketType::Err)
    };
    let acks = AckVector([0xFFFF_FFFB, 3, 11, 11].map(ReqNum)).encode();
    let mut arrived = Bitmap::EMPTY;
    for offset in [1, 63, 64, 255] {
        assert!(arrived.insert(offset));
    }
    let full = arrived.encode();
    let both = Flags::ACK_VECTOR.with(Flags::RETRANSMISSION);
    let no_sample = Residence::NO_SAMPLE.0;
    vec![
        ("req", packet(req, &[])),
        ("req-empty", packet(Header { size: 0, ..req }, &[])),
        (
            "req-at-the-wrap",
            packet(
                Header {
                    req: ReqNum(0xFFFF_FFFF),
                    ..req
                },
                &[],
            ),
        ),
        (
            "req-again-with-acks",
            packet(Header { flags: both, ..req }, &acks),
        ),
        (
            "req-first-of-three",
            packet(Header { size: 130, ..req }, &[]),
        ),
        (
            "req-last-of-three",
            packet(
                Header {
                    size: 130,
                    pkt: PktNum(2),
                    ..req
                },
                &[],
            ),
        ),
        (
            "req-behind-the-end",
            packet(
                Header {
                    size: 128,
                    pkt: PktNum(2),
                    ..req
                },
                &[],
            ),
        ),
        ("resp", packet(resp, &[])),
        (
            "resp-without-sample",
            packet(
                Header {
                    aux: no_sample,
                    ..resp
                },
                &[],
            ),
        ),
        (
            "resp-congestion",
            packet(
                Header {
                    flags: Flags::ECN_ECHO,
                    ..resp
                },
                &[],
            ),
        ),
        (
            "cr",
            packet(
                Header {
                    size: Header::arrivals(PktNum(1), 0),
                    ..cr
                },
                &[],
            ),
        ),
        (
            "cr-four-words",
            packet(
                Header {
                    size: Header::arrivals(PktNum(70_000), 4),
                    pkt: PktNum(70_255),
                    ..cr
                },
                &full,
            ),
        ),
        ("rfr-probe", packet(rfr, &[])),
        (
            "rfr-one-word",
            packet(
                Header {
                    size: Header::arrivals(PktNum(5), 1),
                    pkt: PktNum(9),
                    ..rfr
                },
                &full[..8],
            ),
        ),
        (
            "err-unknown-type",
            packet(
                Header {
                    size: ErrorCode::UNKNOWN_TYPE.0,
                    ..err
                },
                &[],
            ),
        ),
        (
            "err-cancelled",
            packet(
                Header {
                    size: ErrorCode::CANCELLED.0,
                    ..err
                },
                &[],
            ),
        ),
        (
            "err-application",
            packet(
                Header {
                    size: ErrorCode::application(404).0,
                    ..err
                },
                &[],
            ),
        ),
        ("cancel", packet(base(PacketType::Cancel), &[])),
    ]
}

fn invalid() -> Vec<(&'static str, Vec<u8>)> {
    let req = Header {
        aux: 0x0123,
        size: 4,
        ..base(PacketType::Req)
    };
    let with = |at: usize, byte: u8, header: Header| {
        let mut packet = packet(header, &[0; 40]);
        packet[at] = byte;
        packet
    };
    let acks = Header {
        flags: Flags::ACK_VECTOR,
        size: 0,
        ..req
    };
    let bitmap = Header {
        size: Header::arrivals(PktNum(5), 2),
        ..base(PacketType::Cr)
    };
    vec![
        ("bad-empty", vec![]),
        ("bad-one-byte-short", req.encode()[..23].to_vec()),
        ("bad-version-0", with(0, 0x00, req)),
        ("bad-version-2", with(0, 0x20, req)),
        ("bad-type-6", with(0, 0x16, req)),
        ("bad-type-15", with(0, 0x1F, req)),
        ("bad-flag-encrypted", with(1, 4, req)),
        ("bad-flag-16", with(1, 16, req)),
        ("bad-flag-128", with(1, 128, req)),
        ("bad-cr-with-acks", with(1, 8, base(PacketType::Cr))),
        ("bad-rfr-with-acks", with(1, 8, base(PacketType::Rfr))),
        ("bad-rfr-with-residence", with(2, 1, base(PacketType::Rfr))),
        ("bad-cr-five-words", with(15, 5, base(PacketType::Cr))),
        ("bad-err-packet-1", with(16, 1, base(PacketType::Err))),
        ("bad-cancel-packet-1", with(16, 1, base(PacketType::Cancel))),
        (
            "bad-cancel-with-size",
            with(12, 1, base(PacketType::Cancel)),
        ),
        (
            "bad-cancel-with-residence",
            with(3, 1, base(PacketType::Cancel)),
        ),
        ("bad-acks-cut-off", packet(acks, &[0; 15])),
        ("bad-bitmap-cut-off", packet(bitmap, &[0; 15])),
    ]
}

fn described(name: &str, packet: &[u8]) -> Block {
    let block = Block::named(name);
    let header = match Header::decode(packet) {
        Ok(header) => header,
        Err(error) => {
            return block
                .with("error", format!("{error:?}"))
                .with_bytes("hex", packet);
        }
    };
    assert!(packet.starts_with(&header.encode()), "{name}");
    let block = block
        .with("type", format!("{:?}", header.kind))
        .with("flags", header.flags.0)
        .with("aux", header.aux)
        .with("session", header.session.0)
        .with("token", header.token.0)
        .with("size", header.size)
        .with("packet_number", header.pkt.0)
        .with("request_number", header.req.0);
    let block = with_meaning(block, &header);
    with_rest(block, &header, packet).with_bytes("hex", packet)
}

/// What `aux` and `size` mean for this type.
fn with_meaning(block: Block, header: &Header) -> Block {
    let residence = header.residence().to_nanos();
    let residence = residence.map_or("none".to_owned(), |nanos| nanos.to_string());
    match header.kind {
        PacketType::Req => block.with("request_type", header.req_type().0),
        PacketType::Resp => block.with("residence_nanos", residence),
        PacketType::Err => block
            .with("residence_nanos", residence)
            .with("error_code", ErrorCode(header.size)),
        PacketType::Cr => block
            .with("residence_nanos", residence)
            .with("cumulative", header.cumulative().0),
        PacketType::Rfr => block.with("cumulative", header.cumulative().0),
        PacketType::Cancel => block,
    }
}

/// Extension and data, as the header says.
fn with_rest(block: Block, header: &Header, packet: &[u8]) -> Block {
    let rest = &packet[dunlin_wire::HEADER_LEN..];
    let (extension, data) = rest.split_at(header.extension_len());
    let block = if header.flags.has(Flags::ACK_VECTOR) {
        let acks = AckVector::decode(extension).expect("the header says that it is there");
        assert_eq!(acks.encode(), extension);
        block.with("acks", acks.0.map(|ack| ack.0.to_string()).join(" "))
    } else if header.extension_len() > 0 {
        let words = header.bitmap_words();
        let arrived = Bitmap::decode(extension, words).expect("the header says that it is there");
        assert!(arrived.encode().starts_with(extension));
        let offsets = (0..dunlin_wire::MAX_BITMAP_BITS).filter(|offset| arrived.contains(*offset));
        let offsets: Vec<String> = offsets.map(|offset| offset.to_string()).collect();
        block.with("arrived_behind_cumulative", offsets.join(" "))
    } else {
        block
    };
    let block = block.with("data_size", DATA_SIZE);
    match header.data_len(DATA_SIZE) {
        None => block.with("data_len", "none"),
        Some(len) => {
            assert_eq!(header.packet_len(DATA_SIZE), Some(packet.len()));
            block.with("data_len", len).with_bytes("data", data)
        }
    }
}
