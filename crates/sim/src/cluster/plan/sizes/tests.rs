//! Draws include the sizes that matter.

use super::{MAX_AHEAD, Sizes};
use crate::world::rng::{Ppm, Rng};

#[test]
fn lengths_meet_the_borders_of_packets() {
    let mut rng = Rng::new(5);
    let mut sizes = Sizes {
        data_size: 64,
        small: 40,
        alike: false,
        large: Ppm::percent(30),
        packets: 16,
        huge: 2,
    };
    let lens: Vec<u32> = (0..10_000).map(|_| sizes.next(&mut rng, 0)).collect();
    let huge = lens.iter().filter(|len| **len > MAX_AHEAD * 64).count();
    assert_eq!((huge, sizes.huge), (2, 0));
    assert!(lens.contains(&0), "some are empty");
    for len in [63, 64, 65, 127, 128, 129, 1023, 1024, 1025] {
        assert!(lens.contains(&len), "none is {len} bytes long");
    }
    let small = lens.iter().filter(|len| **len <= 40).count();
    assert!(small > 6000, "most are small, not {small} of 10000");
}

#[test]
fn some_plans_have_huge_messages_for_each_packet_size() {
    let mut rng = Rng::new(6);
    for data_size in [64, 200, 1024, 1440] {
        let with = (0..200).filter(|_| Sizes::draw(&mut rng, data_size).huge > 0);
        assert!(with.count() > 3, "{data_size}");
    }
}
