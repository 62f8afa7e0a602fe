//! Memory that several processes map: an anonymous file that the parent of an experiment makes. Its
//! children open it by the name that the system gives to the parent's descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::{self, NonNull};

use super::checked;

/// Makes `len` bytes of zeroed shared memory; also returns the name by which other processes of the
/// same user can open it while the file stays open here.
///
/// # Errors
/// The system has no memory to give.
pub(crate) fn create_shared(len: usize) -> io::Result<(File, String)> {
    // SAFETY: the name is a C string.
    let fd = checked(unsafe { libc::memfd_create(c"dunlin".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor was just made and has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(u64::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?)?;
    Ok((file, format!("/proc/{}/fd/{fd}", std::process::id())))
}

/// A mapping of shared memory, page-aligned, unmapped when it is dropped.
#[derive(Debug)]
pub(crate) struct Shared {
    base: NonNull<u8>,
    len: usize,
}

impl Shared {
    /// Maps the first `len` bytes of the memory called `name`, with every page present.
    ///
    /// # Errors
    /// There is no such memory, it is shorter, or the system refuses.
    pub(crate) fn map(name: &str, len: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(name)?;
        if file.metadata()?.len() < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base =
            unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// The first byte. The mapping lives as long as `self`.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes in the mapping.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: exactly this range was mapped by `map`, and nothing borrows it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
