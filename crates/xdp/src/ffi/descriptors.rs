//! Sends and receives descriptors over a UNIX socket (`unix(7)`, `SCM_RIGHTS`), and gets the user
//! at the other end (`SO_PEERCRED`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::c_void;

use super::{check, socklen};

/// The most descriptors in one message.
pub(crate) const MOST: usize = 5;

/// Room for the control data of these descriptors, aligned like a control header.
#[repr(align(8))]
struct Control([u8; 64]);

/// The effective user of this process.
pub(crate) fn user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// The effective user of the process at the other end, at the time when it connected or began to
/// listen.
pub(crate) fn user_of_peer(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = socklen::<libc::ucred>();
    let (level, name, at) = (libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast());
    // SAFETY: the kernel writes at most `len` bytes into the live value.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, &raw mut len) })?;
    Ok(peer.uid)
}

/// A non-blocking UNIX socket, connected to the one that listens under this abstract name.
///
/// # Errors
/// The kernel's; `WouldBlock`, at once, if the listener's backlog is full.
pub(crate) fn connect(name: &[u8]) -> io::Result<OwnedFd> {
    let socket = super::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    // SAFETY: zero bytes are an address of no family.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).expect("a small number");
    // An abstract name begins with a zero.
    let places = address
        .sun_path
        .get_mut(1..=name.len())
        .ok_or(io::ErrorKind::InvalidInput)?;
    for (place, byte) in places.iter_mut().zip(name) {
        *place = byte.cast_signed();
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    let len = libc::socklen_t::try_from(len).expect("an address is short");
    let at = (&raw const address).cast();
    // SAFETY: the address is live, and holds `len` bytes, as the check above shows.
    check(unsafe { libc::connect(socket.as_raw_fd(), at, len) })?;
    Ok(socket)
}

/// Shuts a socket down, so that a thread that waits in `accept` returns.
pub(crate) fn shut(socket: BorrowedFd<'_>) {
    // SAFETY: takes numbers. An error means that the socket is already shut down.
    let _ = unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Sends bytes together with descriptors, of which there are at least one and at most [`MOST`].
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    assert!((1..=MOST).contains(&descriptors.len()), "few descriptors");
    let mut control = Control([0; 64]);
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast::<c_void>().cast_mut(),
        iov_len: bytes.len(),
    };
    let mut message = message(&mut part, &mut control);
    let data = descriptors.len() * size_of::<RawFd>();
    let data = libc::c_uint::try_from(data).expect("a few descriptors");
    // SAFETY: both macros compute lengths. The control data have room for a header and the
    // descriptors, as the assertions check, and are aligned.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(data) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(data) as usize;
        let out = libc::CMSG_DATA(header).cast::<RawFd>();
        for (at, descriptor) in descriptors.iter().enumerate() {
            out.add(at).write_unaligned(descriptor.as_raw_fd());
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Receives bytes into `room`, and the descriptors that came with them. Returns the number of
/// bytes.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    room: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    let mut message = message(&mut part, &mut control);
    // SAFETY: the message leads to live memory of the given lengths, which is ours alone.
    let got =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let mut descriptors = Vec::new();
    // SAFETY: the kernel has filled in the control data, so each header and its data lie within
    // them; the descriptors of this record are new, open, and have no other owner.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if let Some(record) = header.as_ref()
            && record.cmsg_type == libc::SCM_RIGHTS
        {
            let bytes = record.cmsg_len - libc::CMSG_LEN(0) as usize;
            let from = libc::CMSG_DATA(header).cast::<RawFd>();
            for at in 0..bytes / size_of::<RawFd>() {
                descriptors.push(OwnedFd::from_raw_fd(from.add(at).read_unaligned()));
            }
        }
    }
    Ok((got, descriptors))
}

fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: zero bytes are a message without parts.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    message
}

const _: () = assert!(size_of::<libc::cmsghdr>() + size_of::<[RawFd; MOST]>() + 8 <= 64);
