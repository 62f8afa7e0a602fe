//! Vectors of packets: every type, every extension, and every reason to refuse one.

use dunlin_wire::{
    AckVector, Bitmap, ErrorCode, Flags, Header, PacketType, PktNum, ReqNum, Residence, SessionNum,
    Token,
};

use crate::text::Block;

/// Data bytes per packet in the session of the vectors.
const DATA_SIZE: u32 = 64;

pub(crate) fn blocks() -> Vec<Block> {
    let all = [requests(), responses(), arrivals(), invalid()].concat();
    all.iter()
        .map(|(name, packet)| described(name, packet))
        .collect()
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

/// Named packets, valid or not.
type Named = Vec<(&'static str, Vec<u8>)>;

/// A packet with its data, which counts up and has the length that the header states.
fn packet(header: Header, extension: &[u8]) -> Vec<u8> {
    let data = header.data_len(DATA_SIZE).unwrap_or(0);
    let mut packet = header.encode().to_vec();
    packet.extend_from_slice(extension);
    packet.extend((0..=u8::MAX).cycle().take(data as usize));
    packet
}

/// A packet without extension, whose header is `header` after `change`.
fn changed(header: Header, change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = header;
    change(&mut header);
    packet(header, &[])
}

/// A header that carries this residence, in nanoseconds.
fn answer(kind: PacketType, residence: u64) -> Header {
    let aux = Residence::from_nanos(residence).0;
    Header { aux, ..base(kind) }
}

fn requests() -> Named {
    let mut req = base(PacketType::Req);
    req.aux = 0x0123;
    req.size = 32;
    let acks = AckVector([0xFFFF_FFFB, 3, 11, 11].map(ReqNum)).encode();
    let flags = Flags::ACK_VECTOR.with(Flags::RETRANSMISSION);
    let with_acks = Header { flags, ..req };
    let of_three = Header { size: 130, ..req };
    vec![
        ("req", packet(req, &[])),
        ("req-empty", changed(req, |h| h.size = 0)),
        (
            "req-at-the-wrap",
            changed(req, |h| h.req = ReqNum(u32::MAX)),
        ),
        ("req-to-sample", changed(req, |h| h.flags = Flags::SAMPLE)),
        ("req-again-with-acks", packet(with_acks, &acks)),
        ("req-first-of-three", packet(of_three, &[])),
        (
            "req-first-of-three-followed",
            changed(of_three, |h| h.flags = Flags::FOLLOWED),
        ),
        (
            "req-last-of-three",
            changed(of_three, |h| h.pkt = PktNum(2)),
        ),
        (
            "req-behind-the-end",
            changed(of_three, |h| h.pkt = PktNum(3)),
        ),
        ("cancel", packet(base(PacketType::Cancel), &[])),
    ]
}

fn responses() -> Named {
    let mut resp = answer(PacketType::Resp, 750);
    resp.size = 32;
    let err = answer(PacketType::Err, 2048);
    vec![
        ("resp", packet(resp, &[])),
        (
            "resp-without-sample",
            changed(resp, |h| h.aux = Residence::NO_SAMPLE.0),
        ),
        (
            "resp-congestion",
            changed(resp, |h| h.flags = Flags::ECN_ECHO),
        ),
        (
            "err-unknown-type",
            changed(err, |h| h.size = ErrorCode::UNKNOWN_TYPE.0),
        ),
        (
            "err-cancelled",
            changed(err, |h| h.size = ErrorCode::CANCELLED.0),
        ),
        (
            "err-shutting-down",
            changed(err, |h| h.size = ErrorCode::SHUTTING_DOWN.0),
        ),
        (
            "err-no-response-memory",
            changed(err, |h| h.size = ErrorCode::NO_RESPONSE_MEMORY.0),
        ),
        (
            "err-refused",
            changed(err, |h| h.size = ErrorCode::REFUSED.0),
        ),
        (
            "err-application",
            changed(err, |h| h.size = ErrorCode::application(404).0),
        ),
    ]
}

fn arrivals() -> Named {
    let mut arrived = Bitmap::EMPTY;
    for offset in [1, 63, 64, 255] {
        assert!(arrived.insert(offset));
    }
    let words = arrived.encode();
    let mut further = Bitmap::beginning_with(4);
    for offset in [256, 300, 511] {
        assert!(further.insert(offset));
    }
    let cr = answer(PacketType::Cr, 51_000);
    let rfr = base(PacketType::Rfr);
    let with = |header, cumulative, pkt, words| {
        let size = Header::arrivals(PktNum(cumulative), words);
        Header {
            size,
            pkt: PktNum(pkt),
            ..header
        }
    };
    vec![
        ("cr", packet(with(cr, 1, 0, 0), &[])),
        ("cr-four-words", packet(with(cr, 70_000, 70_255, 4), &words)),
        (
            "cr-further-words",
            packet(with(cr, 70_000, 70_511, 0x44), &further.encode()),
        ),
        ("rfr-probe", packet(rfr, &[])),
        (
            "rfr-for-sixteen",
            changed(with(rfr, 5, 9, 0), |h| h.aux = 16),
        ),
        ("rfr-one-word", packet(with(rfr, 5, 9, 1), &words[..8])),
        ("challenge", packet(challenge(), &[1, 2, 3, 4, 5, 6, 7, 8])),
    ]
}

fn challenge() -> Header {
    Header {
        req: ReqNum(0),
        ..base(PacketType::Challenge)
    }
}

fn invalid() -> Named {
    let mut req = base(PacketType::Req);
    req.size = 4;
    let with = |at: usize, byte: u8, header: Header| {
        let mut packet = packet(header, &[0; 40]);
        packet[at] = byte;
        packet
    };
    let (cr, rfr) = (base(PacketType::Cr), base(PacketType::Rfr));
    let (err, cancel) = (base(PacketType::Err), base(PacketType::Cancel));
    let acks = Header {
        flags: Flags::ACK_VECTOR,
        ..base(PacketType::Req)
    };
    let bitmap = Header {
        size: Header::arrivals(PktNum(5), 2),
        ..cr
    };
    vec![
        ("bad-empty", vec![]),
        ("bad-one-byte-short", req.encode()[..23].to_vec()),
        ("bad-version-0", with(0, 0x00, req)),
        ("bad-version-2", with(0, 0x20, req)),
        ("bad-type-7", with(0, 0x17, req)),
        ("bad-type-15", with(0, 0x1F, req)),
        ("bad-flag-encrypted", with(1, 4, req)),
        ("bad-flag-32", with(1, 32, req)),
        ("bad-flag-128", with(1, 128, req)),
        ("bad-err-to-sample", with(1, 16, err)),
        ("bad-cr-with-acks", with(1, 8, cr)),
        ("bad-rfr-with-acks", with(1, 8, rfr)),
        ("bad-rfr-for-257", {
            let asks = Header { aux: 257, ..rfr };
            packet(asks, &[0; 40])
        }),
        ("bad-cr-five-words", with(15, 5, cr)),
        ("bad-cr-words-too-far", with(15, 0x54, cr)),
        ("bad-cr-place-of-no-words", with(15, 0x10, cr)),
        ("bad-err-packet-1", with(16, 1, err)),
        ("bad-cancel-packet-1", with(16, 1, cancel)),
        ("bad-cancel-with-size", with(12, 1, cancel)),
        ("bad-cancel-with-residence", with(3, 1, cancel)),
        ("bad-acks-cut-off", packet(acks, &[0; 15])),
        ("bad-bitmap-cut-off", packet(bitmap, &[0; 15])),
        ("bad-challenge-cut-off", packet(challenge(), &[0; 7])),
        ("bad-challenge-of-request", with(20, 1, challenge())),
        ("bad-challenge-with-acks", with(1, 8, challenge())),
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

/// Adds the meaning of `aux` and `size` for this type.
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
        PacketType::Rfr => block
            .with("asked_for", header.aux)
            .with("cumulative", header.cumulative().0),
        PacketType::Cancel | PacketType::Challenge => block,
    }
}

/// Adds extension and data, with the lengths that the header states.
fn with_rest(block: Block, header: &Header, packet: &[u8]) -> Block {
    let rest = &packet[dunlin_wire::HEADER_LEN..];
    let (extension, data) = rest.split_at(header.extension_len());
    let block = if header.flags.has(Flags::ACK_VECTOR) {
        let acks = AckVector::decode(extension).expect("the header announces acknowledgements");
        assert_eq!(acks.encode(), extension);
        block.with("acks", acks.0.map(|ack| ack.0.to_string()).join(" "))
    } else if header.kind == PacketType::Challenge {
        block.with_bytes("challenge", extension)
    } else if header.extension_len() > 0 {
        let extent = header.bitmap_extent();
        let arrived = Bitmap::decode(extension, extent).expect("the header announces a bitmap");
        assert!(arrived.encode().starts_with(extension));
        let offsets = (0..dunlin_wire::MAX_AHEAD).filter(|offset| arrived.contains(*offset));
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
