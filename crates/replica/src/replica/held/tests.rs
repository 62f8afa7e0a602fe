//! Which parcels wait, and until when.

use super::*;

const END: Nanos = Nanos(100);

fn due(held: &mut Held<u32>, first: Option<u64>, now: u64) -> Vec<u32> {
    let mut out = Vec::new();
    held.take_due(first, Nanos(now), &mut out);
    out
}

#[test]
fn a_parcel_waits_for_its_write_and_not_for_later_ones() {
    let mut held = Held::new();
    held.add(1, 7, END).unwrap();
    held.add(2, 8, END).unwrap();
    assert_eq!(due(&mut held, Some(6), 0), []);
    assert_eq!(due(&mut held, Some(7), 0), []);
    assert_eq!(due(&mut held, Some(8), 0), [1]);
    assert_eq!(due(&mut held, None, 0), [2]);
    assert!(held.is_empty());
}

#[test]
fn a_parcel_waits_until_its_end_at_most() {
    let mut held = Held::new();
    held.add(1, 7, END).unwrap();
    held.add(2, 7, Nanos(200)).unwrap();
    assert_eq!(due(&mut held, Some(7), 99), []);
    assert_eq!(due(&mut held, Some(7), 100), [1]);
    assert_eq!(held.take_last(), Some(2));
}

#[test]
fn the_parcels_of_a_member_leave_credits_for_its_heartbeats() {
    let mut held = Held::new();
    let refused = (0..10).filter(|it| held.add(*it, 1, END).is_err());
    assert_eq!(refused.count(), 6);
}
