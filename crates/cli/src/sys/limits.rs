//! Limits of this process and of file systems.

use std::ffi::CString;
use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use super::checked;

/// The soft and the hard limit of a resource; `None` is unlimited.
///
/// # Errors
/// The system does not know the resource.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> io::Result<(Option<u64>, Option<u64>)> {
    // SAFETY: all zero is a valid pair of limits.
    let mut pair: libc::rlimit = unsafe { mem::zeroed() };
    // SAFETY: `pair` is valid for writes.
    checked(unsafe { libc::getrlimit(resource, &raw mut pair) })?;
    let limited = |value: libc::rlim_t| (value != libc::RLIM_INFINITY).then_some(value);
    Ok((limited(pair.rlim_cur), limited(pair.rlim_max)))
}

/// Bytes of the file system at a path, and those of them that are free for this user.
///
/// # Errors
/// There is no such path.
pub(crate) fn space(path: &str) -> io::Result<(u64, u64)> {
    let path = CString::new(path)?;
    // SAFETY: all zero is a valid answer.
    let mut answer: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: `path` ends in zero, and `answer` is valid for writes.
    checked(unsafe { libc::statvfs(path.as_ptr(), &raw mut answer) })?;
    let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(answer.f_frsize);
    Ok((bytes(answer.f_blocks), bytes(answer.f_bavail)))
}

/// True if this user's sockets may have larger buffers than the system's limit.
pub(crate) fn can_force_buffers() -> bool {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else {
        return false;
    };
    let bytes: libc::c_int = 1 << 16;
    let Ok(len) = libc::socklen_t::try_from(mem::size_of_val(&bytes)) else {
        return false;
    };
    let (fd, value) = (socket.as_raw_fd(), (&raw const bytes).cast());
    // SAFETY: `value` points to an integer on this stack, and `len` is its size.
    let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value, len) };
    set == 0
}
