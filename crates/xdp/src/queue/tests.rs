//! Shares that are taken and given back, and the sizes of regions.

use super::*;

#[test]
fn a_share_is_taken_once_until_it_is_given_back() {
    let mut places = Places {
        taken: vec![false; 3],
        filled: 0,
    };
    let all: Vec<_> = std::iter::from_fn(|| places.take()).collect();
    assert_eq!(all, [0, 1, 2].map(Share));
    places.taken[1] = false;
    assert_eq!(places.take(), Some(Share(1)));
    assert_eq!(places.take(), None);
}

#[test]
fn the_kernel_gets_frames_for_as_many_endpoints_as_there_ever_were() {
    let mut places = Places {
        taken: vec![false; 3],
        filled: 0,
    };
    let mut open = || {
        places.take();
        let filled = places.next_to_fill();
        (filled, places.next_to_fill())
    };
    assert_eq!([open(), open()], [(Some(0), None), (Some(1), None)]);
    places.taken = vec![false, true, false];
    let mut open = || {
        places.take();
        places.next_to_fill()
    };
    assert_eq!([open(), open()], [None, Some(2)]);
}

#[test]
fn a_region_has_room_for_all_of_its_endpoints() {
    let least = 8 * u64::from(MIN_FRAMES) * FRAME as u64;
    assert!(sizes(least - 1, 8, None).is_err());
    let umem = Umem::new(u32::try_from(least / FRAME as u64).unwrap()).unwrap();
    let (_, shares) = umem.split(8);
    assert!(shares.iter().all(|share| share.count() == MIN_FRAMES / 2));
}

#[test]
fn a_region_takes_half_of_what_may_be_pinned_or_less() {
    let least = u64::from(MIN_FRAMES) * FRAME as u64;
    let all = |bytes, limit| sizes(bytes, 1, limit).unwrap().collect::<Vec<_>>();
    assert_eq!(
        all(5 * least, None),
        [5 * least, 5 * least / 2, 5 * least / 4, least]
    );
    assert_eq!(
        all(4 * least, Some(4 * least)),
        [4 * least, 2 * least, least]
    );
    assert_eq!(all(9 * least, Some(4 * least)), [2 * least, least]);
    assert_eq!(all(9 * least, Some(least / 2)), [least]);
}
