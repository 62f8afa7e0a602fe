//! The list of slots that keep an entry: it is bounded, and sessions that end leave it.

use super::*;

#[test]
fn a_limited_number_of_slots_keep_an_entry_until_sessions_end() {
    let mut kept = Kept::default();
    kept.make_room(1000);
    let most = u32::try_from(MOST).expect("few");
    assert!((0..most).all(|at| kept.add(SlotIdx(at))));
    assert!(!kept.add(SlotIdx(most)));
    kept.forget(SlotRange::new(SlotIdx(8), 8));
    assert!(kept.iter().all(|at| !(8..16).contains(&at.0)));
    assert_eq!(kept.iter().count(), MOST - 8);
    assert!(kept.add(SlotIdx(8)));
}
