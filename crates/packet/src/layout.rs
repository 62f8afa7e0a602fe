//! The lengths, types and addresses of headers, in the order of their places in a frame. All other
//! files use it.

use std::net::SocketAddr;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Bytes of an Ethernet header without a tag.
pub const ETHERNET: usize = 14;
/// Bytes of an 802.1Q VLAN tag.
pub const TAG: usize = 4;
/// Bytes of an IPv4 header without options.
pub const IPV4: usize = 20;
/// Bytes of an IPv6 header without extensions.
pub const IPV6: usize = 40;
/// Bytes of a UDP header.
pub const UDP: usize = 8;

/// The type of a frame with IPv4.
pub const TYPE_IPV4: u16 = 0x0800;
/// The type of a frame with IPv6.
pub const TYPE_IPV6: u16 = 0x86DD;
/// The type of a frame with a VLAN tag.
pub const TYPE_TAG: u16 = 0x8100;
/// The protocol number of UDP in an IP header.
pub const PROTOCOL_UDP: u8 = 17;

/// The addresses that reach an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// IP address and UDP port.
    pub address: SocketAddr,
    /// The number of its VLAN; 0 if frames have no tag.
    pub vlan: u16,
    /// The Ethernet address of the interface.
    pub mac: Mac,
}

impl Home {
    /// Bytes of the headers of IP and UDP in front of a datagram's payload.
    pub fn ip_and_udp(&self) -> usize {
        UDP + if self.address.is_ipv4() { IPV4 } else { IPV6 }
    }
}
