//! The order of the checks: which share of the laws comes next.

use super::*;

#[test]
fn sweeps_look_at_each_session_and_then_at_the_sums() {
    let mut laws = Laws::default();
    let shares = [(); 4].map(|()| laws.on_sweep(Check::Sweep, 2));
    let of = |session| Some(Share::Session(SessionIdx(session)));
    assert_eq!(shares, [of(0), of(1), Some(Share::Sums), of(0)]);
}

#[test]
fn the_option_decides_whether_a_sweep_checks() {
    let mut laws = Laws::default();
    assert_eq!(laws.on_sweep(Check::Never, 5), None);
    assert_eq!(laws.on_sweep(Check::Event, 5), Some(Share::All));
}

#[test]
fn everything_is_checked_after_every_thousand_frames() {
    let mut laws = Laws::default();
    let due: Vec<u32> = (1..=2 * EVENTS).filter(|_| laws.on_frame()).collect();
    assert_eq!(due, [EVENTS, 2 * EVENTS]);
}

#[test]
fn a_law_counts_once() {
    let mut laws = Laws::default();
    assert!(laws.on_broken(Law::Credits));
    assert!(!laws.on_broken(Law::Credits));
    assert!(laws.on_broken(Law::Slots));
}
