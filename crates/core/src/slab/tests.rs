//! Reuse of entries, and of memory.

use super::*;
use crate::handle::CallIdx;

#[test]
fn the_entry_that_was_freed_last_is_reused_first_and_keeps_its_content() {
    let mut slab = Slab::<CallIdx, Vec<u8>>::default();
    let (first, second) = (slab.take(), slab.take());
    slab.at_mut(first).push(1);
    slab.at_mut(second).push(2);
    slab.release(first);
    slab.release(second);
    assert_eq!((slab.live(), slab.len()), (0, 2));
    assert_eq!(slab.take(), second);
    assert_eq!(slab.at(second), &[2]);
    assert_eq!(slab.live(), 1);
}

#[test]
fn freeing_never_allocates() {
    let mut slab = Slab::<CallIdx, u64>::default();
    for _ in 0..100 {
        slab.take();
    }
    let room = slab.free.others.capacity();
    (0..100).for_each(|index| slab.release(CallIdx(index)));
    assert_eq!(slab.free.others.capacity(), room);
}

#[test]
fn a_shorter_table_has_only_the_entries_that_are_left() {
    let mut slab = Slab::<CallIdx, u64>::default();
    for _ in 0..20_000 {
        slab.take();
    }
    (10..20_000).for_each(|index| slab.release(CallIdx(index)));
    slab.shorten(12);
    assert_eq!((slab.live(), slab.len()), (10, 12));
    assert!(slab.free.others.capacity() <= slab.entries.capacity());
    let mut taken = [slab.take(), slab.take(), slab.take()];
    taken.sort_unstable();
    assert_eq!(taken, [CallIdx(10), CallIdx(11), CallIdx(12)]);
}
