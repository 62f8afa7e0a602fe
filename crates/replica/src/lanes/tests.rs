//! Lanes whose address changes.

use super::*;

const PAUSES: Pauses = Pauses {
    least: Nanos(1),
    most: Nanos(100),
};

/// Makes lanes: the only one leads to `a`, and has a session.
fn open() -> Lanes {
    let mut lanes = Lanes::new(["a".to_owned()], PAUSES);
    assert_eq!(lanes.wish(Nanos::ZERO).as_deref(), Some("a"));
    assert!(lanes.on_connecting("a", Session::NONE));
    assert!(lanes.on_connected(Session::NONE));
    assert_eq!(lanes.open(0), Some(Session::NONE));
    lanes
}

#[test]
fn a_lane_that_gets_another_address_gives_up_its_session() {
    let mut lanes = open();
    assert_eq!(lanes.lead(0, "a"), None, "it leads there already");
    assert_eq!(lanes.lead(0, "b"), Some(Session::NONE));
    assert_eq!(lanes.open(0), None);
    assert_eq!(lanes.wish(Nanos::ZERO).as_deref(), Some("b"));
    // No lane takes a late session to the old address.
    assert!(!lanes.on_connecting("a", Session::NONE));
    assert!(lanes.on_connecting("b", Session::NONE));
}

#[test]
fn a_stopped_lane_keeps_its_session_until_another_owner_gets_the_lane() {
    let mut lanes = open();
    lanes.stop(0);
    assert_eq!(lanes.open(0), Some(Session::NONE));
    assert_eq!(lanes.clear(0), Some(Session::NONE));
    assert_eq!((lanes.open(0), lanes.wish(Nanos(1000))), (None, None));
    let mut lanes = open();
    lanes.stop(0);
    assert_eq!(lanes.lead(0, "b"), Some(Session::NONE));
    assert_eq!(lanes.wish(Nanos::ZERO).as_deref(), Some("b"));
}
