//! Packets of a pool in this process, some of which a device does not take.

use std::collections::BTreeSet;

use super::*;

/// Bytes of a packet with its descriptor, and of the descriptor.
const WHOLE: usize = 512;
const START: usize = 64;

/// A pool, from which packets are taken one after the other.
struct Memory {
    packets: Box<[[u8; WHOLE]]>,
    free: Vec<usize>,
}

impl Memory {
    fn new(count: usize) -> Self {
        Self {
            packets: vec![[0; WHOLE]; count].into_boxed_slice(),
            free: (0..count).collect(),
        }
    }

    /// As `Pool::refill`.
    fn refill(&mut self, packets: &mut TxPackets) {
        if packets.empty() > 5 {
            return;
        }
        let places = packets.places();
        let count = places.len();
        for place in places {
            let index = self.free.remove(0);
            *place = self.packets[index].as_mut_ptr().cast();
        }
        packets.on_taken(count);
        assert_eq!(packets.empty(), BATCH);
    }

    /// Notes that the packet with this handle is free again.
    fn take_back(&mut self, handle: *mut c_void) {
        let begin = self.packets.as_ptr().addr();
        let index = (handle.addr() - begin) / WHOLE;
        assert_eq!(handle.addr(), begin + index * WHOLE);
        assert!(!self.free.contains(&index), "it is free already");
        self.free.push(index);
    }

    /// The contents of the complete packets.
    fn contents(packets: &TxPackets) -> Vec<Vec<u8>> {
        let (handles, lens) = packets.complete();
        let bytes = |(handle, len): (&*mut c_void, &u32)| {
            let bytes = handle.cast::<u8>().wrapping_add(START);
            // SAFETY: the packet is in `packets`, and nothing writes to it now.
            unsafe { std::slice::from_raw_parts(bytes, *len as usize) }.to_vec()
        };
        handles.iter().zip(lens).map(bytes).collect()
    }
}

fn tx_packets() -> TxPackets {
    TxPackets::new(START, u32::try_from(WHOLE - START).unwrap())
}

/// Fills a packet of `len` bytes for each of `contents`, with that byte.
fn fill(packets: &mut TxPackets, len: usize, contents: &[u8]) -> usize {
    packets.fill(len, contents, |bytes, content| {
        bytes[..len].fill(*content);
        *content != 0
    })
}

#[test]
fn packets_are_filled_up_to_the_first_refused_content() {
    let (mut memory, mut packets) = (Memory::new(64), tx_packets());
    assert_eq!(fill(&mut packets, 5, &[1]), 0, "there is none");
    memory.refill(&mut packets);
    assert_eq!(fill(&mut packets, 5, &[1, 2, 0, 3]), 2);
    assert_eq!(fill(&mut packets, 3, &[9; 99]), BATCH - 2);
    assert!(packets.is_full() && packets.empty() == 0);
    let wanted: Vec<_> = [vec![1; 5], vec![2; 5]].into();
    let contents = Memory::contents(&packets);
    assert_eq!(contents[..2], wanted);
    assert_eq!(contents[2..], vec![vec![9; 3]; BATCH - 2]);
}

#[test]
fn long_frames_are_filled_up_to_the_first_refused_content() {
    let (mut memory, mut packets) = (Memory::new(64), tx_packets());
    memory.refill(&mut packets);
    let len = WHOLE - START;
    let count = packets.fill_long(len, &[1, 2, 0, 3], |bytes, content| {
        bytes.fill(*content);
        *content != 0
    });
    assert_eq!((count, fill(&mut packets, 3, &[4])), (2, 1));
    let wanted = [vec![1; len], vec![2; len], vec![4; 3]];
    assert_eq!(Memory::contents(&packets), wanted);
}

#[test]
#[should_panic(expected = "a packet has room")]
fn a_long_frame_beyond_the_room_is_not_filled() {
    tx_packets().fill_long(WHOLE - START + 1, &[()], |_, ()| true);
}

#[test]
fn a_packet_that_was_taken_out_leaves_in_its_turn() {
    let (mut memory, mut packets) = (Memory::new(64), tx_packets());
    memory.refill(&mut packets);
    let mut long = packets.take_empty().unwrap();
    assert_eq!(long.bytes().len(), WHOLE - START);
    long.bytes_mut().fill(7);
    long.truncate(300);
    fill(&mut packets, 1, &[1]);
    packets.push(long);
    fill(&mut packets, 1, &[2]);
    assert_eq!(Memory::contents(&packets), [vec![1], vec![7; 300], vec![2]]);
}

#[test]
#[should_panic(expected = "it is short")]
fn a_frame_beyond_the_room_is_not_filled() {
    fill(&mut tx_packets(), SHORT + 1, &[]);
}

#[test]
fn no_packet_is_lost_or_duplicated_whatever_the_device_takes() {
    let (mut memory, mut packets) = (Memory::new(4 * BATCH), tx_packets());
    let mut apart: Vec<Packet> = Vec::new();
    let mut wanted: Vec<u8> = Vec::new();
    let mut number: u64 = 1;
    let mut draw = |below: usize| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(number >> 33).unwrap() % below
    };
    for round in 0..if cfg!(miri) { 100 } else { 5000 } {
        memory.refill(&mut packets);
        let content = u8::try_from(round % 255 + 1).unwrap();
        match draw(4) {
            0 => {
                let done = fill(&mut packets, 9, &vec![content; draw(40)]);
                wanted.extend(vec![content; done]);
            }
            1 if apart.len() < 3 => apart.extend(packets.take_empty()),
            2 if !packets.is_full() => {
                if let Some(mut packet) = apart.pop() {
                    packet.bytes_mut()[..9].fill(content);
                    packet.truncate(9);
                    packets.push(packet);
                    wanted.push(content);
                }
            }
            _ => {
                let sent = draw(packets.len() + 1);
                let handles = packets.complete().0[..sent].to_vec();
                packets.on_sent(sent);
                handles.into_iter().for_each(|it| memory.take_back(it));
                wanted.drain(..sent);
            }
        }
        let there = Memory::contents(&packets);
        assert!(
            there
                .iter()
                .map(|bytes| bytes[0])
                .eq(wanted.iter().copied())
        );
        assert!(there.iter().all(|bytes| bytes.len() == 9));
    }
    let left = packets.give_up(true).to_vec();
    let left = left
        .into_iter()
        .chain(apart.into_iter().map(Packet::into_handle));
    left.for_each(|it| memory.take_back(it));
    let all: BTreeSet<usize> = memory.free.iter().copied().collect();
    assert_eq!(all.len(), 4 * BATCH);
    assert_eq!(packets.len(), 0);
}
