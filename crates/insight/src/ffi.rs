//! Memory that this process writes while other processes of the same user read it: a mapped memory
//! file of fixed size, which consists of atomic words.
//!
//! Invariants: the mapping lives as long as the [`SharedWords`] and is accessed only through
//! atomics, so another process that writes into the file can only change values. The file is sealed
//! before it is mapped: no process can shrink it, so no access can fail.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use libc::c_int;

/// A memory file and its words.
#[derive(Debug)]
pub(crate) struct SharedWords {
    start: NonNull<AtomicU64>,
    len: usize,
    /// Stays open, because other processes find the file by its descriptor.
    file: File,
}

// SAFETY: the words are atomics, and the pointer leads to nothing else.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates a memory file with this name and `len` zero words. Words that are never written take
    /// no memory.
    ///
    /// # Errors
    /// The system is out of memory, descriptors or address space, or has no memory files.
    pub(crate) fn new(name: &CStr, len: usize) -> io::Result<Self> {
        assert!(len > 0, "a mapping cannot be empty");
        let bytes = len
            .checked_mul(size_of::<AtomicU64>())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: `name` ends with a zero.
        let fd = check(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
        // SAFETY: the kernel has just made this descriptor for us.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: no pointers are passed.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        // SAFETY: a new mapping of a file that has `bytes` bytes and keeps them.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address 0");
        Ok(Self { start, len, file })
    }

    /// All words.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `len` words, is aligned to pages, lives as long as `self`, and
        // every value of a word is valid.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The memory file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and nothing borrows from it any more.
        unsafe {
            libc::munmap(
                self.start.as_ptr().cast(),
                self.len * size_of::<AtomicU64>(),
            )
        };
    }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
