//! RPCs between two devices of memif, in both families, with a VLAN, packed and not.

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_dpdk::{AutoDpdk, AutoOptions, Bare, Dpdk, DpdkRx, DpdkTx, open_auto};
use dunlin_msgbuf::BufRef;
use dunlin_testkit::wait::until;
use dunlin_transport::connect::Connect;
use dunlin_transport::udp::{self, Udp};

use crate::echo::{Echo, info};
use crate::{open, options, pair};

fn echo(network: u32, place: impl Fn(u32) -> String, pack: bool) {
    let (_socket, devices) = pair::devices(network, place);
    let [near, far] = devices.map(|device| {
        let mut options = options(&device);
        options.udp.pack = pack;
        Dpdk::open(&options).unwrap()
    });
    Echo::<Dpdk, Dpdk>::new(near, far).all_lengths();
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_talks_to_dpdk_in_ipv4() {
    echo(1, |number| format!("ip=10.82.1.{number}/24"), true);
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_talks_to_dpdk_in_ipv6_without_packing() {
    echo(2, |number| format!("ip=fd82::{number}/64"), false);
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_talks_to_dpdk_in_a_vlan() {
    let place = |number| format!("ip=10.82.3.{number}/24,vlan=7");
    echo(3, place, true);
}

#[test]
#[ignore = "needs DPDK"]
fn a_large_call_ends_soon_after_its_last_packet() {
    let (_socket, devices) = pair::devices(10, |number| format!("ip=10.82.10.{number}/24"));
    let [near, far] = devices.map(|device| open(&device));
    Echo::<Dpdk, Dpdk>::new(near, far).ends_soon();
    // Two endpoints at one device, so packets do not go through it.
    let device = format!("net_ring8;ip=10.82.11.1/24;{}", pair::ARGUMENTS);
    let [near, far] = [(); 2].map(|()| open(&device));
    Echo::<Dpdk, Dpdk>::new(near, far).ends_soon();
}

#[test]
#[ignore = "needs DPDK"]
fn auto_uses_the_device_for_a_peer_of_another_host() {
    let place = |number| format!("ip=10.82.8.{number}/24");
    let (_socket, [near, far]) = pair::devices(8, place);
    let near = open_auto(&AutoOptions {
        dpdk: options(&near),
        ..AutoOptions::default()
    });
    Echo::<AutoDpdk, Dpdk>::new(near.unwrap(), open(&far)).all_lengths();
}

#[test]
#[ignore = "needs DPDK"]
fn bare_devices_pass_packets_unchanged_and_belong_to_no_endpoint() {
    let place = |number| format!("ip=10.82.9.{number}/24");
    let (_socket, devices) = pair::devices(9, place);
    let [mut near, mut far] = devices.each_ref().map(|it| Bare::open(it).unwrap());
    let packet = |number: usize| -> Vec<u8> {
        let len = 60 + number * 13 % 1400;
        (0..len)
            .map(|at| (number * 7 + at).to_le_bytes()[0])
            .collect()
    };
    let (mut sent, mut came) = (0, 0);
    until(|| {
        while sent < 300 && sent < came + 64 {
            let bytes = packet(sent);
            if !near.push(bytes.len(), |room| room.copy_from_slice(&bytes)) {
                break;
            }
            sent += 1;
        }
        near.send();
        far.receive(32, |bytes| {
            assert_eq!(bytes, packet(came));
            came += 1;
        });
        came == 300
    });
    let error = Dpdk::open(&options(&devices[0])).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy, "{error}");
}

#[test]
#[ignore = "needs DPDK"]
fn endpoints_of_one_device_talk_without_it_in_long_frames() {
    // A device of memif does not allow frames longer than those of Ethernet.
    let device = format!(
        "net_ring7;ip=10.82.7.1/24,mtu=9000,packets=8191,queues=3;{}",
        pair::ARGUMENTS
    );
    let mut options = options(&device);
    options.udp.data_size = 8000;
    let [near, far] = [(); 2].map(|()| Dpdk::open(&options).unwrap());
    assert_eq!(near.limits.data_size, 8000);
    // It has no rules, so both endpoints share one queue, and the counters show that.
    assert_eq!(count(&far.rx, "rx_rules"), 0);
    assert_eq!(count(&far.rx, "rx_rules_refused"), 2);
    assert_eq!(count(&far.rx, "device_interrupts"), 0);
    Echo::<Dpdk, Dpdk>::new(near, far).all_lengths();
}

/// Empty packets in the pool of a device.
fn empty(rx: &DpdkRx) -> u64 {
    count(rx, "pool_empty")
}

/// A counter of a device.
fn count(rx: &DpdkRx, name: &str) -> u64 {
    let details = rx.details();
    details.iter().find(|it| it.0 == name).unwrap().1
}

#[test]
#[ignore = "needs DPDK"]
fn every_packet_comes_back_to_its_pool() {
    let place = |number| format!("ip=10.82.4.{number}/24");
    let (_socket, devices) = pair::devices(4, place);
    let watchers = devices.clone().map(|device| open(&device));
    let before = watchers.each_ref().map(|watcher| empty(&watcher.rx));
    let [near, far] = devices.clone().map(|device| open(&device));
    let mut echo = Echo::<Dpdk, Dpdk>::new(near, far);
    echo.all_lengths();
    // The last packets are still shown when an endpoint ends, and others wait in its inbox.
    drop(echo);
    until(|| watchers.each_ref().map(|watcher| empty(&watcher.rx)) == before);
}

#[test]
#[ignore = "needs DPDK"]
fn endpoints_that_receive_nothing_leave_packets_to_the_others() {
    let device = format!("net_ring6;ip=10.82.6.1/24,packets=5000;{}", pair::ARGUMENTS);
    let mut sender = open(&device);
    let mut lazy = [(); 2].map(|()| open(&device));
    let error = Dpdk::open(&options(&device)).unwrap_err();
    assert!(error.to_string().contains("packets="), "{error}");
    let (before, mut last) = (empty(&sender.rx), None);
    for (number, receiver) in (1..).zip(&mut lazy) {
        let (tx, rx) = (&mut sender.tx, &mut sender.rx);
        let (pending, offer) = Dpdk::offer(rx, tx, &info(number)).unwrap();
        let accepted = Dpdk::accept(&mut receiver.rx, &mut receiver.tx, &info(9), offer).unwrap();
        let peer = Dpdk::complete(rx, tx, pending, accepted.1).unwrap();
        last = Some(peer);
        for _ in 0..700 {
            tx.burst(&[packet_to(peer)]);
        }
    }
    let counters = |halves: &Halves<DpdkRx, DpdkTx>| Dpdk::counters(&halves.rx, &halves.tx);
    let overflow: u64 = lazy.iter().map(|it| counters(it).rx_overflow).sum();
    assert_eq!(overflow, 1400 - 5000 / 4);
    drop(lazy);
    for _ in 0..3 {
        sender.tx.burst(&[packet_to(last.unwrap())]);
    }
    let counters = counters(&sender);
    assert_eq!((counters.tx_packets, counters.tx_dropped_full), (1403, 0));
    let details = sender.rx.details();
    let count = |name: &str| details.iter().find(|it| it.0 == name).unwrap().1;
    assert_eq!(count("rx_unknown_port"), 3, "no endpoint has the port now");
    drop(sender.tx);
    until(|| empty(&sender.rx) >= before);
}

/// A short packet.
pub(crate) fn packet_to(peer: PeerId) -> TxItem {
    TxItem {
        peer,
        inline_len: 24,
        inline: [7; MAX_INLINE],
        data: BufRef::EMPTY,
    }
}

/// Adds a peer that offers an address of no host.
pub(crate) fn silent_peer(halves: &mut Halves<DpdkRx, DpdkTx>) -> PeerId {
    let mut absent = Udp::open(&udp::Options {
        advertise: Some([10, 82, 5, 9].into()),
        ..udp::Options::default()
    })
    .unwrap();
    let (_pending, offer) = Udp::offer(&mut absent.rx, &mut absent.tx, &info(1)).unwrap();
    let (rx, tx) = (&mut halves.rx, &mut halves.tx);
    Dpdk::accept(rx, tx, &info(2), offer).unwrap().0
}

#[test]
#[ignore = "needs DPDK"]
fn packets_for_a_neighbour_that_does_not_answer_are_lost_and_come_back_to_the_pool() {
    let device = format!("net_ring5;ip=10.82.5.1/24;{}", pair::ARGUMENTS);
    let mut halves = open(&device);
    let before = empty(&halves.rx);
    let peer = silent_peer(&mut halves);
    for _ in 0..300 {
        halves.tx.burst(&[packet_to(peer)]);
    }
    let full = Dpdk::counters(&halves.rx, &halves.tx).tx_dropped_full;
    assert_eq!(full, 300 - 32);
    let details = halves.rx.details();
    assert!(
        details.contains(&("tx_neighbour_full", full)),
        "{details:?}"
    );
    let unanswered = |rx: &DpdkRx| {
        rx.details()
            .iter()
            .find(|it| it.0 == "tx_unanswered")
            .unwrap()
            .1
    };
    until(|| unanswered(&halves.rx) == 32);
    drop(halves.tx);
    until(|| empty(&halves.rx) == before);
}

#[test]
#[ignore = "needs DPDK"]
fn a_peer_with_another_mtu_gets_packets_that_fit() {
    for (network, mtus) in [(12, [1500, 900]), (13, [900, 1500])] {
        let place = |number: u32| {
            let mtu = mtus[number as usize - 1];
            format!("ip=10.82.{network}.{number}/24,mtu={mtu}")
        };
        let (_socket, devices) = pair::devices(network, place);
        for pack in [true, false] {
            let [near, far] = devices.each_ref().map(|device| {
                let mut options = options(device);
                options.udp.pack = pack;
                Dpdk::open(&options).unwrap()
            });
            let sizes = [&near, &far].map(|halves| halves.limits.data_size);
            assert_ne!(sizes[0], sizes[1], "each fits its own device");
            let mut echo = Echo::<Dpdk, Dpdk>::new(near, far);
            echo.all_lengths();
            // The shorter MTU decides how many packets a message of 20 000 bytes needs.
            let before = echo.counters().map(|it| it.tx_packets);
            echo.calls(1, 20_000);
            let sent = echo.counters().map(|it| it.tx_packets);
            let least = 20_000 / u64::from(sizes[0].min(sizes[1]));
            assert!(sent[0] - before[0] > least, "{sent:?}, {before:?}");
            for name in ["rx_device_faults", "tx_device_faults", "rx_truncated"] {
                assert_eq!(echo.details(name), [0, 0], "{name}");
            }
        }
    }
}

/// A datagram over IPv4 without a checksum, with these bits for congestion.
fn datagram(mac: [u8; 6], to: std::net::SocketAddr, congestion: u8) -> Vec<u8> {
    let std::net::IpAddr::V4(ip) = to.ip() else {
        panic!("the address is not of IPv4");
    };
    let payload = [congestion; 24];
    let mut frame = [&mac[..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
    let mut header = [0_u8; 20];
    (header[0], header[1]) = (0x45, congestion);
    header[2..4].copy_from_slice(&52_u16.to_be_bytes());
    (header[8], header[9]) = (64, 17);
    header[12..16].copy_from_slice(&[10, 82, 5, 9]);
    header[16..20].copy_from_slice(&ip.octets());
    let words = header
        .chunks(2)
        .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
    let sum: u32 = words.sum();
    let sum = !u16::try_from((sum & 0xFFFF) + (sum >> 16)).unwrap();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend([7_u16, to.port(), 32, 0].map(u16::to_be_bytes).concat());
    frame.extend(payload);
    frame
}

#[test]
#[ignore = "needs DPDK"]
fn congestion_marks_of_the_network_are_seen() {
    let (_socket, [near, far]) = pair::devices(14, |number| format!("ip=10.82.5.{number}/24"));
    let mut near = open(&near);
    let mut far = Bare::open(&far).unwrap();
    // The question for a neighbour shows the address of its device.
    let peer = silent_peer(&mut near);
    near.tx.burst(&[packet_to(peer)]);
    let mut mac = None;
    until(|| {
        far.receive(32, |bytes| mac = bytes[6..].first_chunk().copied());
        mac.is_some()
    });
    // Marked, able to be marked in both forms, and not.
    for (bits, is_marked) in [(3, true), (2, false), (1, false), (0, false), (3, true)] {
        let frame = datagram(mac.unwrap(), near.rx.local_addr(), bits);
        assert!(far.push(frame.len(), |room| room.copy_from_slice(&frame)));
        until(|| far.send());
        until(|| near.rx.burst() == 1);
        let got = near.rx.frame(0);
        assert_eq!((got.bytes, got.congestion), (&[bits; 24][..], is_marked));
    }
}
