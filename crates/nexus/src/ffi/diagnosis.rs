//! The user that owns a socket of this host, as the kernel reports it (sock_diag(7)).
//!
//! Called for connections over loopback, whose other end is a socket of this host too: a process
//! can choose its address and port, but not its user.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use super::{owned, socket};

/// `SOCK_DIAG_BY_FAMILY`, the type of the question and of its answer.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const NO_COOKIE: u32 = u32::MAX;

/// Lengths of a message's header, of a question with the header, and of an answer with both.
const HEADER: usize = 16;
const QUESTION: usize = HEADER + 56;
const ANSWER: usize = HEADER + 72;

/// The place of the user in an answer.
const UID: usize = HEADER + 64;

/// Asks about TCP sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    netlink: OwnedFd,
}

impl Sockets {
    /// # Errors
    /// The kernel has no such questions, or no descriptor is left.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed.
        let netlink = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
        Ok(Self {
            netlink: owned(netlink)?,
        })
    }

    /// The user of the TCP socket of this host at `local` that is connected to `remote`. `None` if
    /// there is none.
    pub(crate) fn user_of(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let question = question(local, remote);
        socket::send(self.netlink.as_fd(), &question, &[]).ok()?;
        // The kernel answers within the call.
        let mut answer = [0; 512];
        let got = socket::receive(self.netlink.as_fd(), &mut answer, &mut Vec::new()).ok()?;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        let uid = <[u8; 4]>::try_from(&answer[UID..UID + 4]).ok()?;
        (got >= ANSWER && kind == BY_FAMILY).then(|| u32::from_ne_bytes(uid))
    }
}

/// `nlmsghdr` and `inet_diag_req_v2` (linux/netlink.h, linux/inet_diag.h).
fn question(local: SocketAddr, remote: SocketAddr) -> [u8; QUESTION] {
    let mut out = [0; QUESTION];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let family = if local.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let length = u32::try_from(QUESTION).unwrap_or_default();
    put(&length.to_ne_bytes());
    put(&BY_FAMILY.to_ne_bytes());
    put(&REQUEST.to_ne_bytes());
    // Sequence number and port: there is one question at a time.
    put(&[0; 8]);
    let byte = |number: i32| u8::try_from(number).unwrap_or_default();
    put(&[byte(family), byte(libc::IPPROTO_TCP), 0, 0]);
    // Sockets in every state.
    put(&u32::MAX.to_ne_bytes());
    put(&local.port().to_be_bytes());
    put(&remote.port().to_be_bytes());
    put(&address(local.ip()));
    put(&address(remote.ip()));
    // Of any interface.
    put(&0_u32.to_ne_bytes());
    put(&NO_COOKIE.to_ne_bytes());
    put(&NO_COOKIE.to_ne_bytes());
    out
}

/// An address in the order of the network, IPv4 in the first four bytes.
fn address(ip: IpAddr) -> [u8; 16] {
    let mut out = [0; 16];
    match ip {
        IpAddr::V4(ip) => out[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => out = ip.octets(),
    }
    out
}

#[cfg(test)]
mod tests;
