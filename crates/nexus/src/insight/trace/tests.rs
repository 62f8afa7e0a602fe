//! Packets that an endpoint shows are those that a trace has, in order, and no longer than wanted.

use std::sync::Arc;

use dunlin_core::transport::{Frame, MAX_INLINE, PeerId, TxItem};
use dunlin_core::{Nanos, Seen, Tap};
use dunlin_msgbuf::{Pool, PoolConfig};

use super::*;
use crate::insight::page::Page;
use crate::insight::tap::{Change, Recorder, Switch};

/// A page, and its file as others find it.
fn page() -> (Arc<Page>, Found) {
    let page = Arc::new(Page::new("127.0.0.1:31850".parse().unwrap()).unwrap());
    let file = page.file().try_clone().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let pid = std::process::id();
    let path = path.into();
    (page, Found { pid, file, path })
}

fn taken(trace: &mut Trace) -> Vec<Packet> {
    let mut packets = Vec::new();
    while trace.take(|packet| packets.push(packet)).unwrap() > 0 {}
    packets
}

fn receive(recorder: &mut Recorder, bytes: &[u8], dropped: Option<usize>) {
    let seen = Seen {
        at: Nanos(1_000),
        peer: Some(PeerId(7)),
        dropped,
    };
    recorder.received(seen, &Frame::new(bytes));
}

#[test]
fn what_comes_and_goes_is_in_the_trace() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 64).unwrap();
    let mut recorder = Recorder::new(Arc::clone(&page), 3, 64, Nanos(0));
    receive(&mut recorder, &[5; 100], Some(1));
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let mut buf = pool.alloc(32).unwrap();
    buf.data_mut().fill(9);
    let item = TxItem {
        peer: PeerId(8),
        inline_len: 24,
        inline: [1; MAX_INLINE],
        data: buf.lend(),
    };
    recorder.sent(Nanos(2_000), &item);
    let packets = taken(&mut trace);
    let [came, went] = &packets[..] else {
        panic!("{packets:?}")
    };
    assert_eq!((came.endpoint, came.sent, came.peer), (3, false, Some(7)));
    assert_eq!((came.len, &came.bytes[..]), (100, &[5; 64][..]));
    assert_eq!(came.dropped.as_deref(), Some("version"));
    assert_eq!((went.sent, went.peer, went.len), (true, Some(8), 56));
    assert_eq!(went.bytes, [[1; 24].as_slice(), &[9; 32]].concat());
    assert_eq!(went.at_ns - came.at_ns, 1_000);
    assert_eq!(went.dropped, None);
}

#[test]
fn what_was_overwritten_is_counted_and_not_shown() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 24).unwrap();
    let mut recorder = Recorder::new(Arc::clone(&page), 0, 24, Nanos(0));
    let all = trace.slots + 1_000;
    for number in 0..all {
        receive(&mut recorder, &number.to_le_bytes(), None);
    }
    let packets = taken(&mut trace);
    assert_eq!(packets.len() as u64 + trace.lost(), all);
    assert_eq!(trace.lost(), 1_000 + MARGIN);
    let numbers = packets.iter().zip(trace.lost()..);
    assert!(
        numbers
            .into_iter()
            .all(|(p, number)| p.bytes == number.to_le_bytes())
    );
}

#[test]
fn an_endpoint_is_traced_as_long_as_somebody_asks() {
    let (page, found) = page();
    let mut switch = Switch::default();
    let mut look = |at| match switch.look(&page, 3, Nanos::from_millis(at)) {
        Change::Nothing => "nothing".to_owned(),
        Change::Begin(keep) => format!("begin {keep}"),
        Change::End => "end".to_owned(),
    };
    assert_eq!(look(0), "nothing");
    let other = Trace::begin(&found, Some(4), 40).unwrap();
    assert_eq!(look(100), "nothing", "another endpoint is traced");
    drop(other);
    let mut trace = Trace::begin(&found, Some(3), 40).unwrap();
    assert_eq!(look(200), "begin 40");
    trace.still_wanted().unwrap();
    assert_eq!(look(2_100), "nothing");
    assert_eq!(look(4_000), "nothing");
    assert_eq!(look(4_100), "end", "nobody has asked for two seconds");
    trace.still_wanted().unwrap();
    assert_eq!(look(4_200), "begin 40");
    drop(trace);
    assert_eq!(look(4_300), "end");
}

#[test]
fn two_cannot_trace_at_the_same_time() {
    let (_page, found) = page();
    let mut first = Trace::begin(&found, None, 40).unwrap();
    let second = std::thread::scope(|scope| {
        let second = scope.spawn(|| Trace::begin(&found, None, 40));
        while !second.is_finished() {
            first.still_wanted().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        second.join().unwrap()
    });
    assert!(matches!(second, Err(TraceError::Busy)));
    // Whoever died without a word is not waited for.
    std::mem::forget(first);
    assert!(Trace::begin(&found, None, 40).is_ok());
}
