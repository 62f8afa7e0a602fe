//! The calls to the operating system: shared memory, socket pairs, one epoll.
//!
//! Invariants: no call here blocks, whatever a peer does with the other end of a descriptor, and no
//! descriptor survives an `exec`. Called by `memory`, `channels`, `regions` and `setup`, and by
//! `tx`, which calls only [`wake`].

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};

/// Bytes of a descriptor.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const FD_LEN: u32 = size_of::<RawFd>() as u32;

/// Room for more descriptors than a correct peer sends, so that all are seen and closed.
const CONTROL: usize = 128;

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// The most ready descriptors that [`ready`] reports at once.
const READY: i32 = 32;

/// Makes anonymous shared memory of `len` bytes, all zeros, whose size no process can change.
pub(super) fn create_memory(name: &CStr, len: usize) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string that ends; the kernel keeps a copy.
    let fd = owned(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    let size = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: plain integers.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), size) })?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain integers.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(fd)
}

/// True if this is shared memory of `len` bytes that no process can shorten, so that no access to a
/// mapping of it can fail. It must lie on a tmpfs, where a page of any size is allocated at the
/// first access. On a hugetlbfs no page may be left then, and the access raises a bus error.
pub(super) fn is_sealed_memory(fd: &OwnedFd, len: usize) -> bool {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the structure is the caller's to fill.
    if unsafe { libc::fstat(fd.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has filled it.
    let stat = unsafe { stat.assume_init() };
    // SAFETY: plain integers. Only memory files have seals.
    let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0
        && seals & libc::F_SEAL_SHRINK != 0
        && is_on_tmpfs(fd)
        && u64::try_from(stat.st_size).is_ok_and(|size| size == len as u64)
}

/// Asks for the type of the file system. The block size does not show it: a tmpfs that may use huge
/// pages has the same block size as a hugetlbfs.
fn is_on_tmpfs(fd: &OwnedFd) -> bool {
    let mut system = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the structure is the caller's to fill.
    if unsafe { libc::fstatfs(fd.as_raw_fd(), system.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has filled it.
    let system = unsafe { system.assume_init() };
    system.f_type == libc::TMPFS_MAGIC
}

/// Maps shared memory for reading and writing, all pages present.
pub(super) fn map(fd: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let base = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Maps memory that no other process can reach, all pages present. The mapping is private, because
/// a forked child would get a shared one as well.
pub(super) fn map_private(len: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let base = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Unmaps memory.
///
/// # Safety
/// `base` and `len` are those of a mapping by [`map`] or [`map_private`] that is not used any more.
pub(super) unsafe fn unmap(base: NonNull<u8>, len: usize) {
    // SAFETY: as the caller promises. It fails only for arguments that are not a mapping.
    unsafe { libc::munmap(base.as_ptr().cast(), len) };
}

/// Makes the two ends of a wake-up line.
pub(super) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the kernel writes two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    // SAFETY: the call has made both, and no other code owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Wakes the thread that waits at the other end of the line.
///
/// A `send` without waiting cannot block, even if the peer gave us a descriptor that is not a
/// socket pair, or changes its flags; a `write` to an eventfd could. Errors harm only the peer. A
/// full line means that the peer was woken and has not looked yet.
#[inline]
pub(super) fn wake(line: RawFd) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the byte outlives the call.
    unsafe { libc::send(line, ptr::from_ref(&1_u8).cast(), 1, flags) };
}

/// The result of reading a line.
pub(super) enum Received {
    /// No message for now.
    Nothing,
    /// The other end is closed, or the descriptor was never a line.
    Gone,
    /// A message of this many bytes, and the descriptor that came with it, if one did.
    Message(usize, Option<OwnedFd>),
}

/// Sends a message over a line, with a descriptor for the other side. False if the line did not
/// accept it.
pub(super) fn tell(line: RawFd, message: &[u8], fd: Option<&OwnedFd>) -> bool {
    let mut piece = libc::iovec {
        iov_base: message.as_ptr().cast_mut().cast(),
        iov_len: message.len(),
    };
    let mut control = Control([0; CONTROL]);
    // SAFETY: all zeros is an empty header.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    if let Some(fd) = fd {
        header.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: arithmetic.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(FD_LEN) } as usize;
        // SAFETY: the control buffer is aligned and has room for one descriptor.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(FD_LEN) as usize;
            libc::CMSG_DATA(first)
                .cast::<RawFd>()
                .write_unaligned(fd.as_raw_fd());
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: header, message and control outlive the call.
    unsafe { libc::sendmsg(line, &raw const header, flags) >= 0 }
}

/// Takes the next message from the line: a wake-up, or a report about the peer's regions.
pub(super) fn receive(line: RawFd, message: &mut [u8]) -> Received {
    let mut piece = libc::iovec {
        iov_base: message.as_mut_ptr().cast(),
        iov_len: message.len(),
    };
    let mut control = Control([0; CONTROL]);
    // SAFETY: all zeros is an empty header.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: header, message and control outlive the call.
    let got = unsafe { libc::recvmsg(line, &raw mut header, flags) };
    match usize::try_from(got) {
        Ok(0) => Received::Gone,
        // SAFETY: the call has filled the header and what it points to.
        Ok(len) => Received::Message(len, unsafe { only_descriptor(&header) }),
        Err(_) => match io::Error::last_os_error().kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Received::Nothing,
            _ => Received::Gone,
        },
    }
}

/// The descriptor that came with a message, if there was exactly one; otherwise all are closed.
///
/// # Safety
/// The header is as `recvmsg` left it.
unsafe fn only_descriptor(header: &libc::msghdr) -> Option<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel wrote the control messages that this code walks through, and each
    // descriptor in them is new and belongs only to us.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = control.as_ref() {
            if message.cmsg_level == libc::SOL_SOCKET && message.cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(control).cast::<RawFd>();
                let bytes = message.cmsg_len - libc::CMSG_LEN(0) as usize;
                for index in 0..bytes / size_of::<RawFd>() {
                    let fd = data.add(index).read_unaligned();
                    fds.push(OwnedFd::from_raw_fd(fd));
                }
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    let only = fds.pop();
    only.filter(|_| fds.is_empty())
}

/// Makes the descriptor through which an endpoint waits for all of its lines.
pub(super) fn create_epoll() -> io::Result<OwnedFd> {
    // SAFETY: plain integers.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// Adds a line to an epoll, with a number that [`ready`] reports.
pub(super) fn watch(epoll: &OwnedFd, line: RawFd, number: u32) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: libc::EPOLLIN as u32,
        u64: u64::from(number),
    };
    let epoll = epoll.as_raw_fd();
    // SAFETY: the structure outlives the call.
    check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, line, &raw mut event) })
}

/// Removes a line from an epoll.
pub(super) fn unwatch(epoll: &OwnedFd, line: RawFd) {
    let epoll = epoll.as_raw_fd();
    // SAFETY: plain integers. It fails only if the line is not in the epoll, which is the desired
    // state.
    unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, line, ptr::null_mut()) };
}

/// Calls `each` with the numbers of the first few readable lines.
pub(super) fn ready(epoll: &OwnedFd, mut each: impl FnMut(u32)) {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; READY as usize];
    // SAFETY: the array is as long as we say.
    let found = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), READY, 0) };
    for event in events.iter().take(usize::try_from(found).unwrap_or(0)) {
        each(u32::try_from(event.u64).expect("watch gave 32 bits"));
    }
}

/// Random bytes, to name a channel.
pub(super) fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the buffer is as long as we say.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 16 {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: the kernel has just made it, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
