//! Compares residences with the times that they encode, for every code and for random times.

use std::vec::Vec;

use proptest::prelude::*;

use super::Residence;
use crate::check;

#[test]
fn greater_codes_stand_for_longer_times() {
    let canonical = |bits: &u16| {
        let residence = Residence(*bits);
        residence.to_nanos().map(Residence::from_nanos) == Some(residence)
    };
    let codes: Vec<u16> = (0..u16::MAX).filter(canonical).collect();
    // Exponent 0 uses all 2048 mantissas; each of the other 31 uses only those whose first bit is
    // set. The very last code means "no sample".
    assert_eq!(codes.len(), 2048 + 31 * 1024 - 1);
    for pair in codes.windows(2) {
        assert!(Residence(pair[0]).to_nanos() < Residence(pair[1]).to_nanos());
    }
}

#[test]
fn times_below_2048_ns_are_exact() {
    for nanos in 0..2048 {
        assert_eq!(Residence::from_nanos(nanos).to_nanos(), Some(nanos));
    }
}

#[test]
fn the_largest_time_is_exact_and_longer_times_have_no_residence() {
    let largest = 2046 << 31;
    assert_eq!(Residence::from_nanos(largest).to_nanos(), Some(largest));
    assert_eq!(
        Residence::from_nanos((2047 << 31) - 1).to_nanos(),
        Some(largest)
    );
    assert_eq!(Residence::from_nanos(2047 << 31), Residence::NO_SAMPLE);
    assert_eq!(Residence::from_nanos(u64::MAX), Residence::NO_SAMPLE);
    assert_eq!(Residence::NO_SAMPLE.to_nanos(), None);
    assert_eq!(Residence::ZERO.to_nanos(), Some(0));
}

proptest! {
    #[test]
    fn a_residence_grows_with_its_time_is_close_to_it_and_never_above_it(
        shift in 0_u32..64,
        nanos in any::<u64>(),
    ) {
        check::residence((nanos >> shift).min(u64::MAX - 1));
    }
}
