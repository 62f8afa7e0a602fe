//! Tests of `lane`: lengths, lines, room, and refusals.

mod messages;

use dunlin_msgbuf::{Pool, PoolConfig};
use proptest::prelude::*;

use super::*;

const HEADER: [u64; 3] = [
    0x0706_0504_0302_0100,
    0x0F0E_0D0C_0B0A_0908,
    0x1716_1514_1312_1110,
];

fn messages(lens: &[usize]) -> Vec<MsgBuf> {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let message = |(number, len): (usize, &usize)| {
        let mut buf = pool.alloc(*len).expect("memory");
        let bytes = (number..).map(|byte| u8::try_from(byte % 251).expect("small"));
        buf.data_mut()
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, byte)| *to = byte);
        buf
    };
    lens.iter().enumerate().map(message).collect()
}

fn expected(message: &MsgBuf) -> Vec<u8> {
    let header: Vec<u8> = (0..24).collect();
    [&header, message.data()].concat()
}

#[test]
fn packets_are_header_and_message_of_every_length() {
    for len in 0..=LANE_PACKET - HEADER_LEN {
        let mut lane = Lane::new(usize::MAX);
        let messages = messages(&[len, 32, len, 7]);
        let taken = messages
            .iter()
            .filter(|message| lane.push(PeerId(5), HEADER, message));
        assert_eq!(taken.count(), 4);
        assert_eq!(lane.len(), 4);
        let mut lines = lane.lines(lane.packets());
        for (packet, message) in lane.packets().iter().zip(&messages) {
            let bytes = expected(message);
            assert_eq!(lane.bytes(*packet), bytes);
            let (own, rest) = lines.split_at((LANE_WORD + bytes.len()).div_ceil(LANE_LINE));
            assert_eq!(own.as_flattened()[LANE_WORD..][..bytes.len()], bytes);
            assert_eq!(lane.lines(&[*packet]), own);
            lines = rest;
            assert_eq!(
                (packet.peer(), packet.size()),
                (PeerId(5), 24 + message.len())
            );
            let item = lane.to_item(*packet);
            assert_eq!(item.is_some(), message.len() <= 32);
            assert!(!message.is_lent());
        }
        assert!(lines.is_empty() && lane.lines(&[]).is_empty());
    }
}

#[test]
fn a_short_packet_shows_nothing_of_an_earlier_one() {
    let mut lane = Lane::new(LANE_PACKET);
    let longest = LANE_PACKET - HEADER_LEN;
    for len in 0..=longest {
        let messages = messages(&[longest, len]);
        assert!(lane.push(PeerId(1), HEADER, &messages[0]));
        lane.rewind();
        assert!(lane.push(PeerId(2), HEADER, &messages[1]));
        let lines = lane.lines(lane.packets()).as_flattened();
        let end = LANE_WORD + HEADER_LEN + len;
        let half = end.max(LANE_LINE).next_multiple_of(LANE_LINE / 2);
        assert_eq!(&lines[end..half], &[0; 32][..half - end], "length {len}");
        lane.rewind();
    }
}

#[test]
fn a_lane_takes_packets_as_long_as_there_is_room_for_the_longest() {
    let mut lane = Lane::new(LANE_PACKET);
    let longest = LANE_PACKET - HEADER_LEN;
    let lines = (LANE_WORD + LANE_PACKET) / LANE_LINE;
    let messages = messages(&[32, 33, longest, longest + 1]);
    assert!(
        !lane.push(PeerId(1), HEADER, &messages[3]),
        "the message is too long"
    );
    for _ in 0..LANE_LINES - lines {
        assert!(lane.push(PeerId(1), HEADER, &messages[0]));
    }
    assert!(lane.push(PeerId(2), HEADER, &messages[1]));
    assert!(
        !lane.push(PeerId(1), HEADER, &messages[0]),
        "too few lines are left"
    );
    assert_eq!(lane.len(), LANE_LINES - lines + 1);
    lane.clear();
    assert!(lane.is_empty());
    for _ in 0..LANE_LINES / lines {
        assert!(lane.push(PeerId(1), HEADER, &messages[2]));
    }
    assert!(
        !lane.push(PeerId(1), HEADER, &messages[0]),
        "the lane is full"
    );
}

#[test]
fn a_closed_lane_takes_nothing_until_it_is_cleared() {
    let mut lane = Lane::new(MAX_INLINE);
    let messages = messages(&[32, 33]);
    assert!(lane.push(PeerId(1), HEADER, &messages[0]));
    assert!(
        !lane.push(PeerId(1), HEADER, &messages[1]),
        "the packet is longer than the transport accepts"
    );
    lane.close();
    assert!(!lane.push(PeerId(1), HEADER, &messages[0]));
    assert_eq!(lane.len(), 1, "the staged packet stays");
    lane.clear();
    assert!(lane.push(PeerId(1), HEADER, &messages[0]));
    lane.set_longest(MAX_INLINE - 1);
    assert!(
        !lane.push(PeerId(1), HEADER, &messages[0]),
        "a packet that fills one line is longer than the limit"
    );
    lane.clear();
    assert!(!lane.push(PeerId(1), HEADER, &messages[0]));
    assert!(!Lane::new(0).push(PeerId(1), HEADER, &messages[0]));
}

#[test]
fn packets_are_alike_until_one_differs_and_are_listed_when_asked_for() {
    let mut lane = Lane::new(LANE_PACKET);
    let messages = messages(&[40, 40, 40, 41]);
    let stage = |lane: &mut Lane, peer: u32, message: &MsgBuf| {
        let room = lane.room(message.len()).expect("there is room");
        lane.write::<true>(room, PeerId(peer), HEADER, message.data());
    };
    for message in &messages[..3] {
        stage(&mut lane, 7, message);
    }
    let (count, packet) = lane.alike().expect("one peer and one length");
    assert_eq!((count, packet.peer(), packet.size()), (3, PeerId(7), 64));
    assert_eq!((lane.all_lines().len(), lane.requests()), (6, 3));
    lane.list();
    let bytes: Vec<_> = lane.packets().iter().map(|it| lane.bytes(*it)).collect();
    assert_eq!(
        bytes,
        messages[..3].iter().map(expected).collect::<Vec<_>>()
    );
    stage(&mut lane, 7, &messages[3]);
    assert_eq!(lane.alike(), None, "the lengths differ");
    stage(&mut lane, 7, &messages[0]);
    let bytes: Vec<_> = lane.packets().iter().map(|it| lane.bytes(*it)).collect();
    assert_eq!(bytes[2..], [2, 3, 0].map(|at| expected(&messages[at])));
    lane.rewind();
    stage(&mut lane, 7, &messages[0]);
    stage(&mut lane, 8, &messages[1]);
    assert_eq!(lane.alike(), None, "the peers differ");
    lane.rewind();
    stage(&mut lane, 8, &messages[1]);
    assert_eq!(lane.lone().map(LanePacket::peer), Some(PeerId(8)));
    assert_eq!((lane.len(), lane.requests()), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn staged_packets_are_those_that_were_pushed(
        lens in prop::collection::vec(prop_oneof![0..40_usize, 0..1100_usize], 0..200),
    ) {
        let (mut lane, messages) = (Lane::new(LANE_PACKET), messages(&lens));
        let mut taken = Vec::new();
        for (number, message) in (0..).zip(&messages) {
            if lane.push(PeerId(number), HEADER, message) {
                taken.push((PeerId(number), expected(message)));
            }
        }
        let content = |packet: &LanePacket| (packet.peer(), lane.bytes(*packet).to_vec());
        let staged: Vec<_> = lane.packets().iter().map(content).collect();
        prop_assert_eq!(staged, taken);
    }
}
