//! A global allocator that counts allocations of the current thread while counting is on.
//!
//! Threads of the test harness allocate at any time, so the count belongs to the thread. The first
//! counted allocation leaves its backtrace, which a failed proof prints. Shared with the tests of
//! the transports.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};

/// To be installed with `#[global_allocator]`.
pub struct Counting;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static FIRST: RefCell<Option<Backtrace>> = const { RefCell::new(None) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches thread-local
// cells, and the backtrace is taken while counting is off, so this does not call itself for ever.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

fn count() {
    if !ARMED.get() {
        return;
    }
    if COUNT.get() == 0 {
        ARMED.set(false);
        FIRST.set(Some(Backtrace::force_capture()));
        ARMED.set(true);
    }
    COUNT.set(COUNT.get() + 1);
}

/// How often `work` allocates.
pub fn allocations_in(work: impl FnOnce()) -> u64 {
    COUNT.set(0);
    ARMED.set(true);
    work();
    ARMED.set(false);
    COUNT.get()
}

/// Where the first allocation of the last count came from.
pub fn first_allocation() -> String {
    FIRST
        .take()
        .map_or_else(String::new, |trace| trace.to_string())
}
