//! Memory from `mmap(2)`: the region of frames, and the rings that the kernel shares with us.
//!
//! Invariant: a mapping is readable and writable from its base for its whole length until it is
//! dropped, and no reference to its bytes is made here, because the kernel may write to them at any
//! time. Called by `umem`, `socket` and the tests of `ring`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Memory that is unmapped when it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to no thread, and the value only gives out raw pointers to it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory of this process alone.
    ///
    /// # Errors
    /// The kernel's, for example `OutOfMemory`.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Memory of a descriptor, which the kernel shares with us.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn shared(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(len, flags, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, flags: i32, fd: i32, offset: i64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).expect("a mapping that succeeded is not at address 0");
        Ok(Self { base, len })
    }

    /// Asks for large pages, so that the processor finds more of them without a walk through its
    /// tables. Nothing depends on the answer.
    pub(crate) fn prefer_large_pages(&self) {
        if cfg!(miri) {
            return;
        }
        let base = self.base.as_ptr().cast();
        // SAFETY: the mapping is ours, and the advice changes none of its bytes.
        unsafe { libc::madvise(base, self.len, libc::MADV_HUGEPAGE) };
    }

    /// Its first byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The place of a `T` at byte `offset`; `None` if it does not lie inside, or is not aligned.
    pub(crate) fn place<T>(&self, offset: usize, count: usize) -> Option<NonNull<T>> {
        let bytes = count.checked_mul(size_of::<T>())?;
        let is_inside = offset.checked_add(bytes)? <= self.len;
        if !is_inside || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: within the mapping, as was just checked.
        Some(unsafe { self.base.add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and its owner, which gives out all pointers, ends.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
