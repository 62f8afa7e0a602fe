//! One of the four rings, from the side of the program.
//!
//! Invariant: only we move one of the two positions, and only the kernel moves the other. The
//! entries between them belong to one side at a time.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::map;

/// A ring of entries `T`.
#[derive(Debug)]
pub(super) struct Ring<T> {
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    count: u32,
    /// Our position, and the kernel's when we last looked.
    ours: u32,
    theirs: u32,
    /// The mapping, as `munmap` needs it.
    base: *mut u8,
    len: usize,
}

impl<T: Copy> Ring<T> {
    pub(super) fn map(
        fd: &OwnedFd,
        offset: i64,
        at: &libc::xdp_ring_offset,
        count: u32,
    ) -> io::Result<Self> {
        let place = |offset: u64| usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidData);
        let entries = place(at.desc)?;
        let len = entries + count as usize * size_of::<T>();
        let base = map(fd.as_raw_fd(), len, offset)?;
        // SAFETY: the kernel reports that the parts of the ring lie at these offsets of the
        // mapping, aligned for their types.
        let part = |offset: usize| unsafe { base.add(offset) };
        Ok(Self {
            producer: part(place(at.producer)?).cast(),
            consumer: part(place(at.consumer)?).cast(),
            flags: part(place(at.flags)?).cast(),
            entries: part(entries).cast(),
            count,
            ours: 0,
            theirs: 0,
            base,
            len,
        })
    }

    /// Entries that can be read.
    #[inline]
    pub(super) fn available(&mut self) -> u32 {
        if self.theirs == self.ours {
            // SAFETY: within the mapping, which lives as long as `self`.
            self.theirs = unsafe { &*self.producer }.load(Ordering::Acquire);
        }
        self.theirs.wrapping_sub(self.ours)
    }

    /// Reads the next entry, which [`Self::available`] has shown.
    #[inline]
    pub(super) fn pop(&mut self) -> T {
        // SAFETY: as in `push`; the kernel has written the entry and waits for `release`.
        let entry = unsafe { self.entries.add(self.index()).read() };
        self.ours = self.ours.wrapping_add(1);
        entry
    }

    /// Gives entries back without reading them.
    #[inline]
    pub(super) fn skip(&mut self, count: u32) {
        self.ours = self.ours.wrapping_add(count);
        self.release();
    }

    /// Gives the places of read entries back.
    #[inline]
    pub(super) fn release(&self) {
        // SAFETY: within the mapping.
        unsafe { &*self.consumer }.store(self.ours, Ordering::Release);
    }

    /// Writes an entry. The caller never has more entries in flight than the ring holds.
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        // SAFETY: the index is below the number of entries, and the kernel has read this one.
        unsafe { self.entries.add(self.index()).write(entry) };
        self.ours = self.ours.wrapping_add(1);
    }

    /// Shows written entries to the kernel.
    #[inline]
    pub(super) fn publish(&self) {
        // SAFETY: within the mapping.
        unsafe { &*self.producer }.store(self.ours, Ordering::Release);
    }

    /// Whether the kernel has read all written entries.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // SAFETY: within the mapping.
        unsafe { &*self.consumer }.load(Ordering::Acquire) == self.ours
    }

    /// Whether the kernel waits for a system call.
    #[inline]
    pub(super) fn wants_wakeup(&self) -> bool {
        fence(Ordering::SeqCst);
        // SAFETY: within the mapping.
        unsafe { &*self.flags }.load(Ordering::Relaxed) & 1 != 0
    }

    #[inline]
    fn index(&self) -> usize {
        (self.ours & (self.count - 1)) as usize
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and no pointer into it is used any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
