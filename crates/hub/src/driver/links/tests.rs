//! The ends of links.

use dunlin_channel::{Action, Config, Machine};

use super::*;

#[test]
fn the_ends_of_links_are_counted_for_each_address() {
    let mut machine = Machine::new(Config::DEFAULT, 1, Nanos::ZERO);
    machine.on_addresses(["a", "b"], Nanos::ZERO);
    let mut address = || match machine.poll(Nanos::ZERO) {
        Some(Action::Connect { address, .. }) => address,
        other => panic!("{other:?}"),
    };
    let (dead, alive) = (address(), address());
    let mut links = Links::new();
    assert_eq!(links.failures(dead), 0);
    for count in 1..4 {
        links.on_error(dead, AddressError::Draining, None);
        assert_eq!((links.failures(dead), links.failures(alive)), (count, 0));
    }
}

#[test]
fn an_announcement_outlives_the_links_that_brought_it() {
    let mut machine = Machine::new(Config::DEFAULT, 1, Nanos::ZERO);
    machine.on_addresses(["a"], Nanos::ZERO);
    let Some(Action::Connect { address, .. }) = machine.poll(Nanos::ZERO) else {
        panic!("the machine does not connect");
    };
    let mut links = Links::new();
    let announced = |links: &Links| links.ends(address).unwrap().endpoints;
    for (said, expected) in [
        (None, None),
        (Some(3), Some(3)),
        (None, Some(3)),
        (Some(1), Some(1)),
    ] {
        links.on_error(address, AddressError::Draining, said);
        assert_eq!(announced(&links), expected);
    }
}
