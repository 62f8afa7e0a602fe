//! When names are looked up: on time, after a loss, and again after a failure.

use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

fn lookups() -> Lookups {
    let config = Config {
        lookup: Some(SECOND.times(30)),
        lookup_pause: SECOND,
        ..Config::DEFAULT
    };
    Lookups::new(&config, Nanos::ZERO)
}

#[test]
fn names_are_looked_up_every_half_minute() {
    let mut lookups = lookups();
    assert!(lookups.begin(Nanos::ZERO));
    lookups.on_end(SECOND);
    assert_eq!(lookups.next_wakeup(), Some(SECOND.times(31)));
    assert!(!lookups.begin(SECOND.times(30)));
    assert!(lookups.begin(SECOND.times(31)));
}

#[test]
fn a_loss_brings_the_next_look_up_forward() {
    let mut lookups = lookups();
    assert!(lookups.begin(Nanos::ZERO));
    lookups.on_end(Nanos(1));
    lookups.on_loss(Nanos(2));
    assert_eq!(lookups.next_wakeup(), Some(SECOND));
    lookups.on_loss(SECOND.times(9));
    assert_eq!(lookups.next_wakeup(), Some(SECOND), "it is due already");
}

#[test]
fn while_a_look_up_hangs_no_other_begins() {
    let mut lookups = lookups();
    assert!(lookups.begin(Nanos::ZERO));
    lookups.on_loss(SECOND.times(40));
    assert_eq!(lookups.next_wakeup(), None);
    assert!(!lookups.begin(SECOND.times(100)));
    // The answer may be older than the loss.
    lookups.on_end(SECOND.times(100));
    assert_eq!(lookups.next_wakeup(), Some(SECOND.times(100)));
    assert!(lookups.begin(SECOND.times(100)));
    lookups.on_end(SECOND.times(101));
    assert_eq!(lookups.next_wakeup(), Some(SECOND.times(131)));
}

#[test]
fn an_end_that_belongs_to_no_look_up_does_not_move_the_next_look_up() {
    let mut lookups = lookups();
    assert!(lookups.begin(Nanos::ZERO));
    lookups.on_end(SECOND);
    lookups.on_loss(SECOND.times(2));
    for late in [
        Lookups::on_end as fn(&mut Lookups, Nanos),
        Lookups::on_failure,
    ] {
        late(&mut lookups, SECOND.times(3));
        assert_eq!(lookups.next_wakeup(), Some(SECOND.times(2)));
    }
}

#[test]
fn fixed_addresses_are_not_looked_up() {
    let mut lookups = Lookups::new(&Config::DEFAULT, Nanos::ZERO);
    assert_eq!(lookups.next_wakeup(), None);
    lookups.on_loss(Nanos(1));
    assert!(!lookups.begin(SECOND));
}

#[test]
fn a_name_without_an_address_yet_is_looked_up_again_soon() {
    let mut lookups = lookups();
    let milli = Nanos::from_millis(1);
    let mut now = Nanos::ZERO;
    for pause in [100, 200, 400, 800, 1000, 1000] {
        assert!(lookups.begin(now));
        lookups.on_failure(now);
        assert_eq!(lookups.next_wakeup(), Some(now + milli.times(pause)));
        now += milli.times(pause);
    }
    assert!(lookups.begin(now));
    lookups.on_end(now);
    let later = now + SECOND.times(30);
    assert_eq!(lookups.next_wakeup(), Some(later));
    assert!(lookups.begin(later));
    lookups.on_failure(later);
    let next = later + SECOND.times(30);
    assert_eq!(
        lookups.next_wakeup(),
        Some(next),
        "the channel keeps its addresses"
    );
}
