//! Tests of `offer`: round trips, limits, and offers that no endpoint makes.

use proptest::prelude::*;

use super::*;

fn terms(addresses: &[&str]) -> Terms {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    Terms {
        data_size: 1440,
        buffer: 65536,
        addresses,
    }
}

#[test]
fn a_decoded_offer_equals_the_encoded_one() {
    let terms = terms(&["10.1.2.3:4567", "[fd00::1]:65535"]);
    let offer = terms.encode();
    assert!(offer.bytes.len() <= MAX_OFFER_BYTES);
    assert_eq!(Terms::decode(&offer).unwrap(), terms);
}

#[test]
fn the_first_address_of_our_family_is_used() {
    let own4 = "127.0.0.1:1".parse().unwrap();
    let own6 = "[::1]:1".parse().unwrap();
    let terms = terms(&["[fd00::1]:9", "10.1.2.3:4567", "10.1.2.4:4567"]);
    assert_eq!(
        terms.address_for(own4, false).unwrap(),
        "10.1.2.3:4567".parse().unwrap()
    );
    assert_eq!(
        terms.address_for(own6, false).unwrap(),
        "[fd00::1]:9".parse().unwrap()
    );
}

#[test]
fn an_address_that_is_not_one_endpoint_is_not_used() {
    let own4 = "127.0.0.1:1".parse().unwrap();
    let own6 = "[::1]:1".parse().unwrap();
    let none = [
        "0.0.0.0:5",
        "224.0.0.1:5",
        "255.255.255.255:5",
        "10.0.0.1:0",
        "[fd00::1]:5",
    ];
    for text in none {
        let refused = terms(&[text]).address_for(own4, false);
        assert!(matches!(refused, Err(ConnectError::Unreachable)), "{text}");
    }
    for text in ["[::]:5", "[ff02::1]:5", "[fd00::1]:0", "10.0.0.1:5"] {
        let refused = terms(&[text]).address_for(own6, false);
        assert!(matches!(refused, Err(ConnectError::Unreachable)), "{text}");
    }
}

#[test]
fn a_link_local_address_gets_our_own_scope() {
    let own: SocketAddr = "[fe80::1%7]:1".parse().unwrap();
    let to = terms(&["[fe80::2]:9"]).address_for(own, false).unwrap();
    assert_eq!(to, "[fe80::2%7]:9".parse().unwrap());
}

#[test]
fn a_socket_for_both_families_sends_to_either() {
    let own = "[::]:1".parse().unwrap();
    for (text, to) in [
        ("10.1.2.3:9", "[::ffff:10.1.2.3]:9"),
        ("[fd00::1]:9", "[fd00::1]:9"),
    ] {
        let addr = terms(&[text]).address_for(own, true).unwrap();
        assert_eq!(addr, to.parse().unwrap());
    }
    for text in [
        "[::ffff:224.0.0.1]:5",
        "[::ffff:255.255.255.255]:5",
        "[::ffff:0.0.0.0]:5",
    ] {
        let refused = terms(&[text]).address_for(own, true);
        assert!(matches!(refused, Err(ConnectError::Unreachable)), "{text}");
    }
}

#[test]
fn sizes_that_no_endpoint_has_are_refused() {
    let good = terms(&["10.1.2.3:4567"]);
    for bad in [
        Terms {
            data_size: MIN_DATA_SIZE - 1,
            ..good.clone()
        },
        Terms {
            buffer: 100,
            ..good
        },
    ] {
        assert!(matches!(
            Terms::decode(&bad.encode()),
            Err(ConnectError::Sizes)
        ));
    }
}

#[test]
fn an_offer_with_descriptors_is_refused() {
    let mut offer = terms(&["10.1.2.3:4567"]).encode();
    offer
        .fds
        .push(std::fs::File::open("/dev/null").unwrap().into());
    assert!(matches!(
        Terms::decode(&offer),
        Err(ConnectError::Descriptor)
    ));
}

#[test]
fn every_cut_and_every_tail_is_malformed() {
    let whole = terms(&["10.1.2.3:4567", "[fd00::1]:65535"]).encode().bytes;
    let is_malformed = |bytes: &[u8]| {
        let offer = Offer {
            bytes: bytes.to_vec(),
            fds: Vec::new(),
        };
        matches!(Terms::decode(&offer), Err(ConnectError::Malformed))
    };
    for len in 0..whole.len() {
        assert!(is_malformed(&whole[..len]), "{len} bytes");
    }
    assert!(is_malformed(&[whole.as_slice(), &[0]].concat()));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let offer = Offer { bytes, fds: Vec::new() };
        if let Ok(terms) = Terms::decode(&offer) {
            prop_assert_eq!(terms.encode().bytes, offer.bytes);
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_changes_the_offer(at in 0..17_usize, bit in 0..8_u32) {
        let good = terms(&["10.1.2.3:4567"]);
        let mut offer = good.encode();
        offer.bytes[at] ^= 1 << bit;
        prop_assert_ne!(Terms::decode(&offer).ok(), Some(good));
    }
}
