//! Sockets: connecting without blocking, identifying the process at the other end, and sending
//! descriptors with bytes.
//!
//! Invariant: every received descriptor has an owner from the start, and no child program inherits
//! it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void};

use super::{check, owned};

/// The most descriptors in one message; the kernel's own limit is 253.
pub(crate) const MAX_FDS: usize = 16;

/// Space for the control data of [`MAX_FDS`] descriptors, with its header and padding.
const CONTROL_BYTES: usize = 128;

/// Begins to connect a TCP socket, which becomes writable when the attempt has ended. The
/// connection comes from `own`, if that address can reach `to`: a peer sends packets only to the
/// address from which a connection comes (rule C12).
pub(crate) fn dial_tcp(to: SocketAddr, own: IpAddr) -> io::Result<OwnedFd> {
    let socket = stream_socket(if to.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    })?;
    let reaches = !own.is_unspecified()
        && own.is_ipv4() == to.is_ipv4()
        && own.is_loopback() == to.ip().is_loopback();
    if reaches {
        // The kernel chooses the port only when it connects, so each remote address has 28 000
        // ports, instead of sharing them with all others.
        set_number(
            socket.as_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            1,
        )?;
        // This fails if the address to which the operator bound the nexus no longer exists.
        let _ = with_raw(SocketAddr::new(own, 0), |raw, len| {
            // SAFETY: `len` bytes of `raw` are readable, and the kernel checks what they mean.
            unsafe { libc::bind(socket.as_raw_fd(), raw, len) }
        });
    }
    let begun = with_raw(to, |raw, len| {
        // SAFETY: as above.
        unsafe { libc::connect(socket.as_raw_fd(), raw, len) }
    });
    unless_under_way(begun).map(|()| socket)
}

/// Gives a socket's address to a system call, in the form that the kernel reads.
fn with_raw(
    address: SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> c_int,
) -> io::Result<()> {
    check(match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: family_of(libc::AF_INET),
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            call((&raw const raw).cast(), length_of(size_of_val(&raw)))
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: family_of(libc::AF_INET6),
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            call((&raw const raw).cast(), length_of(size_of_val(&raw)))
        }
    })
}

/// Connects a UNIX stream socket. A name that begins with NUL is in the abstract namespace.
///
/// # Errors
/// `InvalidInput` if the name is too long; otherwise the kernel's error. `WouldBlock` means that
/// the listener's queue is full.
pub(crate) fn dial_unix(name: &[u8]) -> io::Result<OwnedFd> {
    let socket = stream_socket(libc::AF_UNIX)?;
    let mut raw = libc::sockaddr_un {
        sun_family: family_of(libc::AF_UNIX),
        sun_path: [0; 108],
    };
    let Some(path) = raw.sun_path.get_mut(..name.len()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    for (to, from) in path.iter_mut().zip(name) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    connect(&socket, &raw, length)?;
    Ok(socket)
}

/// The address of our end of a TCP connection; `None` for another kind of socket.
pub(crate) fn local_addr(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    address(socket, libc::getsockname)
}

/// The address of the other end of a TCP connection; `None` for another kind of socket.
pub(crate) fn remote_addr(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    address(socket, libc::getpeername)
}

/// The address that `ask` returns: of this end of a socket, or of the other end.
fn address(
    socket: BorrowedFd<'_>,
    ask: unsafe extern "C" fn(
        libc::c_int,
        *mut libc::sockaddr,
        *mut libc::socklen_t,
    ) -> libc::c_int,
) -> Option<SocketAddr> {
    // SAFETY: addresses are plain numbers, for which zeros are valid.
    let mut raw: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = length_of(size_of_val(&raw));
    let room: *mut libc::sockaddr = (&raw mut raw).cast();
    // SAFETY: `raw` has room for `len` bytes, and both live until the call returns.
    check(unsafe { ask(socket.as_raw_fd(), room, &raw mut len) }).ok()?;
    match libc::c_int::from(raw.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel has written an address of this family; the storage is as large
            // and as aligned as any.
            let v4 = unsafe { (&raw const raw).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { (&raw const raw).cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// The process that connected or listened at the other end of a UNIX socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

/// The process at the other end of a UNIX socket.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut cred = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = length_of(size_of_val(&cred));
    // SAFETY: `cred` has room for `len` bytes, and both live until the call returns.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut len,
        )
    };
    check(done)?;
    Ok(Peer {
        // Zero for a process of another namespace.
        pid: u32::try_from(cred.pid).unwrap_or(0),
        uid: cred.uid,
    })
}

/// The result of the attempt to connect, after this socket has become writable.
pub(crate) fn connect_result(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut error: c_int = 0;
    let mut len = length_of(size_of_val(&error));
    // SAFETY: `error` has room for `len` bytes, and both live until the call returns.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut len,
        )
    };
    check(done)?;
    if error == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(error))
    }
}

/// Makes later calls on this socket return instead of blocking.
pub(crate) fn set_nonblocking(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: c_int = 1;
    // SAFETY: the call reads an integer from `on`, which lives until it returns.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONBIO, &raw const on) })
}

/// Length of the kernel's queue of connections that wait to be accepted. The standard library's 128
/// are too few for a burst: further connections wait a second before they are tried again.
const BACKLOG: c_int = 4096;

/// Makes the queue of a listener long; the kernel's own limit may be lower.
pub(crate) fn lengthen_queue(listener: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers are passed. A second call changes nothing but the queue's length.
    check(unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) })
}

/// Makes the kernel send small messages immediately instead of waiting for more (`TCP_NODELAY`).
pub(crate) fn send_at_once(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

fn set_number(socket: BorrowedFd<'_>, level: c_int, name: c_int, number: c_int) -> io::Result<()> {
    // SAFETY: `number` is read, with its length, until the call returns.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const number).cast(),
            length_of(size_of_val(&number)),
        )
    })
}

/// The user of this process.
pub(crate) fn own_uid() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sends bytes and, with the first of them, descriptors. Returns the number of bytes that the
/// kernel took.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[OwnedFd]) -> io::Result<usize> {
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    let mut message = empty_message();
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    if !fds.is_empty() {
        if fds.len() > MAX_FDS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        fill_control(&mut message, &mut control, fds);
    }
    // SAFETY: `message` points at `piece` and `control`, which live until the call returns; the
    // kernel only reads through them.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives bytes, and appends their descriptors to `fds`. Returns the number of bytes; 0 is the
/// end.
///
/// # Errors
/// `InvalidData` if descriptors were cut off because there were more than [`MAX_FDS`].
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut piece = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    let mut message = empty_message();
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES;
    // SAFETY: `message` points at `piece` and `control`, which live until the call returns and
    // have the lengths that it says.
    let got =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    take_control(&message, fds);
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(got)
}

/// Control data must be aligned like its header.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

const _: () = assert!(align_of::<libc::cmsghdr>() <= 8);

/// Writes one SCM_RIGHTS record into `control` and makes `message` point at it.
fn fill_control(message: &mut libc::msghdr, control: &mut ControlBuffer, fds: &[OwnedFd]) {
    let data = length_of(fds.len() * size_of::<RawFd>());
    // SAFETY: both macros only compute lengths.
    let (space, length) = unsafe { (libc::CMSG_SPACE(data), libc::CMSG_LEN(data)) };
    assert!(
        space as usize <= CONTROL_BYTES,
        "the caller checked the number of descriptors"
    );
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = space as usize;
    // SAFETY: the control buffer is aligned, and `space` bytes of it hold a header and the data,
    // as the assertion above checks.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = length as usize;
        let out = libc::CMSG_DATA(header).cast::<RawFd>();
        for (i, fd) in fds.iter().enumerate() {
            out.add(i).write_unaligned(fd.as_raw_fd());
        }
    }
}

/// Takes ownership of every descriptor in the control data that the kernel filled in.
fn take_control(message: &libc::msghdr, fds: &mut Vec<OwnedFd>) {
    // SAFETY: the kernel wrote well-formed records and their length; the macros walk them and
    // stop at the end. Each descriptor in them is new and has no other owner.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let is_rights =
                (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS;
            if is_rights {
                let bytes = (*header)
                    .cmsg_len
                    .saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for i in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

fn empty_message() -> libc::msghdr {
    // SAFETY: null pointers and zero lengths are a valid, empty message.
    unsafe { std::mem::zeroed() }
}

fn stream_socket(family: c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    owned(unsafe { libc::socket(family, kind, 0) })
}

/// Begins to connect. `address` is one of the socket address structures, `length` bytes of it.
fn connect<A>(socket: &OwnedFd, address: &A, length: usize) -> io::Result<()> {
    assert!(length <= size_of::<A>());
    let raw: *const c_void = std::ptr::from_ref(address).cast();
    // SAFETY: `length` bytes of `address` are readable, and the kernel checks what they mean.
    let done = unsafe { libc::connect(socket.as_raw_fd(), raw.cast(), length_of(length)) };
    unless_under_way(check(done))
}

/// Treats an attempt that is still under way as successful so far.
fn unless_under_way(begun: io::Result<()>) -> io::Result<()> {
    match begun {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other,
    }
}

fn family_of(family: c_int) -> libc::sa_family_t {
    libc::sa_family_t::try_from(family).expect("address families are small numbers")
}

fn length_of(length: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(length).expect("socket structures are small")
}

#[cfg(test)]
mod tests;
