//! Places are read back as they were written; invalid words are refused.

use super::*;

#[test]
fn a_place_survives_the_file() {
    for nexus in [
        None,
        Some("127.0.0.1:31850"),
        Some("255.255.255.255:65535"),
        Some("[::1]:1"),
        Some("[2001:db8:1:2:3:4:5:6]:31850"),
    ] {
        for endpoint in [None, Some(0), Some(7), Some(u16::MAX)] {
            let nexus = nexus.map(|nexus| nexus.parse().unwrap());
            let place = Whereabouts { nexus, endpoint };
            assert_eq!(Whereabouts::of_words(place.words()), place);
        }
    }
}

#[test]
fn words_that_make_no_place_mean_an_unknown_place() {
    let nowhere = Whereabouts::default();
    assert_eq!(nowhere.words(), [0; 4]);
    assert_eq!(
        Whereabouts::of_words([1, 2, 0, 0]),
        nowhere,
        "the port is missing"
    );
    assert_eq!(Whereabouts::of_words([1, 2, 1 << 16, 1 << 17]), nowhere);
    assert_eq!(Whereabouts::of_words([u64::MAX; 4]), nowhere);
}
