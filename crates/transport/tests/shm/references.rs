//! Data that goes by reference: which regions are mapped and unmapped, which data is copied, and
//! which packets wait for others.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use dunlin_core::transport::{MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig, regions};
use dunlin_transport::shm::Options;

use crate::endpoint::End;

const LEN: usize = 30_000;

fn item(peer: PeerId, number: u8, data: BufRef) -> TxItem {
    TxItem {
        peer,
        inline_len: 24,
        inline: [number; MAX_INLINE],
        data,
    }
}

fn filled(end: &mut End, len: usize, byte: u8) -> MsgBuf {
    let mut buf = end.pool.alloc(len).unwrap();
    buf.data_mut().fill(byte);
    buf
}

/// The numbers of the packets that a burst shows, and the first byte of data that lies elsewhere.
fn poll(end: &mut End) -> Vec<(u8, Option<u8>)> {
    let frames = end.rx.burst();
    let look = |index| {
        let frame = end.rx.frame(index);
        let data = frame.elsewhere.map(|elsewhere| {
            let mut copy = vec![0; elsewhere.len()];
            assert!(
                elsewhere.copy_to(&mut copy),
                "the sender has withdrawn the data"
            );
            assert!(copy.iter().all(|byte| *byte == copy[0]));
            copy[0]
        });
        (frame.bytes[0], data)
    };
    (0..frames).map(look).collect()
}

/// The number of mappings that this process has of the file with this inode.
fn mappings(inode: u64) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let inode = inode.to_string();
    let is_it = |line: &&str| line.split_ascii_whitespace().nth(4) == Some(&inode);
    maps.lines().filter(is_it).count()
}

#[test]
fn small_packets_do_not_wait_for_large_ones() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (to_b, _) = a.connect(&mut b);
    let large = filled(&mut a, LEN, 7);
    for number in 0..20 {
        a.tx.burst(&[item(to_b, number, large.lend())]);
    }
    a.tx.burst(&[item(to_b, 100, BufRef::EMPTY)]);
    // The packet comes alone, so that it is answered before anything is copied.
    assert_eq!(poll(&mut b), [(100, None)]);
    let mut got = Vec::new();
    while got.len() < 20 {
        let more = poll(&mut b);
        assert_eq!(more.len(), 1, "one large packet at a time");
        got.extend(more);
    }
    let large: Vec<u8> = got
        .iter()
        .filter(|it| it.1 == Some(7))
        .map(|it| it.0)
        .collect();
    assert_eq!(
        large,
        Vec::from_iter(0..20),
        "each large packet comes once and in order"
    );
    assert!(poll(&mut b).is_empty());
    assert_eq!(
        (a.counters().tx_references, b.counters().rx_packets),
        (20, 21)
    );
}

#[test]
fn a_flood_of_small_packets_does_not_hold_up_large_ones() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (to_b, _) = a.connect(&mut b);
    let large = filled(&mut a, LEN, 7);
    a.tx.burst(&[item(to_b, 1, large.lend())]);
    let mut bursts = 0;
    loop {
        a.tx.burst(&[item(to_b, 2, BufRef::EMPTY); 40]);
        if poll(&mut b).contains(&(1, Some(7))) {
            break;
        }
        bursts += 1;
        assert!(bursts < 4, "the large packet never comes");
    }
}

#[test]
fn a_receiver_with_large_packets_in_hand_does_not_sleep() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (to_b, _) = a.connect(&mut b);
    let large = filled(&mut a, LEN, 7);
    for number in 0..3 {
        a.tx.burst(&[item(to_b, number, large.lend())]);
    }
    assert_eq!(poll(&mut b).len(), 2);
    assert!(b.sleep(Duration::ZERO), "a large packet still waits");
    assert_eq!(poll(&mut b), [(2, Some(7))]);
}

#[test]
fn memory_of_the_user_is_copied_first() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (to_b, _) = a.connect(&mut b);
    let own = a.pool.adopt(vec![9; LEN]).unwrap();
    a.tx.burst(&[item(to_b, 1, own.lend())]);
    drop(own);
    // The user's memory is gone, so the data must have been copied.
    assert_eq!(poll(&mut b), [(1, Some(9))]);
    assert_eq!((a.counters().tx_references, a.counters().tx_copied), (1, 1));
    assert_eq!(a.counters().tx_dropped_full, 0);
}

#[test]
fn more_copies_than_are_kept_take_back_the_oldest() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (to_b, _) = a.connect(&mut b);
    let own = a.pool.adopt(vec![9; LEN]).unwrap();
    for number in 0..100 {
        a.tx.burst(&[item(to_b, number, own.lend())]);
    }
    let (mut whole, mut lost) = (0, 0);
    loop {
        let frames = b.rx.burst();
        if frames == 0 {
            break;
        }
        for index in 0..frames {
            let mut copy = vec![0; LEN];
            match b.rx.frame(index).elsewhere.unwrap().copy_to(&mut copy) {
                true => whole += 1,
                false => lost += 1,
            }
        }
    }
    assert_eq!((whole, lost), (64, 36));
}

#[test]
fn regions_that_are_gone_are_unmapped() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (to_b, _) = a.connect(&mut b);
    // A msgbuf of this size has a region of its own.
    let large = filled(&mut a, 1 << 20, 5);
    let part = large.lend_range(0, LEN).unwrap();
    a.tx.burst(&[item(to_b, 1, part)]);
    assert_eq!(poll(&mut b), [(1, Some(5))]);
    let memory = regions::info(part.region()).unwrap().fd.unwrap();
    let inode = File::from(memory).metadata().unwrap().ino();
    assert_eq!(
        mappings(inode),
        2,
        "the sender and the receiver have a mapping each"
    );
    drop(large);
    a.pool = Pool::new(PoolConfig::default()).unwrap();
    assert_eq!(mappings(inode), 1, "the receiver does not know yet");
    // The sender reports which regions are gone before it sleeps; the receiver reads that report
    // when it wakes.
    a.sleep(Duration::ZERO);
    b.sleep(Duration::ZERO);
    assert_eq!(mappings(inode), 0);
}

#[test]
fn without_references_packets_go_through_the_ring() {
    let options = Options {
        data_size: 4096,
        by_reference: u32::MAX,
        ..Options::default()
    };
    let (mut a, mut b) = (End::with(1, options), End::with(2, options));
    let (to_b, _) = a.connect(&mut b);
    let large = filled(&mut a, 4096, 7);
    a.tx.burst(&[item(to_b, 1, large.lend())]);
    assert_eq!(poll(&mut b), [(1, None)]);
    assert_eq!(a.counters().tx_references, 0);
}

#[test]
fn a_packet_that_no_ring_can_hold_goes_by_reference_always() {
    let options = Options {
        cells: 64,
        by_reference: u32::MAX,
        ..Options::default()
    };
    let (mut a, mut b) = (End::with(1, options), End::with(2, options));
    let (to_b, _) = a.connect(&mut b);
    let large = filled(&mut a, LEN, 7);
    a.tx.burst(&[item(to_b, 1, large.lend())]);
    assert_eq!(poll(&mut b), [(1, Some(7))]);
}
