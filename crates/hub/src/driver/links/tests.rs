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
        links.on_error(dead, AddressError::Draining);
        assert_eq!((links.failures(dead), links.failures(alive)), (count, 0));
    }
}
