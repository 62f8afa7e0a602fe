//! Tests of `pack`: boundaries by hand, then every sequence against the invariants of the module.

use proptest::prelude::*;

use super::*;

const SHAPE: Shape = Shape {
    datagram: 1472,
    pack: true,
    segment: true,
};

/// A message as the lengths of its datagrams, each as the lengths of its packets.
type Formed = Vec<Vec<Vec<u32>>>;

fn form(shape: Shape, packets: &[u32]) -> (Formed, Vec<u32>) {
    let mut packer = Packer::new(shape);
    let (mut formed, mut sizes) = (Formed::new(), Vec::new());
    for &len in packets {
        match packer.fit(len) {
            Fit::Message => {
                formed.push(vec![vec![len]]);
                sizes.push(0);
            }
            Fit::Segment => formed.last_mut().unwrap().push(vec![len]),
            Fit::Append => formed.last_mut().unwrap().last_mut().unwrap().push(len),
        }
        *sizes.last_mut().unwrap() = packer.segment_size();
    }
    (formed, sizes)
}

#[test]
fn sixteen_small_packets_are_one_datagram() {
    let (formed, sizes) = form(SHAPE, &[56; 16]);
    assert_eq!(formed, [[[56; 16]]]);
    assert_eq!(sizes, [0]);
}

#[test]
fn a_datagram_is_filled_to_its_last_byte_and_no_further() {
    let (formed, _) = form(SHAPE, &[1000, 472]);
    assert_eq!(formed, [[[1000, 472]]]);
    let (formed, sizes) = form(SHAPE, &[1000, 473]);
    assert_eq!(formed, [[[1000], [473]]]);
    assert_eq!(sizes, [1000]);
}

#[test]
fn only_the_last_segment_may_be_shorter() {
    let (formed, sizes) = form(SHAPE, &[1464, 1464, 700, 1464]);
    assert_eq!(
        formed,
        [vec![vec![1464], vec![1464], vec![700]], vec![vec![1464]]]
    );
    assert_eq!(sizes, [1464, 0]);
}

#[test]
fn a_longer_packet_begins_a_message() {
    let (formed, _) = form(SHAPE, &[700, 1464, 1464]);
    assert_eq!(formed, [vec![vec![700]], vec![vec![1464], vec![1464]]]);
}

#[test]
fn later_segments_are_filled_to_the_first_one_s_size() {
    // Three packets of 400 bytes make 1200. A fourth would fit the limit of 1472, but segments
    // after the first may not be longer than the first.
    let (formed, sizes) = form(SHAPE, &[400; 7]);
    assert_eq!(formed, [[vec![400; 3], vec![400; 3], vec![400]]]);
    assert_eq!(sizes, [1200]);
}

#[test]
fn a_message_has_at_most_64_segments_and_64_kilobytes() {
    let (formed, _) = form(
        Shape {
            pack: false,
            ..SHAPE
        },
        &[100; 130],
    );
    assert_eq!(formed.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 2]);
    let (formed, _) = form(SHAPE, &[1472; 50]);
    assert_eq!(formed.iter().map(Vec::len).collect::<Vec<_>>(), [44, 6]);
}

#[test]
fn a_packet_beyond_the_limit_is_sent_alone() {
    let (formed, sizes) = form(SHAPE, &[1473, 1473, 100, 1473]);
    assert_eq!(formed, [[[1473]], [[1473]], [[100]], [[1473]]]);
    assert_eq!(sizes, [0, 0, 0, 0]);
}

#[test]
fn without_packing_and_segmentation_every_packet_is_a_message() {
    let shape = Shape {
        pack: false,
        segment: false,
        ..SHAPE
    };
    assert_eq!(form(shape, &[56; 3]).0, [[[56]], [[56]], [[56]]]);
}

proptest! {
    #[test]
    fn the_invariants_hold_for_every_sequence(
        datagram in 576..9000_u32,
        pack: bool,
        segment: bool,
        packets in prop::collection::vec(prop_oneof![1..200_u32, 1..9100_u32, Just(1464)], 1..200),
    ) {
        let (formed, sizes) = form(Shape { datagram, pack, segment }, &packets);
        let flat: Vec<u32> = formed.iter().flatten().flatten().copied().collect();
        prop_assert_eq!(&flat, &packets);
        for (message, size) in formed.iter().zip(sizes) {
            let lens: Vec<u32> = message.iter().map(|packets| packets.iter().sum()).collect();
            let (last, others) = lens.split_last().unwrap();
            prop_assert!(lens.len() <= MAX_SEGMENTS as usize);
            prop_assert!(lens.iter().sum::<u32>() <= MAX_MESSAGE_BYTES);
            prop_assert!(others.iter().all(|len| *len == size));
            prop_assert_eq!(size == 0, others.is_empty());
            prop_assert!(others.is_empty() || *last <= size && size <= datagram);
            for packets in message {
                let total: u32 = packets.iter().sum();
                prop_assert!(packets.len() == 1 || pack && total <= datagram);
            }
            prop_assert!(segment || message.len() == 1);
        }
    }
}
