//! Large tables on huge pages, so that look-ups spend their time on cache misses and not on page
//! walks.
//!
//! Invariant: a [`Huge`] owns one anonymous mapping that holds exactly `len` values, zeroed by the
//! kernel; `FromZeros` guarantees that zero bytes are a value of `T`.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use zerocopy::FromZeros;

/// Size and alignment of the huge pages that a mapping asks for.
const PAGE_BYTES: usize = 2 << 20;

/// A boxed slice on huge pages where the kernel grants them, and on ordinary ones elsewhere.
#[derive(Debug)]
pub struct Huge<T> {
    values: NonNull<T>,
    len: usize,
    mapping: NonNull<libc::c_void>,
    mapped_bytes: usize,
}

// SAFETY: a `Huge` owns its values as a `Box<[T]>` does.
unsafe impl<T: Send> Send for Huge<T> {}
// SAFETY: as above; shared access gives `&[T]` only.
unsafe impl<T: Sync> Sync for Huge<T> {}

impl<T: FromZeros + Copy> Huge<T> {
    /// `len` values of zero bytes.
    ///
    /// # Errors
    /// `OutOfMemory` if the size overflows, otherwise the error of `mmap`.
    pub fn zeroed(len: usize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= PAGE_BYTES) };
        let mapped_bytes = size_of::<T>()
            .checked_mul(len)
            .and_then(|bytes| bytes.checked_add(PAGE_BYTES))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches
        // nothing that exists.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping).ok_or(io::ErrorKind::OutOfMemory)?;
        // The mapping is one page longer than needed, so an aligned start lies in it.
        let skip = mapping.as_ptr().align_offset(PAGE_BYTES);
        // SAFETY: `skip` is less than a page, and the mapping is longer than that.
        let values = unsafe { mapping.byte_add(skip) }.cast();
        // If the kernel refuses, look-ups are slower, which is not an error. SAFETY: the range lies
        // in the mapping made above.
        let _ = unsafe { libc::madvise(mapping.as_ptr(), mapped_bytes, libc::MADV_HUGEPAGE) };
        Ok(Self {
            values,
            len,
            mapping,
            mapped_bytes,
        })
    }
}

impl<T> Deref for Huge<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised values lie there, aligned, and `self` owns them.
        unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Huge<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T> Drop for Huge<T> {
    fn drop(&mut self) {
        // The values are `Copy`, so they need no drop.
        // SAFETY: this `Huge` owns the mapping, and nothing borrows from it any more.
        let _ = unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped_bytes) };
    }
}
