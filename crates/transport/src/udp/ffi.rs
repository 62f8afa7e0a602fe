//! The system calls of the `udp` transport: `libc` in, slices and error numbers out.
//!
//! Owns every call to the kernel under `udp`. Nothing here blocks: sockets are made non-blocking.
//! Errors of the data path are plain error numbers, because callers decide by the number. Called by
//! `socket`, `tx` and `rx`. See `udp(7)`, `sendmmsg(2)`, `recvmmsg(2)`.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, mmsghdr, socklen_t};

use super::addr::RawAddr;

/// An error of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Errno(pub(super) c_int);

impl Errno {
    fn last() -> Self {
        Self(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

/// A non-blocking datagram socket that is closed on `exec`.
pub(super) fn datagram_socket(family: c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket(2) takes numbers only.
    let fd = unsafe { libc::socket(family, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, open, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// bind(2).
pub(super) fn bind(fd: BorrowedFd<'_>, addr: SocketAddr) -> io::Result<()> {
    let raw = RawAddr::new(addr);
    // SAFETY: `raw` holds `len` readable bytes of a sockaddr.
    check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len()) })
}

/// getsockname(2).
pub(super) fn local_addr(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    let mut raw = RawAddr::room();
    let mut len = raw.len();
    // SAFETY: `raw` has room for `len` bytes, and the kernel writes no more than that.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), raw.as_mut_ptr(), &raw mut len) })?;
    raw.decode()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// connect(2), which gives a datagram socket a single peer.
pub(super) fn tie(fd: BorrowedFd<'_>, peer: &RawAddr) -> io::Result<()> {
    // SAFETY: `peer` holds `len` readable bytes of a sockaddr.
    check(unsafe { libc::connect(fd.as_raw_fd(), peer.as_ptr(), peer.len()) })
}

/// Undoes [`tie`]. A socket that was bound to a port keeps the port.
pub(super) fn untie(fd: BorrowedFd<'_>) {
    let none = libc::sockaddr {
        sa_family: 0,
        sa_data: [0; 14],
    };
    const { assert!(libc::AF_UNSPEC == 0) };
    let len = socklen::<libc::sockaddr>();
    // SAFETY: `none` is a live sockaddr of that length. This fails for no datagram socket.
    unsafe { libc::connect(fd.as_raw_fd(), &raw const none, len) };
}

/// setsockopt(2) of an `int`.
pub(super) fn set_option(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    let len = socklen::<c_int>();
    // SAFETY: the option value is a live `int`, and `len` is its size.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len) })
}

/// getsockopt(2) of an `int`.
pub(super) fn option(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = socklen::<c_int>();
    // SAFETY: the kernel writes at most `len` bytes into the live `int`.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    Ok(value)
}

/// Datagrams that the kernel dropped because the receive buffer was full; 0 if it does not report
/// them.
pub(super) fn receive_drops(fd: BorrowedFd<'_>) -> u64 {
    /// Place of the drop count in the answer, from `linux/sock_diag.h`.
    const SK_MEMINFO_DROPS: usize = 8;
    let mut info = [0_u32; 16];
    let mut len = socklen::<[u32; 16]>();
    // SAFETY: the kernel writes at most `len` bytes into the live array.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if rc == 0 {
        u64::from(info[SK_MEMINFO_DROPS])
    } else {
        0
    }
}

/// True if a datagram or an error waits in the socket.
pub(super) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one live pollfd, and a timeout of 0.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// recv(2) into `room`. Returns the length of the datagram, even if `room` is too short.
#[inline]
pub(super) fn recv(fd: BorrowedFd<'_>, room: &mut [u8]) -> Result<usize, Errno> {
    let at = room.as_mut_ptr().cast::<c_void>();
    // SAFETY: the kernel writes at most `room.len()` bytes, and `room` is ours alone.
    let len = unsafe { libc::recv(fd.as_raw_fd(), at, room.len(), libc::MSG_TRUNC) };
    usize::try_from(len).map_err(|_| Errno::last())
}

/// recvfrom(2): [`recv`], and the sender's address.
pub(super) fn recv_from(
    fd: BorrowedFd<'_>,
    room: &mut [u8],
    source: &mut RawAddr,
) -> Result<usize, Errno> {
    let at = room.as_mut_ptr().cast::<c_void>();
    *source = RawAddr::room();
    let (from, mut len) = (source.as_mut_ptr(), source.len());
    // SAFETY: the kernel writes at most `room.len()` bytes into `room`, which only we use, and at
    // most `len` bytes of an address.
    let got = unsafe {
        let flags = libc::MSG_TRUNC;
        libc::recvfrom(fd.as_raw_fd(), at, room.len(), flags, from, &raw mut len)
    };
    usize::try_from(got).map_err(|_| Errno::last())
}

/// recvmmsg(2). Returns the number of filled `headers`.
///
/// # Safety
/// Every pointer in `headers` names memory that the kernel may overwrite during the call.
#[inline]
pub(super) unsafe fn recv_many(
    fd: BorrowedFd<'_>,
    headers: &mut [mmsghdr],
) -> Result<usize, Errno> {
    let (at, len) = (headers.as_mut_ptr(), count(headers));
    // SAFETY: the headers are live, and the caller vouches for what they point to.
    let got = unsafe { libc::recvmmsg(fd.as_raw_fd(), at, len, 0, std::ptr::null_mut()) };
    usize::try_from(got).map_err(|_| Errno::last())
}

/// sendto(2) of one datagram.
#[inline]
pub(super) fn send_to(fd: BorrowedFd<'_>, bytes: &[u8], to: &RawAddr) -> Result<(), Errno> {
    let at = bytes.as_ptr().cast::<c_void>();
    // SAFETY: `bytes` and `to` are live and only read.
    let sent = unsafe { libc::sendto(fd.as_raw_fd(), at, bytes.len(), 0, to.as_ptr(), to.len()) };
    if sent < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// sendmmsg(2). Returns the number of messages sent, counted from the first; at least one.
///
/// # Safety
/// Every pointer in `headers` names memory that stays readable during the call.
#[inline]
pub(super) unsafe fn send_many(
    fd: BorrowedFd<'_>,
    headers: &mut [mmsghdr],
) -> Result<usize, Errno> {
    let (at, len) = (headers.as_mut_ptr(), count(headers));
    // SAFETY: the headers are live, and the caller vouches for what they point to.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), at, len, 0) };
    usize::try_from(sent).map_err(|_| Errno::last())
}

/// A header that names nothing yet.
pub(super) fn empty_header() -> mmsghdr {
    // SAFETY: null pointers and zero lengths are a valid `mmsghdr`.
    unsafe { MaybeUninit::<mmsghdr>::zeroed().assume_init() }
}

fn count(headers: &[mmsghdr]) -> u32 {
    u32::try_from(headers.len()).expect("bursts have fewer than 2^32 messages")
}

fn socklen<T>() -> socklen_t {
    socklen_t::try_from(size_of::<T>()).expect("socket options are a few bytes")
}

fn check(rc: c_int) -> io::Result<()> {
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
