//! A trace has the packets that an endpoint records, in order, and ends when no reader wants it.

use std::sync::Arc;

use dunlin_wire::{Flags, HEADER_LEN, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

use super::*;
use crate::writer::{Change, Names, Page, Passed, Recorder, Switch};

const SESSION: SessionNum = SessionNum(2);
const DATA_SIZE: u32 = 40;

/// A page, and its file in the form that readers find.
fn page() -> (Arc<Page>, Found) {
    let names = Names {
        drops: vec!["short", "version"],
        ..Names::default()
    };
    let page = Page::new("127.0.0.1:31850".parse().unwrap(), &names);
    let page = Arc::new(page.unwrap());
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

fn receive(recorder: &Recorder, bytes: &[u8], dropped: Option<usize>) {
    let passed = Passed {
        at_ns: 1_000,
        peer: Some(7),
        dropped,
        len: bytes.len(),
        ..Passed::default()
    };
    recorder.record(&passed, [bytes, &[]], &packet_len);
}

/// The length of a packet of `SESSION`, whose packets have `DATA_SIZE` bytes of data each.
fn packet_len(header: &Header) -> Option<usize> {
    (header.session == SESSION).then_some(header.packet_len(DATA_SIZE)?)
}

#[test]
fn received_and_sent_packets_are_in_the_trace() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 64).unwrap();
    let recorder = Recorder::new(Arc::clone(&page), 3, 64);
    receive(&recorder, &request(&[5; 38]), Some(1));
    let sent = Passed {
        at_ns: 2_000,
        sent: true,
        peer: Some(8),
        len: 56,
        ..Passed::default()
    };
    let went = request(&[9; 32]);
    recorder.record(&sent, [&went[..24], &went[24..]], &packet_len);
    let packets = taken(&mut trace);
    let [came, went] = &packets[..] else {
        panic!("{packets:?}")
    };
    assert_eq!((came.endpoint, came.sent, came.peer), (3, false, Some(7)));
    assert_eq!((came.len, &came.bytes), (62, &masked(&request(&[5; 38]))));
    assert_eq!(came.dropped.as_deref(), Some("version"));
    assert_eq!((went.sent, went.peer, went.len), (true, Some(8), 56));
    assert_eq!(went.bytes, masked(&request(&[9; 32])));
    assert_eq!(went.at_ns - came.at_ns, 1_000);
    assert_eq!(went.dropped, None);
}

/// The packet with zeros in place of its token.
fn masked(packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    bytes[8..12].fill(0);
    bytes
}

/// A whole request of `data`.
fn request(data: &[u8]) -> Vec<u8> {
    part(SESSION, 0, data.len(), data)
}

/// The packet with this number of a request of `size` bytes.
fn part(session: SessionNum, number: u32, size: usize, data: &[u8]) -> Vec<u8> {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 1,
        session,
        token: Token(0x0BAD_C0DE),
        size: size.try_into().unwrap(),
        pkt: PktNum(number),
        req: ReqNum(3),
    };
    [&header.encode()[..], data].concat()
}

#[test]
fn tokens_of_all_packets_of_a_frame_are_masked_and_nothing_else() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 280).unwrap();
    let recorder = Recorder::new(page, 3, 280);
    let frame = [request(b"one"), request(b""), request(b"three")].concat();
    receive(&recorder, &frame, None);
    receive(&recorder, &frame[..10], None);
    let mut expected = frame.clone();
    let mut at = 0;
    for len in [3, 0, 5] {
        expected[at + 8..at + 12].fill(0);
        at += HEADER_LEN + len;
    }
    let packets = taken(&mut trace);
    assert_eq!(packets[0].bytes, expected);
    assert_eq!(packets[1].bytes, expected[..10]);
}

#[test]
fn tokens_after_a_part_of_a_large_message_are_masked() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 280).unwrap();
    let recorder = Recorder::new(page, 3, 280);
    for (number, len) in [(0, 40), (1, 40), (2, 15)] {
        let part = part(SESSION, number, 95, &vec![7; len]);
        receive(&recorder, &[&part[..], &request(b"one")].concat(), None);
        let [packet] = &taken(&mut trace)[..] else {
            panic!("not exactly one packet");
        };
        let expected = [masked(&part), masked(&request(b"one"))].concat();
        assert_eq!(packet.bytes, expected);
    }
}

#[test]
fn only_the_header_of_a_packet_of_unknown_length_is_kept() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 280).unwrap();
    let recorder = Recorder::new(page, 3, 280);
    let closed = part(SessionNum(9), 0, 3, b"one");
    let garbage = [0xEE; 60].to_vec();
    for unknown in [closed, garbage] {
        let frame = [request(b"first"), unknown.clone(), request(b"secret")].concat();
        receive(&recorder, &frame, None);
        let [packet] = &taken(&mut trace)[..] else {
            panic!("not exactly one packet");
        };
        let header = masked(&unknown[..HEADER_LEN]);
        assert_eq!(packet.bytes, [masked(&request(b"first")), header].concat());
        assert_eq!(packet.len as usize, frame.len());
    }
}

#[test]
fn bytes_of_packets_are_wiped_when_the_trace_of_their_endpoint_ends() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 64).unwrap();
    let [first, second] = [3, 4].map(|index| Recorder::new(Arc::clone(&page), index, 64));
    for _ in 0..3 {
        receive(&first, &request(&[0xA7; 40]), None);
        receive(&second, &request(&[0xB7; 40]), None);
    }
    drop(first);
    let file = std::fs::read(&found.path).unwrap();
    let has = |byte: u8| file.windows(16).any(|bytes| bytes == [byte; 16]);
    assert!(!has(0xA7), "the first endpoint's bytes are still there");
    assert!(has(0xB7), "the bytes of another endpoint stay");
    // The reader still gets the wiped packets, without their bytes, and then the later ones.
    let lens: Vec<_> = taken(&mut trace).iter().map(|p| p.bytes.len()).collect();
    assert_eq!(lens, [0, 64, 0, 64, 0, 64]);
}

#[test]
fn overwritten_packets_are_counted_and_not_shown() {
    let (page, found) = page();
    let mut trace = Trace::begin(&found, None, 24).unwrap();
    let recorder = Recorder::new(Arc::clone(&page), 0, 24);
    let all = trace.slots + 1_000;
    for number in 0..all {
        receive(&recorder, &number.to_le_bytes(), None);
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
fn an_endpoint_is_traced_as_long_as_the_trace_is_wanted() {
    let (page, found) = page();
    let mut switch = Switch::default();
    let mut look = |at_ms: u64| match switch.look(&page, 3, at_ms * 1_000_000) {
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
    assert_eq!(look(700), "nothing");
    assert_eq!(look(1_200), "nothing");
    assert_eq!(look(1_300), "end", "the trace was not wanted for 600 ms");
    trace.still_wanted().unwrap();
    assert_eq!(look(1_400), "begin 40");
    drop(trace);
    assert_eq!(look(1_500), "end");
}

#[test]
fn two_readers_cannot_trace_a_process_at_the_same_time() {
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
    // Another reader does not wait for one that died without ending its trace.
    std::mem::forget(first);
    assert!(Trace::begin(&found, None, 40).is_ok());
}
