//! The system calls that the standard library lacks: epoll and eventfd here, sockets in
//! `ffi/socket.rs`, and questions about sockets in `ffi/diagnosis.rs`. All other unsafe code of
//! this crate is in `clock.rs` and `publisher/tap.rs`.
//!
//! Invariant: every descriptor that comes out of here is owned, so it is closed exactly once, and
//! none is inherited by a child program.

pub(crate) mod diagnosis;
pub(crate) mod socket;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::c_int;

/// A set of descriptors to wait for.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
}

/// The state of one descriptor, as [`Epoll::wait`] found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    /// The token with which the descriptor was added.
    pub(crate) token: u64,
    /// The descriptor can be read, is at its end, or has failed.
    pub(crate) readable: bool,
    /// The descriptor can be written, or has failed.
    pub(crate) writable: bool,
}

/// The events to wait for; level-triggered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    /// Something can be read.
    Read,
    /// Something can be read or written.
    ReadWrite,
    /// Something can be written, or a connection attempt has ended.
    Write,
}

/// The most events that one wait can report.
const WAIT_BATCH: usize = 64;

/// Room for the results of one wait, kept between waits.
pub(crate) struct Events {
    raw: [libc::epoll_event; WAIT_BATCH],
    len: usize,
    interrupted: bool,
}

impl Events {
    /// No events.
    pub(crate) fn new() -> Self {
        Self {
            raw: [libc::epoll_event { events: 0, u64: 0 }; WAIT_BATCH],
            len: 0,
            interrupted: false,
        }
    }

    /// Whether there may be more events than the last wait reported: it reported as many as fit, or
    /// it was interrupted, as happens when a stopped process continues.
    pub(crate) const fn is_partial(&self) -> bool {
        self.interrupted || self.len == WAIT_BATCH
    }

    /// The descriptors that the last wait found ready.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.raw[..self.len].iter().map(|event| {
            let bits = event.events;
            let broken = bits & bits_of(libc::EPOLLERR | libc::EPOLLHUP) != 0;
            Ready {
                token: event.u64,
                readable: broken || bits & bits_of(libc::EPOLLIN | libc::EPOLLRDHUP) != 0,
                writable: broken || bits & bits_of(libc::EPOLLOUT) != 0,
            }
        })
    }
}

impl AsFd for Epoll {
    /// A descriptor that is readable when one of the set is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Epoll {
    /// An empty set.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        Ok(Self { fd: owned(fd)? })
    }

    /// Adds a descriptor, which must stay open as long as it is in the set.
    pub(crate) fn add(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Changes the events to wait for.
    pub(crate) fn modify(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Removes a descriptor from the set.
    pub(crate) fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Read)
    }

    /// Waits until a descriptor is ready or `timeout` (`None`: no limit) has passed. An interrupted
    /// wait counts as one that found nothing.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.len = 0;
        events.interrupted = false;
        let found = match self.wait_exact(events, timeout) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                self.wait_coarse(events, timeout)
            }
            other => other,
        };
        match found {
            Ok(len) => events.len = len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.interrupted = true;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// `epoll_pwait2`, whose timeout is in nanoseconds (Linux 5.11).
    fn wait_exact(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        let spec = timeout.map(|span| libc::timespec {
            tv_sec: span.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: span.subsec_nanos().into(),
        });
        let spec = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `raw` has WAIT_BATCH elements, `spec` is null or lives until the call returns,
        // and a null signal mask is allowed.
        let len = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                events.raw.as_mut_ptr(),
                WAIT_BATCH,
                spec,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(len).map_err(|_| io::Error::last_os_error())
    }

    /// The call of older kernels; its timeout is rounded up to milliseconds.
    fn wait_coarse(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        let millis = timeout.map_or(-1, |span| {
            c_int::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
        });
        let batch = c_int::try_from(WAIT_BATCH).expect("the batch is small");
        // SAFETY: `raw` has WAIT_BATCH elements.
        let len = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), events.raw.as_mut_ptr(), batch, millis)
        };
        usize::try_from(len).map_err(|_| io::Error::last_os_error())
    }

    fn control(&self, op: c_int, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        let bits = match interest {
            Interest::Read => libc::EPOLLIN | libc::EPOLLRDHUP,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLOUT,
            Interest::Write => libc::EPOLLOUT,
        };
        let mut event = libc::epoll_event {
            events: bits_of(bits),
            u64: token,
        };
        // SAFETY: `event` lives until the call returns.
        let done = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), op, fd, &raw mut event) };
        check(done)
    }
}

/// A counter in the kernel that makes a descriptor readable.
#[derive(Debug)]
pub(crate) struct EventFd {
    fd: OwnedFd,
}

impl EventFd {
    /// A counter at zero.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Ok(Self { fd: owned(fd)? })
    }

    /// Makes the descriptor readable. This can fail only if the descriptor is already readable.
    pub(crate) fn signal(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from `one`, as an eventfd requires.
        let _ = unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes the descriptor unreadable.
    pub(crate) fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes are written to `count`, as an eventfd requires.
        let _ = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Random bytes from the kernel.
///
/// # Errors
/// The kernel's error; with no flags and few bytes, only a very old kernel fails.
pub(crate) fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: `bytes` has room for `N` bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if usize::try_from(got) == Ok(N) {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The number of descriptors that this process may have open at the same time.
pub(crate) fn descriptor_limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` lives until the call returns, which writes it and cannot fail otherwise.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    debug_assert_eq!(done, 0);
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// Takes ownership of the descriptor that a system call returned, unless it failed.
fn owned(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn bits_of(flags: c_int) -> u32 {
    u32::from_ne_bytes(flags.to_ne_bytes())
}

#[cfg(test)]
mod tests;
