//! The user that owns a socket of this host, as the kernel reports it (sock_diag(7)).
//!
//! The nexus asks about the other end of every TCP connection. Usually that end is on another host.
//! Then the kernel finds no such connection; but if a socket of this host listens at that end's
//! port, it answers with the listening socket. So an answer counts only if it repeats both ends of
//! an established connection. A process can choose its address and port, but not its user. Called
//! by `listeners.rs`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use super::{owned, socket};

/// `SOCK_DIAG_BY_FAMILY`, the type of the question and of its answer.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const NO_COOKIE: u32 = u32::MAX;

/// The state of an established connection. In other states the user is not known: the kernel
/// reports root for a connection that is still being made, and for one that its process has closed.
const ESTABLISHED: u8 = 1;

/// Lengths in bytes: of a message's header, of a question with its header, and of an answer with
/// its header.
const HEADER: usize = 16;
const QUESTION: usize = HEADER + 56;
const ANSWER: usize = HEADER + 72;

/// Offsets in an answer.
const KIND: usize = 4;
const SEQUENCE: usize = 8;
const FAMILY: usize = HEADER;
const STATE: usize = HEADER + 1;
const LOCAL_PORT: usize = HEADER + 4;
const REMOTE_PORT: usize = HEADER + 6;
const LOCAL_IP: usize = HEADER + 8;
const REMOTE_IP: usize = HEADER + 24;
const UID: usize = HEADER + 64;

/// Asks about TCP sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    netlink: OwnedFd,
    /// The number of the last question.
    sequence: u32,
}

impl Sockets {
    /// # Errors
    /// The kernel does not answer such questions, or no descriptor is left.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed.
        let netlink = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
        Ok(Self {
            netlink: owned(netlink)?,
            sequence: 0,
        })
    }

    /// The user of the TCP socket of this host at `local` that is connected to `remote`. `None` if
    /// there is none.
    pub(crate) fn user_of(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = question(self.sequence, local, remote);
        socket::send(self.netlink.as_fd(), &question, &[]).ok()?;
        // The kernel answers within the call. An earlier answer belongs to an earlier question, and
        // could not be received then.
        loop {
            let mut answer = [0; 512];
            let got = socket::receive(self.netlink.as_fd(), &mut answer, &mut Vec::new()).ok()?;
            if at(&answer, SEQUENCE).map(u32::from_ne_bytes) == Some(self.sequence) {
                return user_in(answer.get(..got)?, local, remote);
            }
        }
    }
}

/// The user in an answer about the connection between these ends; `None` if it is about another
/// socket.
fn user_in(answer: &[u8], local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let is_answer =
        answer.len() >= ANSWER && at(answer, KIND).map(u16::from_ne_bytes) == Some(BY_FAMILY);
    let is_it = is_answer
        && answer[STATE] == ESTABLISHED
        && is_end(local, answer, LOCAL_IP, LOCAL_PORT)
        && is_end(remote, answer, REMOTE_IP, REMOTE_PORT);
    let uid = at(answer, UID).map(u32::from_ne_bytes);
    uid.filter(|_| is_it)
}

/// Whether an answer has this end of a connection at these offsets. An end of an IPv4 connection
/// may be in either family, because an IPv6 socket can make the connection too.
fn is_end(end: SocketAddr, answer: &[u8], ip: usize, port: usize) -> bool {
    let is_ipv4 = i32::from(answer[FAMILY]) == libc::AF_INET;
    let found: Option<IpAddr> = if is_ipv4 {
        at::<4>(answer, ip).map(|octets| Ipv4Addr::from(octets).into())
    } else {
        at::<16>(answer, ip).map(|octets| Ipv6Addr::from(octets).into())
    };
    let same_ip = found.is_some_and(|found| found.to_canonical() == end.ip().to_canonical());
    same_ip && at(answer, port).map(u16::from_be_bytes) == Some(end.port())
}

/// The bytes at a place of an answer.
fn at<const N: usize>(answer: &[u8], place: usize) -> Option<[u8; N]> {
    answer.get(place..place + N)?.try_into().ok()
}

/// `nlmsghdr` and `inet_diag_req_v2` (linux/netlink.h, linux/inet_diag.h).
fn question(sequence: u32, local: SocketAddr, remote: SocketAddr) -> [u8; QUESTION] {
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
    put(&sequence.to_ne_bytes());
    // The port of this netlink socket, which the kernel fills in.
    put(&[0; 4]);
    let byte = |number: i32| u8::try_from(number).unwrap_or_default();
    put(&[byte(family), byte(libc::IPPROTO_TCP), 0, 0]);
    // Sockets in every state.
    put(&u32::MAX.to_ne_bytes());
    put(&local.port().to_be_bytes());
    put(&remote.port().to_be_bytes());
    put(&address(local.ip()));
    put(&address(remote.ip()));
    put(&interface(local).to_ne_bytes());
    put(&NO_COOKIE.to_ne_bytes());
    put(&NO_COOKIE.to_ne_bytes());
    out
}

/// The interface to which a connection between link-local addresses is bound; 0 for others.
const fn interface(local: SocketAddr) -> u32 {
    match local {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(local) => local.scope_id(),
    }
}

/// An address in network byte order, IPv4 in the first four bytes.
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
