//! A trace has of a packet exactly what core shows of it.

use std::sync::Arc;

use dunlin_core::transport::{MAX_INLINE, PeerId};
use dunlin_insight::writer::Page;
use dunlin_insight::{Found, Trace};
use dunlin_msgbuf::{Pool, PoolConfig};

use super::*;
use crate::publisher::names;

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
    recording.received(seen, &Frame::new(&[5; 100]));
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let mut buf = pool.alloc(32).unwrap();
    buf.data_mut().fill(9);
    let item = TxItem {
        peer: PeerId(8),
        inline_len: 24,
        inline: [1; MAX_INLINE],
        data: buf.lend(),
    };
    recording.sent(Nanos(2_000), &item);

    let mut packets = Vec::new();
    while trace.take(|packet| packets.push(packet)).unwrap() > 0 {}
    let [came, went] = &packets[..] else {
        panic!("{packets:?}")
    };
    assert_eq!((came.endpoint, came.sent, came.peer), (3, false, Some(7)));
    let masked = |byte: u8, len: usize| {
        let mut bytes = vec![byte; len];
        bytes[8..12].fill(0);
        bytes
    };
    assert_eq!((came.len, &came.bytes[..]), (100, &masked(5, 64)[..]));
    assert_eq!(came.dropped.as_deref(), Some("version"));
    assert_eq!((went.sent, went.peer, went.len), (true, Some(8), 56));
    assert_eq!(went.bytes, [&masked(1, 24)[..], &[9; 32]].concat());
    assert_eq!(
        (went.at_ns - came.at_ns, went.dropped.as_deref()),
        (1_000, None)
    );
}
