//! The time of a call.

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
    put.lane = 1;
    put.on_silence();
    assert_eq!(put.attempt(0, FIRST), FIRST);
    assert_eq!(put.attempt(1, FIRST), FIRST.times(2));
}

#[test]
fn a_read_is_repeated_as_soon_each_time() {
    let mut get = operation(Kind::Get);
    for _ in 0..3 {
        get.on_silence();
        assert_eq!(get.attempt(0, FIRST), FIRST);
    }
}
