//! Tests of `doorbell`: bits that are set and taken, sleeping, and bits that do not exist.

use super::*;

fn taken(bell: &Doorbell) -> Vec<u32> {
    let mut bits = Vec::new();
    bell.take(|bit| bits.push(bit));
    bits
}

#[test]
fn every_bit_is_taken_once() {
    let bell = Doorbell::default();
    for bit in (0..MAX_BITS).rev().step_by(7) {
        assert!(!bell.ring(bit), "the receiver is awake");
    }
    let mut expected: Vec<u32> = (0..MAX_BITS).rev().step_by(7).collect();
    expected.reverse();
    assert_eq!(taken(&bell), expected);
    assert_eq!(taken(&bell), []);
}

#[test]
fn only_a_sleeper_is_woken() {
    let bell = Doorbell::default();
    assert!(bell.fall_asleep());
    assert!(bell.ring(5));
    bell.wake_up();
    assert!(!bell.ring(6));
    assert!(!bell.fall_asleep(), "two bits are set");
    assert_eq!(taken(&bell), [5, 6]);
    assert!(bell.fall_asleep());
}

#[test]
fn a_bit_that_does_not_exist_rings_nothing() {
    let bell = Doorbell::default();
    assert!(!bell.ring(MAX_BITS));
    assert!(!bell.ring(u32::MAX));
    assert!(!bell.has_rung());
}
