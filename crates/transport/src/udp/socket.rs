//! The socket of an endpoint: opened once, shared by both halves, and closed with the last half.
//!
//! Owns the descriptor, and knows which features the kernel has. Invariant: the socket is bound and
//! non-blocking. It is connected only while there is a single peer, and then to that peer (`tie`).
//! So an error that a network reports about one peer (ICMP) does not show up in a call that
//! concerns another. Called by `mod`, `tx` and `rx`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dunlin_core::config::DEFAULT_CREDITS;
use libc::c_int;

use super::addr::RawAddr;
use super::offer::Terms;
use super::options::{Ecn, MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Options, WINDOWS_BUFFERED};
use super::tie::{Aim, Tie};
use super::{MAX_FRAMING, ffi};
use crate::connect::{ConnectError, PeerInfo};
use crate::networks::Networks;

/// Number of chosen ports that may turn out to be taken before the endpoint gives up.
const MOST_PORTS: u32 = 64;

/// "ECN-capable transport (0)" in both ECN bits (RFC 3168).
const ECT_0: c_int = 0b10;

/// A bound socket and its features.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    /// Address to which the socket is bound.
    pub(super) bound: SocketAddr,
    /// The address that offers contain instead of the bound one.
    advertise: Option<IpAddr>,
    /// Networks in which any peer may offer an address.
    allow_peers: Networks,
    /// Whether the socket is for both IPv6 and IPv4.
    both_families: bool,
    /// Whether `UDP_SEGMENT` is wanted, and known to the kernel.
    pub(super) gso: bool,
    /// Whether `UDP_GRO` is wanted, and known to the kernel. It is off until `rx` turns it on.
    pub(super) gro: bool,
    /// Whether ECN bits are read.
    pub(super) ecn: bool,
    /// Bytes of a datagram that holds several packets.
    pub(super) datagram: u32,
    /// Data bytes per packet over a network.
    pub(super) data_size: u32,
    /// Data bytes per packet from a peer that reaches us at a loopback address.
    pub(super) loopback_data_size: u32,
    /// The largest of these sizes that some peer can use.
    pub(super) largest: u32,
    /// Packets of that size that fit into the receive buffer, at least 1.
    pub(super) rx_queue: u32,
    tie: Tie,
}

impl Socket {
    /// Opens, tunes and binds the socket.
    ///
    /// # Errors
    /// `InvalidInput` for options that contradict each other or a limit; otherwise the kernel's
    /// error.
    pub(super) fn open(options: &Options) -> io::Result<Self> {
        let datagram = datagram_bytes(options)?;
        let is_v6 = options.ip.is_ipv6();
        let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
        let owned = ffi::datagram_socket(family)?;
        let fd = owned.as_fd();
        let ecn = match options.ecn {
            Ecn::Auto => !options.ip.is_loopback(),
            Ecn::On => true,
            Ecn::Off => false,
        };
        let ecn = mark_ecn(fd, is_v6, ecn);
        if options.busy_poll_us > 0 {
            let micros = c_int::try_from(options.busy_poll_us)
                .map_err(|_| invalid("busy_poll_us is too large"))?;
            ffi::set_option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, micros)?;
        }
        ask_for_buffer(
            fd,
            libc::SO_SNDBUF,
            libc::SO_SNDBUFFORCE,
            options.sndbuf_bytes,
        );
        ask_for_buffer(
            fd,
            libc::SO_RCVBUF,
            libc::SO_RCVBUFFORCE,
            options.rcvbuf_bytes,
        );
        let granted = ffi::option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        let gso = options.gso && ffi::set_option(fd, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        let gro = options.gro && ffi::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 0).is_ok();
        let bound = bind(fd, family, SocketAddr::new(options.ip, options.port))?;
        let both_families = is_v6 && bound.ip().is_unspecified() && !is_only_v6(fd);
        let wrong = |ip: &IpAddr| ip.is_unspecified() || (ip.is_ipv6() != is_v6 && !both_families);
        if options.advertise.as_ref().is_some_and(wrong) {
            return Err(invalid(
                "advertise is not an address of the socket's family to which peers can send",
            ));
        }
        let granted = u32::try_from(granted).unwrap_or(0);
        let (data_size, fits) = (
            options.data_size,
            granted / (WINDOWS_BUFFERED * DEFAULT_CREDITS),
        );
        let loopback_data_size = options.loopback_data_size.min(fits.max(data_size));
        let largest = if bound.ip().is_unspecified() || bound.ip().to_canonical().is_loopback() {
            data_size.max(loopback_data_size)
        } else {
            data_size
        };
        let rx_queue = (granted / charge(largest + MAX_FRAMING)).max(1);
        Ok(Self {
            fd: owned,
            bound,
            advertise: options.advertise,
            allow_peers: options.allow_peers.clone(),
            both_families,
            gso,
            gro,
            ecn,
            datagram,
            data_size,
            loopback_data_size,
            largest,
            rx_queue,
            tie: Tie::default(),
        })
    }

    /// Takes the only peer of the endpoint: its address, and our end of the control connection with
    /// it. `None`: there is no peer, or several, or soon may be.
    pub(super) fn on_only_peer(&self, only: Option<Aim>) {
        // Packets to an advertised address arrive at one that we do not know. An IPv6 socket would
        // get no datagrams from other hosts after it is untied, because the kernel then keeps the
        // peer's address (Linux 6.18).
        let may_tie = self.advertise.is_none() && self.bound.is_ipv4();
        let only = only.filter(|_| may_tie);
        self.tie.take_aim(self.fd(), only);
    }

    #[inline]
    pub(super) fn is_tied(&self) -> bool {
        self.tie.is_tied()
    }

    /// Whether [`Self::on_source`] wants the sources of datagrams.
    #[inline]
    pub(super) fn wants_sources(&self) -> bool {
        self.tie.is_watching()
    }

    /// Notes that a datagram has come from this address.
    pub(super) fn on_source(&self, source: &RawAddr) {
        self.tie.on_source(self.fd(), source);
    }

    /// The descriptor.
    #[inline]
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The addresses at which a peer reaches the socket, in order of preference; empty if there are
    /// none.
    ///
    /// `local` is our end of the control connection with the peer. `None`: the connection is a UNIX
    /// socket, so both are on one host and share a loopback interface.
    pub(super) fn addresses(&self, local: Option<SocketAddr>) -> Vec<SocketAddr> {
        let port = self.bound.port();
        if let Some(ip) = self.advertise {
            return vec![SocketAddr::new(ip, port)];
        }
        if !self.bound.ip().is_unspecified() {
            return vec![self.bound];
        }
        let candidates = match local {
            Some(local) => vec![local.ip().to_canonical()],
            None => vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()],
        };
        let ours = |ip: &IpAddr| self.both_families || ip.is_ipv6() == self.bound.is_ipv6();
        let ours = candidates.into_iter().filter(ours);
        ours.map(|ip| SocketAddr::new(ip, port)).collect()
    }

    /// Whether packets may go to this address: it is the peer's, or the operator allows it and the
    /// peer can prove it (rules C12 and C13).
    pub(super) fn may_send(&self, peer: &PeerInfo, ip: IpAddr) -> bool {
        peer.has(ip, is_of_this_host) || (peer.proves && self.allow_peers.contains(ip))
    }

    /// Whether the peer has connected from an address other than this one.
    pub(super) fn is_foreign(peer: &PeerInfo, ip: IpAddr) -> bool {
        !peer.has(ip, is_of_this_host)
    }

    /// Data bytes in a packet from a peer that reaches us at `addresses`.
    pub(super) fn data_size_at(&self, addresses: &[SocketAddr]) -> u32 {
        let is_loopback = |addr: &SocketAddr| addr.ip().to_canonical().is_loopback();
        if addresses.iter().all(is_loopback) {
            self.loopback_data_size
        } else {
            self.data_size
        }
    }

    /// The address at which we reach the peer that sent `terms`. `local`: as for
    /// [`Self::addresses`].
    ///
    /// # Errors
    /// `Unreachable` if it has no address that this socket can send to.
    pub(super) fn address_of(
        &self,
        terms: &Terms,
        local: Option<SocketAddr>,
    ) -> Result<SocketAddr, ConnectError> {
        // Unlike the wildcard address, `local` has the scope of link-local addresses.
        let is_any_v6 = self.bound.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let scoped = local.filter(|addr| is_any_v6 && addr.is_ipv6());
        terms.address_for(scoped.unwrap_or(self.bound), self.both_families)
    }

    /// Turns `UDP_GRO` on or off; `false` if the kernel refused.
    pub(super) fn set_gro(&self, on: bool) -> bool {
        ffi::set_option(self.fd(), libc::SOL_UDP, libc::UDP_GRO, c_int::from(on)).is_ok()
    }
}

/// Binds the socket, and returns its address. If the kernel must choose a port, it chooses it for
/// another socket first, because a socket that did not name its port loses it when it is untied.
fn bind(fd: BorrowedFd<'_>, family: c_int, at: SocketAddr) -> io::Result<SocketAddr> {
    let mut tries = 0;
    loop {
        let mut named = at;
        if at.port() == 0 {
            let other = ffi::datagram_socket(family)?;
            ffi::bind(other.as_fd(), at)?;
            named.set_port(ffi::local_addr(other.as_fd())?.port());
        }
        match ffi::bind(fd, named) {
            // Another process was given the port in between.
            Err(error) if at.port() == 0 && is_taken(&error) && tries < MOST_PORTS => tries += 1,
            Err(error) => return Err(error),
            Ok(()) => return ffi::local_addr(fd),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// Whether a socket can be bound to the address, which the kernel permits for the addresses of its
/// interfaces.
pub(super) fn is_of_this_host(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Bytes of a datagram, from the options.
fn datagram_bytes(options: &Options) -> io::Result<u32> {
    let datagram = options.datagram_from(options.ip);
    if !(MIN_DATAGRAM_BYTES..=MAX_DATAGRAM_BYTES).contains(&datagram) {
        return Err(invalid("datagram_bytes is outside its limits"));
    }
    let data_sizes = 1..=MAX_DATAGRAM_BYTES - MAX_FRAMING;
    if !data_sizes.contains(&options.data_size) {
        return Err(invalid("data_size is outside its limits"));
    }
    if !data_sizes.contains(&options.loopback_data_size) {
        return Err(invalid("loopback_data_size is outside its limits"));
    }
    Ok(datagram)
}

/// The bytes that the kernel charges the receive buffer for a datagram, or a little more: it rounds
/// the length up to a power of two and adds its `sk_buff`. Measured on Linux 6: 2304 bytes for
/// 1464, 8456 for 4120, 17 190 for 16 344.
const fn charge(datagram: u32) -> u32 {
    let rounded = datagram.next_power_of_two();
    rounded + rounded / 8
}

/// True if the IPv6 socket does not also receive IPv4 (RFC 3493, 5.3).
fn is_only_v6(fd: BorrowedFd<'_>) -> bool {
    ffi::option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY).is_ok_and(|only| only != 0)
}

/// Sets ECT(0) on sent datagrams, and asks for the bits of received ones. False if the kernel does
/// not deliver the bits.
fn mark_ecn(fd: BorrowedFd<'_>, is_v6: bool, read: bool) -> bool {
    let (level, send, receive) = if is_v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_RECVTCLASS)
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_RECVTOS)
    };
    // If this fails, the network drops packets that it could have marked, which is slower but not
    // wrong.
    let _ = ffi::set_option(fd, level, send, ECT_0);
    read && ffi::set_option(fd, level, receive, 1).is_ok()
}

/// Asks for a buffer size: beyond the system's limit if this process may, otherwise up to the
/// limit.
fn ask_for_buffer(fd: BorrowedFd<'_>, name: c_int, forced: c_int, bytes: u32) {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    if ffi::set_option(fd, libc::SOL_SOCKET, forced, bytes).is_err() {
        // The granted size is read back later, so a refusal needs no handling here.
        let _ = ffi::set_option(fd, libc::SOL_SOCKET, name, bytes);
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
