//! The place of the other endpoint of a session, as words of its row in the memory file: an IPv6 or
//! mapped IPv4 address, a port, and an index plus one. Zeros mean that it is unknown.
//!
//! Written by the writer of rows, read by `reader/snapshot.rs`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where an endpoint is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Whereabouts {
    /// The address at which its nexus listens, as far as this side knows.
    pub nexus: Option<SocketAddr>,
    /// Its index in that nexus. The side that accepted a connection from another process does not
    /// know it.
    pub endpoint: Option<u16>,
}

/// The columns, in the order of the words.
pub(crate) const COLUMNS: [&str; 4] = ["peer_ip_high", "peer_ip_low", "peer_port", "peer_endpoint"];

impl Whereabouts {
    pub(crate) fn words(self) -> [u64; COLUMNS.len()] {
        let ip = self.nexus.map_or(0, |nexus| match nexus.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        });
        let half = |shift: u32| u64::try_from(ip >> shift & u128::from(u64::MAX)).unwrap_or(0);
        [
            half(64),
            half(0),
            self.nexus.map_or(0, |nexus| nexus.port().into()),
            self.endpoint.map_or(0, |endpoint| u64::from(endpoint) + 1),
        ]
    }

    /// Reads words that any process may have written.
    pub(crate) fn of_words([high, low, port, endpoint]: [u64; COLUMNS.len()]) -> Self {
        let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
        let port = u16::try_from(port).ok().filter(|port| *port != 0);
        let endpoint = endpoint.checked_sub(1);
        Self {
            nexus: port.map(|port| SocketAddr::new(ip.to_canonical(), port)),
            endpoint: endpoint.and_then(|endpoint| u16::try_from(endpoint).ok()),
        }
    }
}

#[cfg(test)]
mod tests;
