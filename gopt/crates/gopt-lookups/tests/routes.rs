//! IPv4 and IPv6 tables, compared with the trie of another crate.

mod agreement;

use std::net::{Ipv4Addr, Ipv6Addr};

use gopt_lookups::ipv4::Ipv4;
use gopt_lookups::ipv6::Ipv6;
use gopt_lookups::random::Random;
use gopt_lookups::trie::{MAX_HOP, Route};
use ipnet::{Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

/// Routes that contain one another: their first bits have few values, their lengths differ, and the
/// bits after the prefix are random.
fn routes<A>(count: u32, bits: u64, address: impl Fn(&mut Random) -> A) -> Vec<Route<A>> {
    let mut random = Random::new(11);
    let route = |hop| {
        let len = u8::try_from(random.below(bits + 1)).expect("at most 128");
        Route {
            address: address(&mut random),
            len,
            hop,
        }
    };
    (0..count).chain([MAX_HOP]).map(route).collect()
}

fn address4(random: &mut Random) -> u32 {
    let bits = u32::try_from(random.below(1 << 32)).expect("32 bits");
    // Every second address is near another one.
    if random.below(2) == 0 {
        bits & 0x0300_03FF | 0x0A00_0000
    } else {
        bits
    }
}

fn address6(random: &mut Random) -> u128 {
    let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
    let near = (0x2001_0db8 << 96) | (bits & 0x0000_0003_0300_0303_0303_0303_0303_0303);
    if random.below(2) == 0 { near } else { bits }
}

#[test]
fn ipv4_agrees_with_a_prefix_map() {
    let routes = routes(1000, 32, address4);
    let mut oracle = PrefixMap::new();
    for route in &routes {
        let net = Ipv4Net::new(Ipv4Addr::from(route.address), route.len)
            .unwrap()
            .trunc();
        oracle.insert(net, route.hop);
    }
    let mut random = Random::new(12);
    let starts = routes.iter().map(|route| route.address);
    let keys: Vec<u32> = starts
        .chain((0..1000).map(|_| address4(&mut random)))
        .collect();
    let table = Ipv4::new(routes.iter().copied()).unwrap();
    agreement::check_with_c(&table, &keys, |key| {
        let net = Ipv4Net::new(Ipv4Addr::from(key), 32).unwrap();
        oracle.get_lpm(&net).map(|(_, hop)| *hop)
    });
}

#[test]
fn ipv6_agrees_with_a_prefix_map() {
    let routes = routes(1000, 128, address6);
    let mut oracle = PrefixMap::new();
    for route in &routes {
        let net = Ipv6Net::new(Ipv6Addr::from(route.address), route.len)
            .unwrap()
            .trunc();
        oracle.insert(net, route.hop);
    }
    let mut random = Random::new(12);
    let starts = routes.iter().map(|route| route.address);
    let keys: Vec<u128> = starts
        .chain((0..1000).map(|_| address6(&mut random)))
        .collect();
    let table = Ipv6::new(routes.iter().copied()).unwrap();
    agreement::check_with_c(&table, &keys, |key| {
        let net = Ipv6Net::new(Ipv6Addr::from(key), 128).unwrap();
        oracle.get_lpm(&net).map(|(_, hop)| *hop)
    });
}

#[test]
fn without_a_default_route_some_addresses_have_none() {
    let one = Route {
        address: 0x0A00_0000,
        len: 8,
        hop: 0,
    };
    let table = Ipv4::new([one]).unwrap();
    let keys = [0x0A01_0203, 0x0B00_0000, 0, u32::MAX];
    agreement::check_with_c(&table, &keys, |key| (key >> 24 == 10).then_some(0));
    let table = Ipv6::new([]).unwrap();
    agreement::check_with_c(&table, &[0, u128::MAX], |_| None);
}

#[test]
fn impossible_routes_are_refused() {
    let route = Route {
        address: 0_u32,
        len: 33,
        hop: 0,
    };
    assert!(Ipv4::new([route]).is_err());
    assert!(
        Ipv4::new([Route {
            len: 3,
            hop: MAX_HOP + 1,
            ..route
        }])
        .is_err()
    );
    assert!(
        Ipv6::new([Route {
            address: 0,
            len: 129,
            hop: 0
        }])
        .is_err()
    );
}
