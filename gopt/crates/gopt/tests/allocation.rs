//! A batch allocates nothing, however long it is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use gopt::Batch;

struct Counting;

thread_local! {
    /// Counts this thread only, because the test harness has other threads.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

async fn read(table: &[u64], at: usize) -> u64 {
    let mut sum = 0;
    for step in 0..at % 7 {
        sum += *gopt::load(&table[(at + step) % table.len()]).await;
    }
    sum
}

/// Miri takes about a second for ten thousand switches.
const ITEMS: usize = if cfg!(miri) { 100 } else { 5000 };

#[test]
fn a_batch_allocates_nothing() {
    let table: Vec<u64> = (0..1000).collect();
    let mut out = vec![0; ITEMS];
    let batch = Batch::<64>::with_width(24).unwrap();
    let before = ALLOCATIONS.get();
    batch.map(0..ITEMS, &mut out, |at| read(&table, at));
    batch.for_each(
        0..ITEMS,
        |at| read(&table, at),
        |at, value| assert_eq!(out[at], value),
    );
    let mut at = 0;
    batch.in_order(
        0..ITEMS,
        |at| read(&table, at),
        |value| {
            assert_eq!(out[at], value);
            at += 1;
        },
    );
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(at, ITEMS);
    // This shows that the counter counts.
    drop(Box::new(1));
    assert!(ALLOCATIONS.get() > before);
}
