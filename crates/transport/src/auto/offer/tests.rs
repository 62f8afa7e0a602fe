//! Tests of `offer`: round trips, cut and mixed-up offers, and the record of failed offers.

use std::fs::File;

use proptest::prelude::*;

use super::*;

fn part(bytes: &[u8], fds: usize) -> Offer {
    let fds = (0..fds)
        .map(|_| File::open("/dev/null").unwrap().into())
        .collect();
    Offer {
        bytes: bytes.to_vec(),
        fds,
    }
}

fn both() -> Parts {
    Parts {
        shm: Some(part(b"memory", 3)),
        udp: Some(part(b"socket", 0)),
    }
}

#[test]
fn parts_come_back_with_their_descriptors() {
    let whole = both().encode().unwrap();
    assert_eq!((whole.bytes.len(), whole.fds.len()), (18, 3));
    let Parts {
        shm: Some(shm),
        udp: Some(udp),
    } = Parts::decode(whole).unwrap()
    else {
        panic!("a part is missing");
    };
    assert_eq!(
        (shm.bytes.as_slice(), shm.fds.len()),
        (b"memory".as_slice(), 3)
    );
    assert_eq!(
        (udp.bytes.as_slice(), udp.fds.len()),
        (b"socket".as_slice(), 0)
    );
}

#[test]
fn an_empty_offer_has_no_parts() {
    let parts = Parts::decode(Offer::default()).unwrap();
    assert!(parts.shm.is_none() && parts.udp.is_none());
}

#[test]
fn a_cut_offer_is_malformed_or_lacks_a_part() {
    let whole = both().encode().unwrap().bytes;
    for len in 1..whole.len() {
        match Parts::decode(part(&whole[..len], 0)) {
            Ok(parts) => assert!(len == 9 && parts.shm.is_some() && parts.udp.is_none()),
            Err(error) => assert!(matches!(error, ConnectError::Malformed)),
        }
    }
}

#[test]
fn a_part_that_comes_twice_or_is_unknown_is_malformed() {
    for bytes in [
        &[2, 0, 0, 2, 0, 0],
        &[1, 0, 0, 1, 0, 0],
        &[1, 0, 0, 3, 0, 0],
    ] {
        let refused = Parts::decode(part(bytes, 0));
        assert!(matches!(refused, Err(ConnectError::Malformed)));
    }
}

#[test]
fn parts_that_do_not_fit_an_offer_are_not_sent() {
    let long = [0; MAX_OFFER_BYTES - 3];
    let fits = Parts {
        shm: Some(part(&long, MAX_OFFER_FDS)),
        udp: None,
    };
    fits.encode().unwrap();
    let longer = [0; MAX_OFFER_BYTES - 2];
    for (bytes, fds) in [(longer.as_slice(), 0), (&long, MAX_OFFER_FDS + 1)] {
        let parts = Parts {
            shm: Some(part(bytes, fds)),
            udp: None,
        };
        assert!(matches!(parts.encode(), Err(ConnectError::Sizes)));
    }
}

#[test]
fn an_offer_ends_once() {
    let mut offered = Offered::default();
    let endpoint = EndpointUid([1; 16]);
    let waiting = |n| Waiting {
        endpoint,
        shm: None,
        udp: Pending(n),
    };
    let first = offered.insert(waiting(7));
    let second = offered.insert(waiting(8));
    assert_eq!(
        offered.remove(&first).map(|waiting| waiting.udp),
        Some(Pending(7))
    );
    assert!(offered.remove(&first).is_none());
    assert!(!offered.is_empty());
    assert_eq!(
        offered.remove(&second).map(|waiting| waiting.udp),
        Some(Pending(8))
    );
    assert!(offered.is_empty());
}

#[test]
fn only_an_endpoint_that_failed_goes_without_shared_memory() {
    let mut offered = Offered::default();
    offered.give_up_shm(EndpointUid([1; 16]));
    assert!(!offered.may_use_shm(EndpointUid([1; 16])));
    assert!(offered.may_use_shm(EndpointUid([2; 16])));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..4_u8], 0..300),
        fds in 0..5_usize,
    ) {
        if let Ok(parts) = Parts::decode(part(&bytes, fds)) {
            let held = [&parts.shm, &parts.udp].into_iter().flatten();
            prop_assert!(held.map(|part| part.fds.len()).sum::<usize>() <= fds);
        }
    }
}
