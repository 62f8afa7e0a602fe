//! The timeout of a call.

use super::*;

const FIRST: Nanos = Nanos::from_millis(250);

fn operation(kind: Kind) -> Operation {
    Operation::new(kind, b"key", Token(1), Nanos::MAX, 0).unwrap()
}

#[test]
fn a_write_waits_longer_each_time_for_the_same_replica() {
    let mut put = operation(Kind::Change(Change::Put(Vec::new())));
    for doublings in 0..20_u32 {
        let time = FIRST.times(1 << doublings.min(MOST_DOUBLINGS));
        assert_eq!(put.attempt(0, FIRST), time);
        assert_eq!(put.attempt(1, FIRST), FIRST);
        put.on_silence();
    }
}

#[test]
fn the_wait_for_a_replica_outlasts_the_silence_of_another() {
    let mut put = operation(Kind::Change(Change::Put(Vec::new())));
    for (lane, count) in [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3)] {
        put.lane = lane;
        put.on_silence();
        assert_eq!(put.attempt(lane, FIRST), FIRST.times(1 << count));
    }
    assert_eq!(put.attempt(1, FIRST), FIRST.times(4));
    assert_eq!(put.attempt(2, FIRST), FIRST);
}

#[test]
fn a_read_is_repeated_after_the_same_time_each_time() {
    let mut get = operation(Kind::Get);
    for _ in 0..3 {
        get.on_silence();
        assert_eq!(get.attempt(0, FIRST), FIRST);
    }
}
