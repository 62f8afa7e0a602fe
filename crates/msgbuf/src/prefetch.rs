//! Prefetching of referenced memory, as safe functions for crates that forbid unsafe code (HERD
//! §4.1.1, G-Opt §3). A prefetch reads nothing and cannot fault, so no index here has to be in
//! bounds. On processors other than x86-64 these functions do nothing.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Starts to load the first cache line of `value`.
///
/// ```
/// let session = [0_u64; 32];
/// dunlin_msgbuf::prefetch_read(&session);
/// ```
#[inline(always)]
pub fn prefetch_read<T: ?Sized>(value: &T) {
    fetch(std::ptr::from_ref(value).cast());
}

/// Starts to load cache line `n` of `value`; its first line is line 0.
///
/// ```
/// let session = [0_u64; 32];
/// dunlin_msgbuf::prefetch_line(&session, 1);
/// ```
#[inline(always)]
pub fn prefetch_line<T: ?Sized>(value: &T, n: usize) {
    fetch(
        std::ptr::from_ref(value)
            .cast::<u8>()
            .wrapping_add(n.wrapping_mul(LINE)),
    );
}

/// Starts to load the first `n` cache lines of `value`.
///
/// ```
/// let session = [0_u64; 32];
/// dunlin_msgbuf::prefetch_lines(&session, 4);
/// ```
#[inline(always)]
pub fn prefetch_lines<T: ?Sized>(value: &T, n: usize) {
    for line in 0..n {
        prefetch_line(value, line);
    }
}

/// Starts to load the first cache line of `slice[index]`; an index beyond the end is harmless.
///
/// ```
/// let slots = [0_u64; 32];
/// dunlin_msgbuf::prefetch_slice(&slots, 17);
/// ```
#[inline(always)]
pub fn prefetch_slice<T>(slice: &[T], index: usize) {
    fetch(slice.as_ptr().wrapping_add(index).cast());
}

#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn fetch(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is a hint; it accesses no memory as far as the program can tell and never
    // faults, whatever the address. SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn fetch(_address: *const u8) {}
