//! Tests of `cmsg`: bytes that the kernel writes, and bytes that it would never write.

use proptest::prelude::*;

use super::*;

fn message(level: c_int, kind: c_int, data: &[u8]) -> Vec<u8> {
    let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
    bytes.extend(level.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    bytes
}

#[test]
fn no_control_messages_give_no_notes() {
    assert_eq!(parse(&[]), Notes::default());
}

#[test]
fn segment_size_and_both_forms_of_ecn_bits_are_read() {
    let gro = message(libc::SOL_UDP, libc::UDP_GRO, &1464_i32.to_ne_bytes());
    let tos = |bits| message(libc::IPPROTO_IP, libc::IP_TOS, &[bits]);
    let class = |bits: i32| message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &bits.to_ne_bytes());
    let marked = Notes {
        segment: 1464,
        congestion: true,
    };
    let unmarked = Notes {
        segment: 1464,
        congestion: false,
    };
    assert_eq!(parse(&[tos(0x03), gro.clone()].concat()), marked);
    assert_eq!(parse(&[gro.clone(), class(0xB3)].concat()), marked);
    for bits in [0, 1, 2] {
        assert_eq!(parse(&[tos(bits), gro.clone()].concat()), unmarked);
        assert_eq!(parse(&[gro.clone(), class(bits.into())].concat()), unmarked);
    }
}

#[test]
fn unknown_messages_are_passed_over() {
    let other = message(libc::SOL_SOCKET, 77, &[1, 2, 3]);
    let tos = message(libc::IPPROTO_IP, libc::IP_TOS, &[3]);
    assert!(parse(&[other, tos].concat()).congestion);
}

#[test]
fn a_segment_size_is_written_as_the_kernel_reads_it() {
    let SegmentSize {
        len,
        level,
        kind,
        size,
        padding,
    } = SegmentSize::new(1464);
    assert_eq!(
        (len, level, kind, size),
        (18, libc::SOL_UDP, libc::UDP_SEGMENT, 1464)
    );
    assert_eq!(padding, [0; 6]);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        parse(&bytes);
    }

    #[test]
    fn cut_messages_never_reach_beyond_their_bytes(
        lens in prop::collection::vec(0..40_usize, 1..6),
        cut in 0..100_usize,
    ) {
        let mut bytes = Vec::new();
        for len in lens {
            let mut one = message(libc::SOL_UDP, libc::UDP_GRO, &[1, 1, 1, 1]);
            one[..ALIGN].copy_from_slice(&len.to_ne_bytes());
            bytes.extend(one);
        }
        bytes.truncate(cut);
        let notes = parse(&bytes);
        prop_assert!([0, 1, 257, 0x0101_0101].contains(&notes.segment));
    }
}
