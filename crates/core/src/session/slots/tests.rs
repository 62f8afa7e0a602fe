//! Ranges of slots alone.

use super::*;

#[test]
fn a_freed_range_is_given_to_a_session_with_the_same_window() {
    let mut ranges = SlotRanges::default();
    let (first, second) = (ranges.take(8), ranges.take(4));
    assert_eq!((first, second), (SlotIdx(0), SlotIdx(8)));
    assert_eq!(ranges.end(), SlotIdx(12));
    ranges.put_back(SlotRange::new(first, 8));
    assert_eq!(ranges.take(4), SlotIdx(12), "a longer range is not split");
    assert_eq!(ranges.take(8), first);
}

#[test]
fn a_slot_in_no_range_is_noticed() {
    let mut ranges = SlotRanges::default();
    let range = SlotRange::new(ranges.take(8), 8);
    assert!(ranges.adds_up(8) && !ranges.adds_up(7));
    ranges.put_back(range);
    assert!(ranges.adds_up(0) && !ranges.adds_up(8));
    let places: Vec<SlotIdx> = range.iter().collect();
    assert_eq!((places.len(), places[7]), (8, SlotIdx(7)));
}
