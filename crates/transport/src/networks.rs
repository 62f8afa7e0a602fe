//! Networks that an operator allows, as addresses with a number of leading bits. An endpoint sends
//! packets to an address in one of them even if the peer that offers the address has connected from
//! elsewhere.
//!
//! This file does no I/O. The program or its settings make the list; `udp` consults it when a peer
//! offers an address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A list of networks; empty by default.
///
/// ```
/// use dunlin_transport::networks::Networks;
/// let allowed: Networks = "10.1.0.0/16, 2001:db8::/32, 192.0.2.7".parse().unwrap();
/// assert!(allowed.contains([10, 1, 2, 3].into()));
/// assert!(!allowed.contains([10, 2, 2, 3].into()));
/// assert_eq!(allowed.to_string(), "10.1.0.0/16, 2001:db8::/32, 192.0.2.7/32");
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Networks(Vec<Network>);

/// Addresses that have the first `bits` bits in common with `base`, whose other bits are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    base: IpAddr,
    bits: u8,
}

/// A text that is not a list of networks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoNetwork(String);

impl Networks {
    /// Whether one of the networks contains the address. An IPv4 address in its IPv6 form counts as
    /// that IPv4 address.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(ip))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Network {
    fn contains(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.base.is_ipv4() && masked(ip, self.bits) == self.base
    }
}

/// The address with all bits but the first ones cleared.
fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

impl FromStr for Networks {
    type Err = NoNetwork;

    /// Reads addresses and networks (`ADDRESS/BITS`) separated by commas.
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let parts = text.split(',').map(str::trim);
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let wrong = || NoNetwork(text.to_owned());
        let (ip, bits) = match text.split_once('/') {
            Some((ip, bits)) => (ip, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let base: IpAddr = ip.parse().map_err(|_| wrong())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        // A bit that is set after the first ones is probably a mistake: with 10.1.0.0/8 the user
        // may have meant 10.1.0.0/16.
        if bits > most || masked(base, bits) != base {
            return Err(wrong());
        }
        Ok(Self { base, bits })
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Network { base, bits }) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { ", " };
            write!(f, "{between}{base}/{bits}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a network; write `10.1.0.0/16`, with no bit set after the first 16",
            self.0
        )
    }
}

impl std::error::Error for NoNetwork {}

#[cfg(test)]
mod tests;
