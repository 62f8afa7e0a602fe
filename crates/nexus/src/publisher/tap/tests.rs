//! A trace has all bytes of a packet that core passes to the tap, and no others.

use std::sync::Arc;

use dunlin_core::transport::{MAX_INLINE, PeerId};
use dunlin_insight::writer::Page;
use dunlin_insight::{Found, Trace};
use dunlin_msgbuf::{Pool, PoolConfig};
use dunlin_wire::{Flags, HEADER_LEN, PacketType, PktNum, ReqNum, SessionNum, Token};

use super::*;
use crate::publisher::names;

/// The header of a whole request of this size.
fn header(size: u32) -> [u8; HEADER_LEN] {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 1,
        session: SessionNum(2),
        token: Token(0x0BAD_C0DE),
        size,
        pkt: PktNum(0),
        req: ReqNum(3),
    };
    header.encode()
}

#[test]
fn frames_and_packets_are_recorded_with_their_data() {
    let page = Page::new("127.0.0.1:31850".parse().unwrap(), &names());
    let page = Arc::new(page.unwrap());
    let file = page.file().try_clone().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let (pid, path) = (std::process::id(), path.into());
    let mut trace = Trace::begin(&Found { pid, file, path }, None, 64).unwrap();

    let mut recording = Recording::new(Recorder::new(page, 3, 64), Nanos(0));
    let seen = Seen {
        at: Nanos(1_000),
        peer: Some(PeerId(7)),
        dropped: Some(1),
    };
    // The frame has a part of a large message, and a packet after it.
    let packet_len = |header: &Header| Some(if header.size == 4_000 { 30 } else { 70 });
    let came = [&header(4_000)[..], &[5; 6], &header(46), &[5; 46]].concat();
    recording.received(seen, &Frame::new(&came), &packet_len);
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let mut buf = pool.alloc(32).unwrap();
    buf.data_mut().fill(9);
    let mut inline = [1; MAX_INLINE];
    inline[..HEADER_LEN].copy_from_slice(&header(32));
    let item = TxItem {
        peer: PeerId(8),
        inline_len: 24,
        inline,
        data: buf.lend(),
    };
    recording.sent(Nanos(2_000), &item);

    let mut packets = Vec::new();
    while trace.take(|packet| packets.push(packet)).unwrap() > 0 {}
    let [came, went] = &packets[..] else {
        panic!("{packets:?}")
    };
    let masked = |size: u32| {
        let mut bytes = header(size).to_vec();
        bytes[8..12].fill(0);
        bytes
    };
    assert_eq!((came.endpoint, came.sent, came.peer), (3, false, Some(7)));
    assert_eq!(came.len, 100);
    let kept = [&masked(4_000)[..], &[5; 6], &masked(46), &[5; 10]];
    assert_eq!(came.bytes, kept.concat());
    assert_eq!(came.dropped.as_deref(), Some("version"));
    assert_eq!((went.sent, went.peer, went.len), (true, Some(8), 56));
    assert_eq!(went.bytes, [&masked(32)[..], &[9; 32]].concat());
    assert_eq!(
        (went.at_ns - came.at_ns, went.dropped.as_deref()),
        (1_000, None)
    );
}
