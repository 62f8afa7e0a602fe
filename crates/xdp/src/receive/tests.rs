//! Packets of several kinds in one burst, from a kernel in user space.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use dunlin_packet::check::{homes, peer_of, written};
use dunlin_packet::{Home, Mac};
use dunlin_transport::udp::{self, Udp};

use super::*;
use crate::tests::model::{Kernel, model};

const MOVED: Mac = [2, 0, 0, 0, 0, 0x55];

/// The receiving half of an endpoint at `home`, its kernel, and the address of its interface.
fn receiver(home: Home, partial_sums: bool) -> (XdpRx, Arc<Kernel>, OwnMac) {
    let it = model(1);
    let udp = Udp::open(&udp::Options::default()).unwrap();
    let part = it.receiving.shared();
    let arrivals = Arrivals::new(part, it.rings.rx, it.shared, it.kernel.clone());
    let mac = OwnMac::new(home.mac);
    let rx = XdpRx::new(udp.rx, arrivals, home, mac.clone(), partial_sums);
    (rx, it.kernel, mac)
}

/// A frame for `to`, from the peer with this port.
fn frame(to: &Home, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut address = peer_of(to);
    address.set_port(port);
    written(&sender(to, address), to, payload)
}

fn sender(to: &Home, address: SocketAddr) -> Home {
    Home {
        address,
        mac: [2, 0, 0, 0, 0, 9],
        ..*to
    }
}

/// The same frame of IPv4, marked "congestion experienced".
fn marked(mut frame: Vec<u8>) -> Vec<u8> {
    // ECT(0) becomes CE, so the sum of the header grows by 1.
    frame[15] |= 0b11;
    let sum = u16::from_be_bytes([frame[24], frame[25]]);
    let sum = sum.checked_sub(1).expect("a sum above 0");
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The packets of a burst, and whether each is marked.
fn burst(rx: &mut XdpRx) -> Vec<(Vec<u8>, bool)> {
    let count = rx.burst();
    let frame = |index| {
        let frame = rx.frame(index);
        let whole = rx.whole(index);
        assert_eq!(whole, (!frame.congestion).then_some(frame.bytes));
        (frame.bytes.to_vec(), frame.congestion)
    };
    (0..count).map(frame).collect()
}

fn count(rx: &XdpRx, name: &str) -> u64 {
    let mut details = rx.details().into_iter();
    details.find(|(other, _)| *other == name).unwrap().1
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn packets_of_all_kinds_are_shown_in_order() {
    let home = homes()[0];
    let (mut rx, kernel, _) = receiver(home, true);
    let short = [7; 56];
    let long: Vec<u8> = (0..=250).cycle().take(6000).collect();
    // Peer, payload, mark, most bytes of a piece.
    let kinds = [
        (7001, &short[..], false, 3840),
        (7001, &short[..], false, 3840),
        (7002, &short[..], false, 3840),
        (7002, &short[..20], false, 3840),
        (7001, &long[..], false, 3840),
        (7001, &short[..], true, 3840),
        (7001, &short[..], true, 3840),
        (7001, &long[..100], false, 3840),
        (7001, &short[..], true, 90),
        (7001, &short[..], false, 3840),
    ];
    let wanted: Vec<_> = kinds
        .map(|(_, payload, mark, _)| (payload.to_vec(), mark))
        .into();
    for round in 0..20 {
        for (port, payload, is_marked, piece) in kinds {
            let plain = frame(&home, port, payload);
            let frame = if is_marked { marked(plain) } else { plain };
            assert!(kernel.deliver(&frame, piece));
        }
        assert_eq!(burst(&mut rx), wanted, "round {round}");
        assert_eq!(burst(&mut rx), []);
    }
    let bytes: usize = wanted.iter().map(|(payload, _)| payload.len()).sum();
    let counters = rx.own_counters();
    assert_eq!(counters.rx_packets, 20 * kinds.len() as u64);
    assert_eq!(counters.rx_bytes, 20 * bytes as u64);
    assert_eq!((counters.rx_corrupt, count(&rx, "rx_joined")), (0, 40));
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn bursts_go_round_the_queues_and_return_to_the_first() {
    let home = homes()[0];
    for further in 1..=3 {
        let (rx, first, _) = receiver(home, true);
        let mut kernels = vec![first];
        let queues = (0..further).map(|_| {
            let it = model(1);
            kernels.push(it.kernel.clone());
            Arrivals::new(it.receiving.shared(), it.rings.rx, it.shared, it.kernel)
        });
        let queues = queues.collect();
        let mut rx = rx.with_queues(queues);
        let sent = |queue: usize, number: u8| {
            let payload = [u8::try_from(queue).unwrap(), number];
            assert!(kernels[queue].deliver(&frame(&home, 7001, &payload), 3840));
            vec![(payload.to_vec(), false)]
        };
        // Packets of the first queue alone: each burst finds the way back to it, whatever queue has
        // the next turn.
        for number in 0..12 {
            let wanted = sent(0, number);
            assert_eq!(
                burst(&mut rx),
                wanted,
                "{further} further ones, packet {number}"
            );
            assert_eq!(burst(&mut rx), []);
        }
        // More packets than a region has frames, so each frame goes back to its own queue.
        for number in 0..100 {
            let mut wanted: Vec<_> = (0..=further).map(|queue| sent(queue, number)).collect();
            let mut got: Vec<_> = (0..=further).map(|_| burst(&mut rx)).collect();
            wanted.sort_unstable();
            got.sort_unstable();
            assert_eq!(got, wanted, "one burst of each queue, round {number}");
        }
        assert_eq!(count(&rx, "rx_bad_entries"), 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn after_a_sleep_the_packets_of_the_ring_come_before_those_of_the_socket() {
    let home = homes()[0];
    let (mut rx, kernel, _) = receiver(home, true);
    let (to, from) = (rx.udp.local_addr(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let by_socket = || from.send_to(b"by the socket", (Ipv4Addr::LOCALHOST, to.port()));
    let ring = vec![(vec![5; 56], false)];
    let socket = vec![(b"by the socket".to_vec(), false)];
    assert!(kernel.deliver(&frame(&home, 7001, &[5; 56]), 3840));
    by_socket().unwrap();
    rx.on_wake();
    assert_eq!(burst(&mut rx), ring);
    assert_eq!(burst(&mut rx), socket);
    // An endpoint that sleeps after each burst finds the socket's packets, too.
    by_socket().unwrap();
    rx.on_wake();
    assert_eq!(burst(&mut rx), []);
    rx.on_wake();
    assert_eq!(burst(&mut rx), socket);
    assert_eq!(burst(&mut rx), []);
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn packets_like_the_last_one_are_checked_too() {
    let home = homes()[0];
    let (mut rx, kernel, _) = receiver(home, true);
    let good = frame(&home, 7001, &[5; 56]);
    let mut lies = Vec::new();
    for at in [40, 41, 42, 97] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        lies.push(bad);
    }
    lies.push(good[..97].to_vec());
    lies.push(good[..39].to_vec());
    for lie in &lies {
        for packet in [&good, lie, &good] {
            assert!(kernel.deliver(packet, 3840));
        }
    }
    assert_eq!(burst(&mut rx), vec![(vec![5; 56], false); 2 * lies.len()]);
    assert_eq!(count(&rx, "rx_wrong_sum"), 4);
    assert_eq!(count(&rx, "rx_truncated"), 2);
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn a_packet_to_an_earlier_address_of_the_interface_is_refused() {
    let home = homes()[0];
    let (mut rx, kernel, mac) = receiver(home, true);
    let old = frame(&home, 7001, &[5; 56]);
    for _ in 0..2 {
        assert!(kernel.deliver(&old, 3840));
        assert_eq!(burst(&mut rx).len(), 1);
    }
    mac.set(MOVED);
    let new = frame(&Home { mac: MOVED, ..home }, 7001, &[6; 56]);
    for packet in [&old, &new, &old] {
        assert!(kernel.deliver(packet, 3840));
    }
    assert_eq!(burst(&mut rx), [(vec![6; 56], false)]);
    assert_eq!(count(&rx, "rx_foreign_mac"), 2);
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn a_packet_without_a_sum_is_accepted_only_by_option() {
    let home = homes()[0];
    let good = frame(&home, 7001, &[5; 56]);
    let mut absent = good.clone();
    absent[40..42].fill(0);
    for accepts in [true, false] {
        let (mut rx, kernel, _) = receiver(home, accepts);
        for packet in [&good, &absent, &good, &absent] {
            assert!(kernel.deliver(packet, 3840));
        }
        let shown = if accepts { 4 } else { 2 };
        assert_eq!(burst(&mut rx), vec![(vec![5; 56], false); shown]);
        assert_eq!(count(&rx, "rx_absent_sums"), shown as u64 - 2);
        assert_eq!(count(&rx, "rx_no_sum"), 4 - shown as u64);
    }
}

#[test]
#[cfg_attr(miri, ignore = "it opens a socket")]
fn a_sum_over_the_pseudo_header_is_accepted_only_by_option() {
    let home = homes()[0];
    let good = frame(&home, 7001, &[5; 56]);
    // The sum over the pseudo header alone, which a kernel leaves for the device.
    let mut partial = good.clone();
    let words = partial[26..34].chunks(2).chain([&[0, 17][..], &[0, 64]]);
    let sum = words.fold(0_u32, |sum, word| {
        sum + u32::from(u16::from_be_bytes([word[0], word[1]]))
    });
    let sum = u16::try_from((sum & 0xFFFF) + (sum >> 16)).unwrap();
    partial[40..42].copy_from_slice(&sum.to_be_bytes());
    for accepts in [true, false] {
        let (mut rx, kernel, _) = receiver(home, accepts);
        for packet in [&good, &partial, &good, &partial] {
            assert!(kernel.deliver(packet, 3840));
        }
        let shown = if accepts { 4 } else { 2 };
        assert_eq!(burst(&mut rx), vec![(vec![5; 56], false); shown]);
        assert_eq!(count(&rx, "rx_partial_sums"), shown as u64 - 2);
        assert_eq!(count(&rx, "rx_wrong_sum"), 4 - shown as u64);
    }
}
