//! Memory that another process can be given by its descriptor (`memfd_create(2)`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::c_int;

/// Zeroed memory of `bytes` bytes, which can no longer shrink or grow.
pub(crate) fn sealed(bytes: u64) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends with a zero byte.
    let fd = super::own(unsafe { libc::memfd_create(c"dunlin-xdp".as_ptr(), flags) })?;
    let file = File::from(fd);
    file.set_len(bytes)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: takes numbers.
    super::check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file.into())
}

/// Checks that the memory has this many bytes and keeps them.
///
/// # Errors
/// `InvalidInput` if its length differs or it may shrink; the kernel's if it is no memory file.
pub(crate) fn check_sealed(memory: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    // SAFETY: takes numbers.
    let seals: c_int = unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_GET_SEALS) };
    super::check(seals)?;
    let len = File::from(memory.as_fd().try_clone_to_owned()?)
        .metadata()?
        .len();
    match seals & libc::F_SEAL_SHRINK != 0 && len == bytes {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the memory for frames has another length than the request says, or may shrink",
        )),
    }
}

#[cfg(test)]
mod tests;
