//! Reuse of entries, and of memory.

use super::*;
use crate::handle::CallIdx;

#[test]
fn what_was_freed_last_is_used_first_and_keeps_its_content() {
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
