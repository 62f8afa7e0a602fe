//! Shares for all numbers of connections, and the network prefix of an address.

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 512;

fn host(number: u8) -> Origin {
    Origin::of_host(Ipv4Addr::new(10, 0, 0, number).into())
}

/// Places with these numbers of connections for each host, and the total.
fn places(of: &[usize]) -> (Places, usize) {
    let mut places = Places::default();
    let mut last = 0;
    for (number, count) in of.iter().enumerate() {
        for _ in 0..*count {
            last += 1;
            let origin = host(u8::try_from(number).unwrap());
            places.on_accepted(LinkId(last), origin);
            places.on_greeted(LinkId(last), origin);
        }
    }
    (places, usize::try_from(last).unwrap())
}

#[test]
fn an_ipv6_host_is_its_network_and_an_embedded_ipv4_address_is_itself() {
    let of = |ip: &str| Origin::of_host(ip.parse().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), host(1));
    assert_ne!(host(1), host(2));
}

#[test]
fn one_origin_alone_gets_all_places_and_no_more() {
    let (full, _) = places(&[LIMIT - 1]);
    assert_eq!(full.room_for(host(0), LIMIT), Room::Free);
    let (full, _) = places(&[LIMIT]);
    assert_eq!(full.room_for(host(0), LIMIT), Room::OfOwn);
}

#[test]
fn an_origin_keeps_to_its_share_once_three_quarters_of_all_places_are_taken() {
    let (few, _) = places(&[382, 1]);
    assert_eq!(few.room_for(host(0), LIMIT), Room::Free);
    let (many, _) = places(&[383, 1]);
    assert_eq!(many.room_for(host(0), LIMIT), Room::OfOwn);
    assert_eq!(many.room_for(host(1), LIMIT), Room::Free);
}

#[test]
fn the_origin_with_most_makes_room_for_a_newcomer() {
    let (full, _) = places(&[300, 212]);
    assert_eq!(full.room_for(host(2), LIMIT), Room::Of(host(0)));
    assert_eq!(full.room_for(host(1), LIMIT), Room::Of(host(0)));
    assert_eq!(full.room_for(host(0), LIMIT), Room::OfOwn);
}

#[test]
fn origins_that_all_have_their_share_keep_it() {
    let (full, _) = places(&[1; 8]);
    assert_eq!(full.room_for(host(9), 8), Room::None);
}

#[test]
fn the_origin_with_most_connections_before_hello_loses_its_oldest() {
    let mut places = Places::default();
    places.on_accepted(LinkId(1), host(1));
    places.on_accepted(LinkId(2), host(2));
    places.on_accepted(LinkId(3), host(2));
    assert_eq!(places.half_open_above(3), None);
    assert_eq!(places.half_open_above(2), Some(LinkId(2)));
    places.on_greeted(LinkId(2), host(2));
    assert_eq!(places.half_open_above(1), Some(LinkId(1)));
    places.on_end(LinkId(1), host(1));
    assert_eq!(places.half_open_above(1), None);
}

proptest! {
    /// For any new connection: an origin at or below its share loses none, and an origin below its
    /// share is refused only if each origin has one place.
    #[test]
    fn no_origin_below_its_share_loses_a_place(of in prop::collection::vec(0_usize..40, 1..12),
                                      newcomer in 0_u8..12, limit in 1_usize..100) {
        let (places, all) = places(&of);
        let origin = host(newcomer);
        let room = places.room_for(origin, limit);
        let own = of.get(usize::from(newcomer)).copied().unwrap_or(0);
        let present = of.iter().filter(|count| **count > 0).count() + usize::from(own == 0);
        let share = (limit / present).max(1);
        match room {
            Room::Free => prop_assert!(all < limit),
            Room::OfOwn => prop_assert!(own >= share && (all + 1) * 4 > limit * 3),
            Room::Of(payer) => {
                prop_assert!(payer != origin && own < share);
                prop_assert!(places.greeted_of(payer).count() > share);
            }
            Room::None => prop_assert!(own == 0 && of.iter().all(|count| *count <= share)),
        }
    }
}
