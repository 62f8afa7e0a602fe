//! Addresses as users write them, and options that contradict each other.

use std::time::Duration;

use dunlin_channel::{Pick, Retry};

use super::{ChannelOptions, Plan};
use crate::channel::{Channel, ChannelBuilder};
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
fn an_error_names_a_text_that_is_no_address() {
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

/// The message with which a channel with these options is refused.
fn refused(change: impl FnOnce(ChannelBuilder) -> ChannelBuilder) -> String {
    let builder = Channel::builder().address("127.0.0.1:1");
    change(builder).open().unwrap_err().to_string()
}

fn attempts(attempts: u8) -> Retry {
    Retry {
        attempts,
        ..Retry::default()
    }
}

#[test]
fn a_hedge_with_one_attempt_is_refused_in_either_order() {
    let after = Duration::from_millis(5);
    let expected = "the channel has both `hedge` and `retry.attempts` = 1, but a hedge is a second \
                    attempt, so no call would have one; set `retry.attempts` to 2 or more, or \
                    leave `hedge` out";
    assert_eq!(refused(|it| it.hedge(after).retry(attempts(1))), expected);
    assert_eq!(refused(|it| it.retry(attempts(1)).hedge(after)), expected);
}

#[test]
fn a_queue_of_no_calls_is_refused() {
    assert_eq!(
        refused(|it| it.queue(0)),
        "the channel's `queue` is 0, so every call would fail with `Full`; set `queue` to 1 or \
         more, or leave it out"
    );
}

#[test]
fn zero_attempts_are_refused() {
    assert_eq!(
        refused(|it| it.retry(attempts(0))),
        "the channel's `retry.attempts` is 0, but the first attempt counts; set it to 1 for calls \
         that are not repeated"
    );
}

#[test]
fn options_of_a_hub_reach_its_channels_and_are_checked_with_them() {
    let options = ChannelOptions {
        pick: Pick::Hash,
        attempts: 2,
        hedge: Some(Duration::from_millis(5)),
        ..ChannelOptions::default()
    };
    let plan = Plan::new(&options);
    assert_eq!(plan.config.pick, Pick::Hash);
    assert_eq!(plan.config.retry, attempts(2));
    assert_eq!(plan.config.hedge, Some(Duration::from_millis(5).into()));
    assert!(plan.check_options().is_ok());
    let once = ChannelOptions {
        attempts: 1,
        ..options
    };
    let refused = Plan::new(&once).check_options();
    assert!(matches!(refused, Err(ChannelError::NeverHedges)));
    let mut constant = Plan::new(&options);
    constant.config.retry.pause.factor = 1;
    let refused = constant.check_options();
    assert!(matches!(refused, Err(ChannelError::NoGrowth)));
    // Without a hedge, one attempt is a choice, and more than three count as three.
    for fits in [1, 2, 3, 200] {
        let options = ChannelOptions {
            attempts: fits,
            ..ChannelOptions::default()
        };
        assert!(Plan::new(&options).check_options().is_ok());
    }
}
