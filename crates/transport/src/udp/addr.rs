//! Socket addresses in the form the kernel reads them.
//!
//! Owns the conversion between [`SocketAddr`] and `sockaddr_in`/`sockaddr_in6`, and the check of
//! addresses to which packets may go. No I/O; called by `socket`, `peers` and `offer`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of a `sockaddr_in6`, the larger of the two.
const RAW_BYTES: usize = size_of::<libc::sockaddr_in6>();
const V4_BYTES: usize = size_of::<libc::sockaddr_in>();

const _: () = {
    assert!(RAW_BYTES == 28 && V4_BYTES == 16);
    assert!(align_of::<RawAddr>() >= align_of::<libc::sockaddr_in6>());
};

/// A `sockaddr_in` or `sockaddr_in6`, and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(4))]
pub(super) struct RawAddr {
    bytes: [u8; RAW_BYTES],
    len: u32,
}

impl RawAddr {
    /// Room for any address, for the kernel to fill.
    pub(super) const fn room() -> Self {
        Self {
            bytes: [0; RAW_BYTES],
            len: 28,
        }
    }

    /// No address: the datagram goes to the peer to which the socket is tied.
    pub(super) const TIED: Self = Self {
        bytes: [0; RAW_BYTES],
        len: 0,
    };

    /// The kernel's form of `addr`.
    pub(super) fn new(addr: SocketAddr) -> Self {
        let mut raw = Self::room();
        match addr {
            SocketAddr::V4(v4) => raw.fill_v4(v4),
            SocketAddr::V6(v6) => raw.fill_v6(v6),
        }
        raw
    }

    /// The address, or `None` if the family is neither IPv4 nor IPv6.
    pub(super) fn decode(&self) -> Option<SocketAddr> {
        let family = libc::c_int::from(u16::from_ne_bytes([self.bytes[0], self.bytes[1]]));
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        match family {
            libc::AF_INET => {
                let ip: [u8; 4] = self.bytes[4..8].try_into().ok()?;
                Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port))
            }
            libc::AF_INET6 => {
                let ip: [u8; 16] = self.bytes[8..24].try_into().ok()?;
                let scope = u32::from_ne_bytes(self.bytes[24..28].try_into().ok()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// The address for the kernel to read or write.
    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        self.bytes.as_mut_ptr().cast()
    }

    /// The address for the kernel to read. Where there is none, the kernel expects a null pointer.
    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        match self.len {
            0 => std::ptr::null(),
            _ => self.bytes.as_ptr().cast(),
        }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> libc::socklen_t {
        self.len
    }

    fn fill_v4(&mut self, addr: SocketAddrV4) {
        self.fill_family(libc::AF_INET, addr.port());
        self.bytes[4..8].copy_from_slice(&addr.ip().octets());
        self.len = 16;
    }

    fn fill_v6(&mut self, addr: SocketAddrV6) {
        self.fill_family(libc::AF_INET6, addr.port());
        self.bytes[8..24].copy_from_slice(&addr.ip().octets());
        self.bytes[24..28].copy_from_slice(&addr.scope_id().to_ne_bytes());
        self.len = 28;
    }

    fn fill_family(&mut self, family: libc::c_int, port: u16) {
        let family = u16::try_from(family).expect("address families are small numbers");
        self.bytes[..2].copy_from_slice(&family.to_ne_bytes());
        self.bytes[2..4].copy_from_slice(&port.to_be_bytes());
    }
}

/// True if packets may go there: one host, one port. An offer with a multicast or broadcast address
/// would turn the endpoint into an amplifier.
pub(super) fn is_endpoint(addr: SocketAddr) -> bool {
    // An IPv4 address in its IPv6 form counts as the IPv4 address.
    let ip = addr.ip().to_canonical();
    let is_broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    !is_broadcast && addr.port() != 0 && !ip.is_unspecified() && !ip.is_multicast()
}
