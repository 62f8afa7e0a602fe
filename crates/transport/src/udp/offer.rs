//! Offers of `udp` endpoints, which the control plane carries: the addresses at which an endpoint
//! receives, and its sizes.
//!
//! Little-endian: version, bytes of data per packet, bytes of its receive buffers, number of
//! addresses, then each address as family (4 or 6), port, octets. Every received byte is checked;
//! the rest of the transport sees only a valid [`Terms`]. No I/O; called by `connect`.

use std::net::{IpAddr, SocketAddr};

use dunlin_wire::control::MIN_DATA_SIZE;

use super::addr::is_endpoint;
use super::options::MIN_DATAGRAM_BYTES;
use crate::connect::{ConnectError, MAX_OFFER_BYTES, Offer};

/// Version of the layout. Offers of other versions count as malformed.
const VERSION: u8 = 1;
/// The most addresses in an offer.
const MAX_ADDRESSES: usize = 4;
const FIXED_BYTES: usize = 10;
const ADDRESS_BYTES: usize = 1 + 2 + 16;
const _: () = assert!(FIXED_BYTES + MAX_ADDRESSES * ADDRESS_BYTES <= MAX_OFFER_BYTES);

/// The contents of an offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    /// Data bytes per packet that the endpoint would use.
    pub(super) data_size: u32,
    /// Longest datagram that the endpoint receives whole.
    pub(super) buffer: u32,
    /// The addresses at which the endpoint receives, in order of preference.
    pub(super) addresses: Vec<SocketAddr>,
}

impl Terms {
    /// The terms as an offer.
    pub(super) fn encode(&self) -> Offer {
        let mut bytes = vec![VERSION];
        bytes.extend(self.data_size.to_le_bytes());
        bytes.extend(self.buffer.to_le_bytes());
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        bytes.push(addresses.len().to_le_bytes()[0]);
        for addr in addresses {
            match addr.ip() {
                IpAddr::V4(v4) => push_address(&mut bytes, 4, addr.port(), &v4.octets()),
                IpAddr::V6(v6) => push_address(&mut bytes, 6, addr.port(), &v6.octets()),
            }
        }
        Offer {
            bytes,
            fds: Vec::new(),
        }
    }

    /// Reads and validates an offer.
    ///
    /// # Errors
    /// `Malformed` if the bytes are not an offer of this version, `Descriptor` if descriptors came
    /// with it, `Sizes` for sizes that no endpoint can have.
    pub(super) fn decode(offer: &Offer) -> Result<Self, ConnectError> {
        if !offer.fds.is_empty() {
            return Err(ConnectError::Descriptor);
        }
        let terms = parse(&offer.bytes).ok_or(ConnectError::Malformed)?;
        if terms.data_size < MIN_DATA_SIZE || terms.buffer < MIN_DATAGRAM_BYTES {
            return Err(ConnectError::Sizes);
        }
        Ok(terms)
    }

    /// The terms, reduced to the addresses to which packets may go.
    ///
    /// # Errors
    /// `ForeignAddress` if that leaves none.
    pub(super) fn within(&self, may_send: impl Fn(IpAddr) -> bool) -> Result<Self, ConnectError> {
        let mut terms = self.clone();
        let is_foreign = |addr: &SocketAddr| is_endpoint(*addr) && !may_send(addr.ip());
        terms.addresses.retain(|addr| !is_foreign(addr));
        if terms.addresses.is_empty() {
            return Err(ConnectError::ForeignAddress);
        }
        Ok(terms)
    }

    /// Finds the first address to which a socket bound to `own` can send. It names one host and one
    /// port, and is of the socket's family, or of either if the socket is for both.
    ///
    /// # Errors
    /// `Unreachable` if there is none.
    pub(super) fn address_for(
        &self,
        own: SocketAddr,
        both: bool,
    ) -> Result<SocketAddr, ConnectError> {
        let of_family = |addr: SocketAddr| both || addr.is_ipv4() == own.is_ipv4();
        let mut usable = self
            .addresses
            .iter()
            .copied()
            .filter(|addr| of_family(*addr) && is_endpoint(*addr));
        let mut addr = usable.next().ok_or(ConnectError::Unreachable)?;
        // A link-local address only has a meaning with the number of our own interface.
        if let (SocketAddr::V6(to), SocketAddr::V6(own)) = (&mut addr, own)
            && to.ip().is_unicast_link_local()
        {
            to.set_scope_id(own.scope_id());
        }
        // A socket for both families takes IPv4 addresses in their IPv6 form (RFC 3493, 3.7).
        if let (IpAddr::V4(v4), true) = (addr.ip(), own.is_ipv6()) {
            addr.set_ip(v4.to_ipv6_mapped().into());
        }
        Ok(addr)
    }
}

fn push_address(bytes: &mut Vec<u8>, family: u8, port: u16, octets: &[u8]) {
    bytes.push(family);
    bytes.extend(port.to_le_bytes());
    bytes.extend(octets);
}

fn parse(mut bytes: &[u8]) -> Option<Terms> {
    let at = &mut bytes;
    if take::<1>(at)? != [VERSION] {
        return None;
    }
    let data_size = u32::from_le_bytes(take(at)?);
    let buffer = u32::from_le_bytes(take(at)?);
    let [count] = take::<1>(at)?;
    if count == 0 || usize::from(count) > MAX_ADDRESSES {
        return None;
    }
    let addresses = (0..count)
        .map(|_| address(at))
        .collect::<Option<Vec<_>>>()?;
    at.is_empty().then_some(Terms {
        data_size,
        buffer,
        addresses,
    })
}

fn address(at: &mut &[u8]) -> Option<SocketAddr> {
    let [family] = take::<1>(at)?;
    let port = u16::from_le_bytes(take(at)?);
    let ip = match family {
        4 => IpAddr::from(take::<4>(at)?),
        6 => IpAddr::from(take::<16>(at)?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn take<const N: usize>(at: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = at.split_first_chunk::<N>()?;
    *at = rest;
    Some(*head)
}

#[cfg(test)]
mod tests;
