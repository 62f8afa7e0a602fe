//! Mappings of shared memory: made here, for peers or only for this process, or received from a
//! peer and checked.
//!
//! Invariants: a mapping has the length that it states, starts at a page, and cannot lose pages
//! while it lives: the size of its file is sealed, and the file lies on a tmpfs. It holds only
//! values that may be shared (atomics and `UnsafeCell`s) and that are valid with any bytes.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use super::ffi;
use crate::connect::ConnectError;

/// Memory that this process and others have mapped.
#[derive(Debug)]
pub(super) struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for SharedMemory {}
// SAFETY: a shared reference only gives out the address.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes memory of `len` bytes, all zeros, and a descriptor to give to a peer.
    pub(super) fn create(name: &CStr, len: usize) -> io::Result<(Self, OwnedFd)> {
        let fd = ffi::create_memory(name, len)?;
        let base = ffi::map(&fd, len)?;
        Ok((Self { base, len }, fd))
    }

    /// Makes memory of `len` bytes, all zeros, that only this process can reach: it has no name and
    /// no descriptor, and a child that is forked gets a copy.
    pub(super) fn create_private(len: usize) -> io::Result<Self> {
        let base = ffi::map_private(len)?;
        Ok(Self { base, len })
    }

    /// Maps memory that a peer has sent, if it is sealed and has `len` bytes.
    pub(super) fn open(fd: &OwnedFd, len: usize) -> Result<Self, ConnectError> {
        if !ffi::is_sealed_memory(fd, len) {
            return Err(ConnectError::Descriptor);
        }
        let base = ffi::map(fd, len)?;
        Ok(Self { base, len })
    }

    /// The value at `offset`. All of its bytes must lie inside the mapping.
    pub(super) fn at<T>(&self, offset: usize) -> NonNull<T> {
        let end = offset.checked_add(size_of::<T>());
        assert!(
            end.is_some_and(|end| end <= self.len),
            "the layout fits the memory"
        );
        assert!(
            offset.is_multiple_of(align_of::<T>()),
            "the layout is aligned"
        );
        // SAFETY: the offset is inside the mapping.
        unsafe { self.base.add(offset).cast() }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and pointers into it do not outlive us.
        unsafe { ffi::unmap(self.base, self.len) };
    }
}
