//! The system calls of this crate: `libc` in, values and errors out. Only reads of files in
//! `/proc`, [`await_programs`], and messages of `descriptors` may block.
//!
//! Owns every call to the kernel except those in `mapping`. Called throughout the crate. See
//! `socket(7)`, `bpf(2)`, `netlink(7)`, `Documentation/networking/af_xdp.rst`.

pub(crate) mod descriptors;
pub(crate) mod ethtool;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod privileges;

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void, socklen_t};

/// A non-blocking socket that is closed on `exec`.
pub(crate) fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) takes numbers only.
    own(unsafe { libc::socket(family, kind, protocol) })
}

/// setsockopt(2) with the bytes of a plain value.
pub(crate) fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    let at = (&raw const *value).cast();
    // SAFETY: the value is live, and its size is given; the kernel only reads it.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, at, socklen::<T>()) })
}

/// getsockopt(2) of an array of numbers. Those that this kernel does not know stay 0.
pub(crate) fn numbers<const N: usize>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
) -> io::Result<[u64; N]> {
    let mut numbers = [0; N];
    let mut len = socklen::<[u64; N]>();
    let at = numbers.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `len` bytes into the live array, and any bytes are numbers.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, at, &raw mut len) })?;
    Ok(numbers)
}

/// Returns the pending error of a socket and clears it (`SO_ERROR`).
pub(crate) fn take_error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    let mut code: c_int = 0;
    let mut len = socklen::<c_int>();
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ERROR);
    let at = (&raw mut code).cast();
    // SAFETY: the kernel writes at most `len` bytes into the live number.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, at, &raw mut len) }).ok()?;
    (code != 0).then(|| io::Error::from_raw_os_error(code))
}

/// bind(2) of an `AF_XDP` socket.
pub(crate) fn bind_xdp(fd: BorrowedFd<'_>, address: &libc::sockaddr_xdp) -> io::Result<()> {
    let at = (&raw const *address).cast();
    // SAFETY: the address is live, and its size is given.
    check(unsafe { libc::bind(fd.as_raw_fd(), at, socklen::<libc::sockaddr_xdp>()) })
}

/// bind(2) of a netlink socket to groups of events.
pub(crate) fn bind_netlink(fd: BorrowedFd<'_>, groups: u32) -> io::Result<()> {
    // SAFETY: zero bytes are an address of no family.
    let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
    address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).expect("a small number");
    address.nl_groups = groups;
    let at = (&raw const address).cast();
    // SAFETY: the address is live, and its size is given.
    check(unsafe { libc::bind(fd.as_raw_fd(), at, socklen::<libc::sockaddr_nl>()) })
}

/// sendto(2) of nothing: asks the kernel to look at the transmit ring.
#[inline]
pub(crate) fn kick(fd: BorrowedFd<'_>) -> Result<(), c_int> {
    let null = std::ptr::null();
    // SAFETY: no bytes and no address.
    let rc = unsafe { libc::sendto(fd.as_raw_fd(), null, 0, libc::MSG_DONTWAIT, null.cast(), 0) };
    if rc < 0 { Err(errno()) } else { Ok(()) }
}

/// recvfrom(2) of nothing: asks the kernel to look at the fill ring.
pub(crate) fn kick_fill(fd: BorrowedFd<'_>) {
    let null = std::ptr::null_mut();
    // SAFETY: no bytes and no address. The result does not matter: if the ring has no frames, the
    // call does nothing.
    unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            null,
            0,
            libc::MSG_DONTWAIT,
            null.cast(),
            null.cast(),
        )
    };
}

/// send(2) of a message.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let at = bytes.as_ptr().cast::<c_void>();
    // SAFETY: the bytes are live and only read.
    let sent = unsafe { libc::send(fd.as_raw_fd(), at, bytes.len(), 0) };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// recv(2) of a message into `room`; a longer one is cut.
pub(crate) fn receive<'a>(fd: BorrowedFd<'_>, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let at = room.as_mut_ptr().cast::<c_void>();
    // SAFETY: the kernel writes at most `room.len()` bytes, and `room` is ours alone.
    let len = unsafe { libc::recv(fd.as_raw_fd(), at, room.len(), libc::MSG_DONTWAIT) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    Ok(&room[..len])
}

/// bpf(2). `attributes` has the size that the command reads. The caller keeps the memory behind its
/// pointers alive during the call.
///
/// # Safety
/// Every address in `attributes` that the command follows leads to memory that the kernel may use
/// as the command says.
pub(crate) unsafe fn bpf(command: c_int, attributes: &mut [u64]) -> io::Result<c_int> {
    let at = attributes.as_mut_ptr();
    // SAFETY: the attributes are live and ours, and the caller vouches for what they lead to.
    let rc = unsafe { libc::syscall(libc::SYS_bpf, command, at, size_of_val(attributes)) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(c_int::try_from(rc).expect("bpf(2) answers with an int"))
}

/// The owner of a descriptor that a system call has just returned.
pub(crate) fn own(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, open, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The device and inode numbers of the calling thread's network namespace.
pub(crate) fn network_namespace() -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata("/proc/thread-self/ns/net")?;
    Ok((file.dev(), file.ino()))
}

/// The inode number of a socket, which no other open socket has.
pub(crate) fn number_of_file(fd: RawFd) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(format!("/proc/thread-self/fd/{fd}"))?.ino())
}

/// The inode numbers of all UDP sockets in the calling thread's network namespace.
pub(crate) fn udp_sockets() -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for table in ["udp", "udp6"] {
        let path = format!("/proc/thread-self/net/{table}");
        let text = match std::fs::read_to_string(path) {
            // The kernel may lack IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text?,
        };
        let of_line = |line: &str| line.split_whitespace().nth(9)?.parse::<u64>().ok();
        numbers.extend(text.lines().filter_map(of_line));
    }
    Ok(numbers)
}

/// The abstract names at which UNIX sockets listen in the calling thread's network namespace, each
/// once.
pub(crate) fn listening_names() -> io::Result<BTreeSet<Vec<u8>>> {
    /// `__SO_ACCEPTCON`. A connection that waits to be accepted also has the listener's name, but
    /// not this flag.
    const LISTENS: &[u8] = b"00010000";
    // A name may have any bytes.
    let table = std::fs::read("/proc/thread-self/net/unix")?;
    let of_line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').filter(|it| !it.is_empty());
        let listens = fields.nth(3)? == LISTENS;
        let name = fields.nth(3)?.strip_prefix(b"@")?;
        listens.then(|| name.to_vec())
    };
    let lines = table.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(of_line).collect())
}

/// A random number.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: the kernel writes at most `bytes.len()` bytes into the live array.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match usize::try_from(got) {
        Ok(8) => Ok(u64::from_ne_bytes(bytes)),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Waits until every BPF program that ran at the time of the call has ended (`membarrier(2)`).
pub(crate) fn await_programs() {
    /// `MEMBARRIER_CMD_GLOBAL`.
    const GLOBAL: c_int = 1;
    // SAFETY: takes numbers.
    let rc = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if rc != 0 {
        // A program runs for microseconds, so all of them have ended after this pause.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The number of an interface in the caller's network namespace.
pub(crate) fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: the name ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(index)
    }
}

/// The addresses of an interface in the caller's network namespace.
pub(crate) fn addresses(interface: &CStr) -> io::Result<Vec<IpAddr>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the kernel's answer is a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: each entry of the list is valid until the list is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the name of an entry ends with a zero byte.
        let label = unsafe { CStr::from_ptr(entry.ifa_name) }.to_bytes();
        // An address may have a label, which begins with the interface's name and a colon.
        if label.split(|byte| *byte == b':').next() == Some(interface.to_bytes()) {
            // SAFETY: the list has not been freed.
            found.extend(unsafe { address(entry.ifa_addr) });
        }
    }
    // SAFETY: this is the list from above, and nothing points into it now.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// Converts an address of the kernel to an IP address, if it is one.
///
/// # Safety
/// `address` is null, or points to an address of the family that it names.
unsafe fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise.
    let family = c_int::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: the family says that it has this form; it may be unaligned.
            let address: libc::sockaddr_in =
                unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address: libc::sockaddr_in6 =
                unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// The limit of memory that this process may pin (`RLIMIT_MEMLOCK`); `None` if there is none.
pub(crate) fn memlock() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one live `rlimit`.
    let rc = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (rc == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Bytes that this thread may pin at most; `None` if it has `CAP_IPC_LOCK`, or no limit.
pub(crate) fn pinnable() -> Option<u64> {
    /// `CAP_IPC_LOCK` of `capabilities(7)`.
    const IPC_LOCK: u32 = 14;
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let is_free = effective.is_some_and(|set| set >> IPC_LOCK & 1 != 0);
    memlock().filter(|_| !is_free)
}

/// A descriptor that one thread makes readable for another (`eventfd(2)`).
#[cfg(feature = "wire")]
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers.
    own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Makes such a descriptor readable.
#[cfg(feature = "wire")]
pub(crate) fn ring(event: BorrowedFd<'_>) {
    let one = 1_u64;
    // SAFETY: the kernel reads the eight bytes of a live number.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Makes the descriptor unreadable.
#[cfg(feature = "wire")]
pub(crate) fn clear(event: BorrowedFd<'_>) {
    let mut count = 0_u64;
    // SAFETY: the kernel writes eight bytes to a live number.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) };
}

fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
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
