//! A few killed leaders.

use super::*;

#[test]
fn a_killed_leader_is_replaced_within_four_time_outs() {
    for seed in 1..20 {
        let took = kill(seed).unwrap();
        assert!(took > Nanos::from_millis(10), "{took:?}");
        assert!(took < Options::DEFAULT.election.times(4), "{took:?}");
    }
}
