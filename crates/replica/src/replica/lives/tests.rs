//! Members that start again, and members with two processes.

use super::*;

const LATE: Nanos = Nanos(100);

#[test]
fn parcels_of_a_members_new_life_count_and_late_ones_of_its_old_life_do_not() {
    let mut lives = Lives::default();
    for (life, now, speaks) in [
        (1, 0, true),
        (1, 5, true),
        (2, 10, true),
        (1, 110, false),
        (2, 120, true),
        (3, 130, true),
        (2, 140, false),
        (3, 150, true),
    ] {
        assert_eq!(
            lives.on_parcel(life, Nanos(now), LATE),
            speaks,
            "{life} at {now}"
        );
    }
    assert!(!lives.are_two());
}

#[test]
fn two_processes_with_one_number_are_both_refused() {
    let mut lives = Lives::default();
    assert!(lives.on_parcel(1, Nanos(0), LATE));
    assert!(lives.on_parcel(2, Nanos(10), LATE));
    assert!(!lives.on_parcel(1, Nanos(111), LATE));
    assert!(lives.are_two());
    assert!(!lives.on_parcel(2, Nanos(112), LATE));
}

#[test]
fn a_member_that_starts_often_takes_no_memory() {
    let mut lives = Lives::default();
    assert!((1..1000).all(|life| lives.on_parcel(life, Nanos(life), LATE)));
    assert_eq!(lives.over.len(), MOST);
}
