//! Many datagrams in one system call (sendmmsg, recvmmsg), and the socket options for segments:
//! the kernel cuts one large write into datagrams (GSO) and joins them again (GRO).

#[cfg(feature = "full")]
use std::net::TcpStream;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::{io, mem};

use super::checked;

/// A fixed number of equally large buffers, and the headers that the system needs for them.
///
/// `headers[i]` points to `peer` and to `vectors[i]`, which points into `bytes`. None of the four
/// is reallocated after `new`, so the pointers stay valid when the value moves.
pub(crate) struct Datagrams {
    headers: Box<[libc::mmsghdr]>,
    _vectors: Box<[libc::iovec]>,
    _peer: Box<libc::sockaddr_in>,
    bytes: Box<[u8]>,
    size: usize,
}

impl Datagrams {
    /// `count` buffers of `size` bytes. Datagrams go to `peer`.
    pub(crate) fn new(count: usize, size: usize, peer: Option<SocketAddrV4>) -> Self {
        let mut bytes = vec![0; count * size].into_boxed_slice();
        let iovec = |chunk: &mut [u8]| libc::iovec {
            iov_base: chunk.as_mut_ptr().cast(),
            iov_len: chunk.len(),
        };
        let mut vectors: Box<[_]> = bytes.chunks_exact_mut(size).map(iovec).collect();
        let mut name = Box::new(sockaddr(peer));
        let header = |vector: &mut libc::iovec| {
            // SAFETY: all zero is a valid message header: no name, no data, no control data.
            let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            if peer.is_some() {
                header.msg_hdr.msg_name = (&raw mut *name).cast();
                header.msg_hdr.msg_namelen = SOCKADDR_LEN;
            }
            header
        };
        let headers = vectors.iter_mut().map(header).collect();
        Self {
            headers,
            _vectors: vectors,
            _peer: name,
            bytes,
            size,
        }
    }

    /// All buffers, one after the other.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Sends every buffer in full, in as few calls as the system allows.
    ///
    /// # Errors
    /// The system refuses a datagram.
    pub(crate) fn send(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.headers.len() {
            let rest = &mut self.headers[sent..];
            let count = u32::try_from(rest.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            let fd = socket.as_raw_fd();
            // SAFETY: the headers point to buffers of this value, which live through the call.
            let result = checked(unsafe { libc::sendmmsg(fd, rest.as_mut_ptr(), count, 0) })?;
            sent += usize::try_from(result).map_err(|_| io::ErrorKind::InvalidData)?;
        }
        Ok(())
    }

    /// Takes the datagrams that have arrived, without waiting; returns the number of filled
    /// buffers.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let count = u32::try_from(self.headers.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        let no_limit = std::ptr::null_mut();
        // SAFETY: the headers point to buffers of this value, which live through the call, and
        // the system writes at most the length of each.
        let result = unsafe { libc::recvmmsg(fd, headers, count, libc::MSG_DONTWAIT, no_limit) };
        match checked(result) {
            Ok(count) => usize::try_from(count).map_err(|_| io::ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The datagram that the last `receive` put into buffer `index`.
    pub(crate) fn received(&self, index: usize) -> &[u8] {
        let len = self.headers[index].msg_len as usize;
        &self.bytes[index * self.size..][..len.min(self.size)]
    }
}

/// Makes the kernel cut each write to the socket into datagrams of `size` bytes.
///
/// # Errors
/// The kernel is older than 4.18.
pub fn set_segment_size(socket: &UdpSocket, size: u16) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, size.into())
}

/// Makes the kernel deliver consecutive datagrams of one size as one.
///
/// # Errors
/// The kernel is older than 5.0.
pub fn set_gro(socket: &UdpSocket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Sets the number of unread bytes that the socket may hold; the system may grant fewer.
///
/// # Errors
/// The system refuses.
pub(crate) fn set_receive_buffer(socket: &UdpSocket, bytes: libc::c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)
}

/// Sets the size of the stream's buffer for each direction, which the system would otherwise
/// choose; it may grant fewer bytes.
///
/// # Errors
/// The system refuses.
#[cfg(feature = "full")]
pub(crate) fn set_buffers(stream: &TcpStream, bytes: libc::c_int) -> io::Result<()> {
    set_option(stream, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
    set_option(stream, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "an IPv4 address has 16 bytes"
)]
const SOCKADDR_LEN: libc::socklen_t = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;

#[expect(clippy::cast_possible_truncation, reason = "an integer has 4 bytes")]
const INT_LEN: libc::socklen_t = mem::size_of::<libc::c_int>() as libc::socklen_t;

#[expect(clippy::cast_possible_truncation, reason = "AF_INET is 2")]
fn sockaddr(peer: Option<SocketAddrV4>) -> libc::sockaddr_in {
    // SAFETY: all zero is a valid address: no family.
    let mut name: libc::sockaddr_in = unsafe { mem::zeroed() };
    if let Some(peer) = peer {
        name.sin_family = libc::AF_INET as libc::sa_family_t;
        name.sin_port = peer.port().to_be();
        name.sin_addr.s_addr = u32::from(*peer.ip()).to_be();
    }
    name
}

fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let (fd, value) = (socket.as_raw_fd(), &raw const value);
    // SAFETY: `value` points to an integer on this stack, and INT_LEN is its size.
    checked(unsafe { libc::setsockopt(fd, level, option, value.cast(), INT_LEN) })?;
    Ok(())
}
