//! Shares of a queue and numbers of an interface, which are used again.

use super::*;

#[test]
fn a_number_is_taken_once_until_it_is_given_back() {
    let mut taken = Vec::new();
    let all: Vec<_> = std::iter::from_fn(|| take_free(&mut taken, 3)).collect();
    assert_eq!(all, [0, 1, 2]);
    taken[1] = false;
    assert_eq!(take_free(&mut taken, 3), Some(1));
    assert_eq!(take_free(&mut taken, 3), None);
}

#[test]
fn a_region_has_room_for_all_of_its_endpoints() {
    let least = u64::from(MIN_FRAMES) * FRAME as u64;
    assert!(region(8 * least - 1, 8).is_err());
    let (_, shares) = region(8 * least, 8).unwrap().split(8);
    assert!(shares.iter().all(|share| share.count() == MIN_FRAMES / 2));
}
