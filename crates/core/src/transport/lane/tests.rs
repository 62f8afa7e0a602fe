//! Tests of `lane`: room, lengths, and what is taken back.

use dunlin_msgbuf::{Pool, PoolConfig};

use super::*;

const HEADER: [u64; 3] = [
    0x0706_0504_0302_0100,
    0x0F0E_0D0C_0B0A_0908,
    0x1716_1514_1312_1110,
];

fn messages(lens: &[usize]) -> Vec<MsgBuf> {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let message = |len: &usize| {
        let mut buf = pool.alloc(*len).expect("memory");
        buf.data_mut().fill(u8::try_from(*len).expect("short"));
        buf
    };
    lens.iter().map(message).collect()
}

#[test]
fn packets_are_header_and_message_of_every_length() {
    let mut lane = Lane::new();
    lane.reset(LANE_PACKETS);
    let messages = messages(&[0, 1, 7, 8, 9, 31, 32]);
    for message in &messages {
        assert!(lane.push(HEADER, message));
        assert!(!message.is_lent());
    }
    let header: Vec<u8> = (0..24).collect();
    for (packet, message) in lane.packets().iter().zip(&messages) {
        assert_eq!(packet.bytes(), [&header, message.data()].concat());
    }
    assert_eq!(lane.packets().len(), 7);
}

#[test]
fn without_room_and_beyond_the_length_nothing_is_written() {
    let mut lane = Lane::new();
    let messages = messages(&[33, 32, 32, 32]);
    assert!(!lane.push(HEADER, &messages[1]), "no transport has lent it");
    lane.reset(2);
    assert!(!lane.push(HEADER, &messages[0]), "it is too long");
    assert!(lane.push(HEADER, &messages[1]) && lane.push(HEADER, &messages[2]));
    assert_eq!(lane.room(), 0);
    assert!(!lane.push(HEADER, &messages[3]));
    lane.truncate(1);
    assert_eq!((lane.room(), lane.packets().len()), (1, 1));
    lane.reset(usize::MAX);
    assert_eq!((lane.room(), lane.packets().len()), (LANE_PACKETS, 0));
}
