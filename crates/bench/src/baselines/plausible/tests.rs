//! The limits of design §14, on both sides.

use super::*;

#[test]
fn the_limits_themselves_are_plausible_and_what_lies_beyond_is_not() {
    assert!(shm_rtt(320.0, 1) && !shm_rtt(320.1, 1));
    assert!(shm_rtt(320.1, 2) && !shm_rtt(381.0, 2));
    assert!(ring(40e6) && !ring(39.9e6));
    assert!(exchange(10e6, 1, 1) && !exchange(9.9e6, 1, 1));
    assert!(exchange(5e6, 1, 2) && exchange(2.5e6, 4, 1) && !exchange(2e6, 2, 2));
    assert!(copy(9.0) && !copy(8.9));
}

#[test]
fn nan_is_not_plausible() {
    assert!(!shm_rtt(f64::NAN, 1) && !ring(f64::NAN) && !copy(f64::NAN));
}
