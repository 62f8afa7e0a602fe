//! A global allocator that counts allocations of the current thread while counting is on.
//!
//! Threads of the test harness allocate at any time, so each thread has its own count, and a second
//! count covers only the threads that a test watches. The first allocation in a thread's own count
//! leaves a backtrace, which a failed proof prints. Also used by the tests of the transports.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The allocator, which a test installs with `#[global_allocator]`.
pub struct Counting;

/// Whether allocations of watched threads are counted now.
static ALL_ARMED: AtomicBool = AtomicBool::new(false);
static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static FIRST: RefCell<Option<Backtrace>> = const { RefCell::new(None) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches thread-local
// cells, and the backtrace is taken while counting is off, so this never calls itself.
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
    if WATCHED.get() && ALL_ARMED.load(Ordering::Relaxed) {
        ALL.fetch_add(1, Ordering::Relaxed);
    }
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

/// Makes [`allocations_of_watched_threads_in`] count this thread from now on.
pub fn watch_this_thread() {
    WATCHED.set(true);
}

/// How often watched threads allocate while `work` runs.
pub fn allocations_of_watched_threads_in(work: impl FnOnce()) -> u64 {
    ALL.store(0, Ordering::Relaxed);
    ALL_ARMED.store(true, Ordering::SeqCst);
    work();
    ALL_ARMED.store(false, Ordering::SeqCst);
    ALL.load(Ordering::Relaxed)
}

/// How often `work` allocates.
pub fn allocations_in(work: impl FnOnce()) -> u64 {
    COUNT.set(0);
    ARMED.set(true);
    work();
    ARMED.set(false);
    COUNT.get()
}

/// The backtrace of the first allocation in this thread's last [`allocations_in`].
pub fn first_allocation() -> String {
    FIRST
        .take()
        .map_or_else(String::new, |trace| trace.to_string())
}
