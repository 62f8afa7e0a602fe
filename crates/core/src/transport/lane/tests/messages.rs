//! Tests of messages that stay in their source, and of messages that are copied after all.

use dunlin_wire::ReqNum;

use super::super::*;
use crate::handle::{CallIdx, RequestIdx};

const PEER: PeerId = PeerId(3);

/// Finds the messages of calls by their indexes.
#[derive(Clone, Copy)]
struct Kept<'a>(&'a [&'a [u8]]);

impl<'a> Messages<'a> for Kept<'a> {
    fn message(self, source: Source) -> &'a [u8] {
        match source.owner() {
            Owner::Call(index, 7) => self.0[index.0 as usize],
            other => panic!("{other:?} has nothing here"),
        }
    }
}

fn lane_with(messages: &[&[u8]]) -> Lane {
    let mut lane = Lane::new(LANE_PACKET);
    for (index, message) in (0..).zip(messages) {
        let room = lane.room(message.len()).expect("it is empty");
        let header = [u64::from(index); 3];
        if Lane::is_long(message.len()) {
            let source = Source::of_call(CallIdx(index), 7);
            lane.write_header::<true>(room, PEER, header, (message.len(), source));
        } else {
            lane.write::<true>(room, PEER, header, message);
        }
    }
    lane
}

fn packet(index: u64, message: &[u8]) -> Vec<u8> {
    [&[index.to_le_bytes(); 3].concat(), message].concat()
}

fn assert_holds(lane: &mut Lane, messages: &[&[u8]]) {
    lane.list();
    assert_eq!(lane.len(), messages.len());
    for ((index, place), message) in (0..).zip(lane.packets()).zip(messages) {
        assert_eq!(lane.bytes(*place), packet(index, message));
    }
}

#[test]
fn a_source_names_its_owner() {
    for (index, other) in [(0, 0), (5, u32::MAX), (0x7FFF_FFFE, 9)] {
        let owner = Owner::Call(CallIdx(index), other);
        let call = Source::of_call(CallIdx(index), other);
        assert_eq!(call.owner(), owner);
        let owner = Owner::Request(RequestIdx(index), ReqNum(other));
        let request = Source::of_request(RequestIdx(index), ReqNum(other));
        assert_eq!(request.owner(), owner);
        assert!(call != Source::LANE && request != Source::LANE && call != request);
    }
}

#[test]
fn the_transport_finds_messages_in_their_source() {
    let messages: [&[u8]; 3] = [&[1; 1000], &[2; 1000], &[3; 1000]];
    let mut lane = lane_with(&messages);
    for (place, message) in messages.iter().enumerate() {
        assert_eq!(lane.message(place, Kept(&messages)), *message);
    }
    lane.keep(Source::of_call(CallIdx(1), 7), messages[1]);
    assert_eq!(lane.message(1, InLane), messages[1]);
    assert_eq!(lane.message(2, Kept(&messages)), messages[2]);
}

fn assert_becomes_complete(lens: [usize; 3]) {
    let bytes = lens.map(|len| vec![u8::try_from(len % 251).expect("small"); len]);
    let messages = bytes.each_ref().map(Vec::as_slice);
    let mut lane = lane_with(&messages);
    lane.complete(Kept(&messages));
    assert_holds(&mut lane, &messages);
    lane.complete(Kept(&[]));
    assert_holds(&mut lane, &messages);
}

/// Packets of some lengths fill their last line, so the next packet begins directly after the
/// message.
#[test]
fn a_lane_becomes_complete_whatever_the_lengths() {
    for len in IN_FEW + 1..=LANE_PACKET - HEADER_LEN {
        assert_becomes_complete([len, 256, 1000]);
        assert_becomes_complete([32, len, 0]);
        assert_becomes_complete([len; 3]);
    }
}

#[test]
fn keeping_a_message_does_not_change_the_packets_around_it() {
    for len in IN_FEW + 1..=LANE_PACKET - HEADER_LEN {
        let (long, short) = (vec![7; len], [5; 40]);
        let messages: [&[u8]; 3] = [&short, &long, &short];
        let mut lane = lane_with(&messages);
        lane.keep(Source::of_call(CallIdx(1), 7), &long);
        assert_holds(&mut lane, &messages);
    }
}

#[test]
fn a_message_that_was_kept_is_not_looked_for() {
    let messages: [&[u8]; 2] = [&[1; 400], &[2; 500]];
    let mut lane = lane_with(&messages);
    lane.keep(Source::of_call(CallIdx(0), 8), &[9; 400]);
    lane.keep(Source::of_call(CallIdx(0), 7), messages[0]);
    lane.complete(Kept(&[&[], messages[1]]));
    assert_holds(&mut lane, &messages);
}

#[test]
fn sources_of_an_earlier_burst_do_not_concern_short_packets() {
    let mut lane = lane_with(&[&[1; 1000]]);
    lane.rewind();
    let room = lane.room(40).expect("it is empty");
    lane.write::<false>(room, PEER, [0; 3], &[5; 40]);
    lane.complete(Kept(&[]));
    lane.keep(Source::of_call(CallIdx(0), 7), &[1; 1000]);
    assert_holds(&mut lane, &[&[5; 40]]);
}

#[test]
fn a_packet_whose_message_is_gone_has_no_header() {
    let mut lane = lane_with(&[&[1; 1000]]);
    assert_eq!(lane.message(0, Kept(&[&[]])), b"");
    lane.complete(Kept(&[&[]]));
    lane.list();
    assert_eq!(lane.bytes(lane.packets()[0])[..HEADER_LEN], [0; HEADER_LEN]);
}
