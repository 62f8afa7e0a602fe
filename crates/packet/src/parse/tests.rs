//! Frames that differ in one respect from a valid one, and any bytes.

use proptest::prelude::*;

use super::super::check::{self, homes, peer_of, written};
use super::*;
use crate::neighbours;

/// A valid frame to `home` with 33 bytes of payload, and the offset of its IP header.
fn good(home: &Home) -> (Vec<u8>, usize) {
    let sender = Home {
        address: peer_of(home),
        vlan: home.vlan,
        mac: [2, 0, 0, 0, 0, 9],
    };
    let payload: Vec<u8> = (1..34).collect();
    let ip = if home.vlan == 0 { 14 } else { 18 };
    (written(&sender, home, &payload), ip)
}

/// Corrects the checksum of an IPv4 header whose fields were changed.
fn mend(frame: &mut [u8], ip: usize) {
    frame[ip + 10..ip + 12].fill(0);
    let mut sum = Sum::default();
    sum.add(&frame[ip..ip + IPV4]);
    let sum = !sum.folded();
    frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn the_whole_payload_of_a_good_frame_is_accepted() {
    for home in homes() {
        let (frame, _) = good(&home);
        let found = parse(&frame, &home).unwrap();
        assert_eq!(
            frame[found.start..][..found.len],
            *(1..34).collect::<Vec<u8>>()
        );
        assert_eq!(found.sum, Written::Whole);
        assert_eq!(found.from, peer_of(&home));
        assert!(!found.congestion);
        // Ethernet pads short frames.
        let padded = [frame.as_slice(), &[0; 20]].concat();
        assert_eq!(parse(&padded, &home), Ok(found));
    }
}

#[test]
fn a_frame_cut_anywhere_is_refused() {
    for home in homes() {
        let (frame, _) = good(&home);
        for len in 0..frame.len() {
            assert_eq!(
                parse(&frame[..len], &home),
                Err(Refused::Truncated),
                "{len}"
            );
        }
    }
}

#[test]
fn a_changed_bit_is_refused_unless_it_has_no_meaning() {
    for home in homes() {
        let (frame, ip) = good(&home);
        let udp = ip + if home.address.is_ipv4() { IPV4 } else { IPV6 };
        for at in 0..frame.len() {
            for bit in 0..8 {
                let mut changed = frame.clone();
                changed[at] ^= 1 << bit;
                let found = parse(&changed, &home);
                // These may change: the sender's address, the priority, and in IPv6 the class, the
                // label and the hops.
                let is_free = (6..12).contains(&at)
                    || (home.vlan != 0 && at == 14 && bit >= 4)
                    || (home.address.is_ipv6() && (ip..ip + 4).contains(&at))
                    || (home.address.is_ipv6() && at == ip + 7);
                if !is_free {
                    assert!(found.is_err(), "byte {at} of {}, udp at {udp}", frame.len());
                }
            }
        }
    }
}

#[test]
fn each_layer_names_its_refusal() {
    let home = homes()[0];
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let (mut frame, ip) = good(&home);
        change(&mut frame);
        mend(&mut frame, ip);
        parse(&frame, &home).unwrap_err()
    };
    assert_eq!(refused(&|frame| frame[5] ^= 1), Refused::Mac);
    assert_eq!(
        refused(&|frame| frame[..6].fill(0xFF)),
        Refused::Mac,
        "broadcast"
    );
    assert_eq!(
        refused(&|frame| frame[6] |= 1),
        Refused::Mac,
        "the frame came from a group"
    );
    assert_eq!(refused(&|frame| frame[13] = 6), Refused::Type, "ARP");
    assert_eq!(refused(&|frame| frame[14] = 0x46), Refused::Ip, "options");
    assert_eq!(refused(&|frame| frame[14] = 0x65), Refused::Ip);
    assert_eq!(
        refused(&|frame| frame[20] |= 0x20),
        Refused::Fragment,
        "the first fragment"
    );
    assert_eq!(
        refused(&|frame| frame[21] = 1),
        Refused::Fragment,
        "a later fragment"
    );
    assert_eq!(refused(&|frame| frame[23] = 6), Refused::Type, "TCP");
    assert_eq!(refused(&|frame| frame[33] ^= 4), Refused::Destination);
    assert_eq!(
        refused(&|frame| frame[36] ^= 4),
        Refused::Destination,
        "port"
    );
    for source in [
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [255; 4],
        [0; 4],
        [10, 79, 0, 1],
    ] {
        let from = |frame: &mut Vec<u8>| frame[26..30].copy_from_slice(&source);
        assert_eq!(refused(&from), Refused::Source, "{source:?}");
    }
    assert_eq!(
        refused(&|frame| frame[34..36].fill(0)),
        Refused::Udp,
        "the frame came from port 0"
    );
    assert_eq!(
        refused(&|frame| frame[39] = 8),
        Refused::Udp,
        "the datagram has no payload"
    );
    assert_eq!(refused(&|frame| frame[39] += 1), Refused::Truncated);
    assert_eq!(refused(&|frame| frame[50] ^= 1), Refused::Sum);
    let (mut frame, _) = good(&home);
    frame[24] ^= 1;
    assert_eq!(
        parse(&frame, &home),
        Err(Refused::Ip),
        "the checksum of IP is wrong"
    );
}

#[test]
fn fragments_and_extensions_of_ipv6_are_refused() {
    let home = homes()[2];
    for (next, why) in [
        (44, Refused::Fragment),
        (0, Refused::Type),
        (43, Refused::Type),
    ] {
        let (mut frame, ip) = good(&home);
        frame[ip + 6] = next;
        assert_eq!(parse(&frame, &home), Err(why));
    }
}

#[test]
fn tags_must_be_of_the_vlan() {
    let [untagged, tagged, ..] = homes();
    assert_eq!(parse(&good(&tagged).0, &untagged), Err(Refused::Vlan));
    assert_eq!(parse(&good(&untagged).0, &tagged), Err(Refused::Vlan));
    // A tag with VLAN number 0 has only a priority.
    let (frame, _) = good(&untagged);
    let tag = [&frame[..12], &[0x81, 0, 0xE0, 0], &frame[12..]].concat();
    assert!(parse(&tag, &untagged).is_ok());
}

#[test]
fn checksums_may_be_partial_and_over_ipv4_absent() {
    for home in [homes()[0], homes()[2]] {
        let (mut frame, ip) = good(&home);
        let udp = ip + if home.address.is_ipv4() { IPV4 } else { IPV6 };
        let sum = pseudo_header(
            peer_of(&home).ip(),
            home.address.ip(),
            PROTOCOL_UDP,
            frame.len() - udp,
        );
        frame[udp + 6..udp + 8].copy_from_slice(&sum.folded().to_be_bytes());
        assert_eq!(
            parse(&frame, &home).map(|found| found.sum),
            Ok(Written::Partial)
        );
        frame[udp + 7] ^= 1;
        assert_eq!(parse(&frame, &home), Err(Refused::Sum));
        frame[udp + 6..udp + 8].fill(0);
        let absent = parse(&frame, &home).map(|found| found.sum);
        match home.address {
            SocketAddr::V4(_) => assert_eq!(absent, Ok(Written::Absent)),
            SocketAddr::V6(_) => assert_eq!(absent, Err(Refused::NoSum)),
        }
    }
}

#[test]
fn the_marks_of_ecn_are_read() {
    let [v4, _, v6, _] = homes();
    let (mut frame, ip) = good(&v4);
    frame[ip + 1] |= 0b11;
    mend(&mut frame, ip);
    assert!(parse(&frame, &v4).unwrap().congestion);
    let (mut frame, ip) = good(&v6);
    frame[ip + 1] |= 0b11 << 4;
    assert!(parse(&frame, &v6).unwrap().congestion);
}

#[test]
fn the_first_inputs_of_the_fuzzer_reach_every_form() {
    let corpus = include_str!("../../../../fuzz/corpus/xdp_frame.hex");
    let (mut accepted, mut messages) = (0, 0);
    for line in corpus.lines() {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..line.len()).step_by(2).map(byte).collect();
        check::frame(&bytes);
        accepted += homes()
            .iter()
            .filter(|home| parse(&bytes, home).is_ok())
            .count();
        messages += homes()
            .iter()
            .filter(|home| neighbours::read(&bytes, home).is_some())
            .count();
    }
    assert_eq!((accepted, messages), (11, 5));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check::frame(&bytes);
    }

    #[test]
    fn frames_that_are_nearly_good_are_read_without_harm(
        which in 0_usize..4,
        changes in proptest::collection::vec((0_usize..100, any::<u8>()), 0..4),
        mended: bool,
    ) {
        let home = homes()[which];
        let (mut frame, ip) = good(&home);
        for (at, value) in changes {
            let at = at % frame.len();
            frame[at] = value;
        }
        if mended && home.address.is_ipv4() {
            mend(&mut frame, ip);
        }
        check::frame(&frame);
    }

    #[test]
    fn a_frame_that_we_write_is_read_back(
        which in 0_usize..4,
        payload in proptest::collection::vec(any::<u8>(), 1..2000),
    ) {
        let home = homes()[which];
        let sender = Home { address: peer_of(&home), ..home };
        let frame = written(&sender, &home, &payload);
        let found = parse(&frame, &home).unwrap();
        prop_assert_eq!(&frame[found.start..][..found.len], &payload[..]);
        check::frame(&frame);
    }
}
