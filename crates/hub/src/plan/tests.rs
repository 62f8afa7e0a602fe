//! Addresses as users write them.

use super::{ChannelOptions, Plan};
use crate::error::ChannelError;

fn check(addresses: &[&str]) -> Result<bool, ChannelError> {
    let mut plan = Plan::new(&ChannelOptions::default());
    plan.addresses = addresses.iter().map(|&address| address.into()).collect();
    plan.check()?;
    Ok(plan.config.lookup.is_some())
}

#[test]
fn names_are_looked_up_and_numbers_are_not() {
    assert!(!check(&["127.0.0.1:31850", "[::1]:31850"]).unwrap());
    assert!(check(&["127.0.0.1:31850", "localhost:31850"]).unwrap());
}

#[test]
fn what_is_no_address_is_named() {
    for wrong in [
        "",
        "host",
        "host:",
        ":31850",
        "host:70000",
        "::1:31850",
        "tcp://host:31850",
    ] {
        let error = check(&["127.0.0.1:1", wrong]).unwrap_err();
        assert!(
            matches!(&error, ChannelError::Address(address) if address == wrong),
            "{wrong}: {error}"
        );
    }
    assert!(matches!(check(&[]), Err(ChannelError::NoAddress)));
}
