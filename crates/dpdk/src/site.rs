//! The place of a device in its network, from the text that names the transport: `dpdk:DEVICE`,
//! then `;` and the address, then perhaps `;` and arguments of DPDK.
//!
//! Pure. Called by programs, and by `port`.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use dunlin_packet::{IPV6, MAX_HEADER, UDP};
use dunlin_transport::udp::MIN_DATAGRAM_BYTES;

/// A device and its place in its network.
///
/// ```
/// use dunlin_dpdk::Site;
/// let site: Site = "net_memif0,role=client;ip=10.0.0.2/24,gw=10.0.0.1;--no-huge".parse()?;
/// assert_eq!(site.device, "net_memif0,role=client");
/// assert_eq!((site.prefix, site.mtu), (24, 0));
/// assert_eq!(site.arguments, ["--no-huge"]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The device, as the options `--vdev` and `-a` of DPDK name it: `net_memif0,role=client`, or
    /// `0000:01:00.0`.
    pub device: String,
    /// The device's address. No other host may have it, nor an interface of this host's kernel.
    pub ip: IpAddr,
    /// Bits that the addresses on the link have in common.
    pub prefix: u8,
    /// The router to all other addresses.
    pub gateway: Option<IpAddr>,
    /// The number of its VLAN; 0 if frames have no tag.
    pub vlan: u16,
    /// Bytes of the longest IP packet; 0: the device's own limit.
    pub mtu: u16,
    /// Packets in its pool, for all of its endpoints.
    pub packets: u32,
    /// If a packet has at least this number of data bytes, the device reads them in the msgbuf. The
    /// data of shorter packets are copied, and those of all packets if this is 0 or if the device
    /// cannot read msgbufs.
    pub lend: u32,
    /// The most queues for received packets. Each queue but the first serves one endpoint, by a
    /// rule of the device (rte_flow); all other endpoints share the first. Such rules are not
    /// tested on a device, because no driver with rules was available.
    pub queues: u16,
    /// Arguments for DPDK itself. All devices of a process have the same arguments.
    pub arguments: Vec<String>,
}

/// Where packets to an address go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hop {
    /// To an endpoint of the same device.
    Here,
    /// To the peer, if it is on the link, or to the gateway.
    Neighbour(IpAddr),
}

/// Packets in the pool of a device, unless the option `packets` says otherwise: enough for 11
/// endpoints. A pool takes least memory if it has one packet less than a power of two.
const PACKETS: u32 = 8191;

/// Fewest packets in a pool: enough for one endpoint.
const FEWEST: u32 = 4095;

/// The least and the greatest `mtu`. The least one has room for [`MIN_DATAGRAM_BYTES`]; with the
/// greatest one, a frame has 32 KiB or less. `Site` checks the range, because the `mtu` of an open
/// device cannot change.
const SHORTEST: u16 = 624;
const LONGEST: u16 = 32_700;
const _: () = assert!(SHORTEST as usize == MIN_DATAGRAM_BYTES as usize + IPV6 + UDP);
const _: () = assert!(LONGEST as usize + MAX_HEADER <= 1 << 15);

/// The most packets that an endpoint holds: 32 that it has received, 32 that it fills to send them,
/// and 192 in the pool's cache for its thread.
const EACH: u32 = 64 + 192;

/// The most packets whose data an endpoint lends to its device at a time.
const LENT: u32 = 512;
const _: () = assert!(LENT as usize == crate::lend::MOST);

/// Packets of the thread that keeps the device: 32 in reserve, and 192 in the pool's cache for it.
const KEEPER: u32 = 32 + 192;

/// The most queues for received packets.
const MOST_QUEUES: u16 = 64;

/// The form of the text.
const FORM: &str = "DEVICE;ip=ADDRESS/BITS[,gw=ADDRESS][,vlan=N][,mtu=BYTES]\
                               [,packets=N][,lend=BYTES][,queues=N][;ARGUMENTS OF DPDK]";

impl Site {
    /// The name of the device, without its arguments.
    pub(crate) fn name(&self) -> &str {
        name_of(&self.device)
    }

    /// Whether an address is on the link of the device.
    pub fn is_on_link(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                let differs = own.to_bits() ^ ip.to_bits();
                differs.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                let differs = own.to_bits() ^ ip.to_bits();
                differs.leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }

    /// The most packets that wait until neighbours answer with their hardware addresses.
    pub(crate) fn most_held(&self) -> usize {
        self.packets as usize / 8
    }

    /// The most packets in the inboxes of all endpoints.
    pub(crate) fn most_in_inboxes(&self) -> usize {
        self.packets as usize / 4
    }

    /// Checks that the pool has packets for all holders. Packets that wait for neighbours or in
    /// inboxes may take three eighths of it; the rest is for the descriptors of all queues, for
    /// the reserve, and for the endpoints.
    ///
    /// # Errors
    /// The number of packets that would be enough.
    pub(crate) fn check_pool(&self, descriptors: u32, endpoints: u32) -> Result<(), String> {
        let lent = if self.lend > 0 { LENT } else { 0 };
        let held = (1 + u32::from(self.queues)) * descriptors + KEEPER + (EACH + lent) * endpoints;
        let needed = (held * 8).div_ceil(5);
        if needed <= self.packets {
            return Ok(());
        }
        Err(format!(
            "a device with {endpoints} endpoints needs packets={needed} or more, not {}",
            self.packets
        ))
    }

    /// The first hop of packets to an address; `None` if the device cannot reach it.
    pub(crate) fn hop(&self, to: IpAddr) -> Option<Hop> {
        if to.is_ipv4() != self.ip.is_ipv4() || to.is_loopback() {
            return None;
        }
        match to {
            to if to == self.ip => Some(Hop::Here),
            to if self.is_on_link(to) => Some(Hop::Neighbour(to)),
            _ => self.gateway.map(Hop::Neighbour),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = |why: &dyn fmt::Display| format!("{key}={value}: {why}");
        match key {
            "gw" => self.gateway = Some(value.parse().map_err(|why| wrong(&why))?),
            "vlan" => self.vlan = value.parse().map_err(|why| wrong(&why))?,
            "mtu" => self.mtu = value.parse().map_err(|why| wrong(&why))?,
            "lend" => self.lend = value.parse().map_err(|why| wrong(&why))?,
            "queues" => self.queues = value.parse().map_err(|why| wrong(&why))?,
            "packets" => self.packets = value.parse().map_err(|why| wrong(&why))?,
            _ => {
                return Err(format!(
                    "`{key}` is not one of ip, gw, vlan, mtu, packets, lend and queues; the form \
                     is {FORM}"
                ));
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Self, String> {
        let bits = if self.ip.is_ipv4() { 32 } else { 128 };
        if self.prefix == 0 || self.prefix > bits {
            return Err(format!(
                "a prefix has 1 to {bits} bits, not {}",
                self.prefix
            ));
        }
        if self.ip.is_unspecified() || self.ip.is_loopback() || self.ip.is_multicast() {
            return Err(format!("a device cannot have the address {}", self.ip));
        }
        if let Some(gateway) = self.gateway
            && (!self.is_on_link(gateway) || gateway == self.ip)
        {
            return Err(format!("the gateway {gateway} is not on the link"));
        }
        if self.vlan > 4094 {
            return Err(format!("a VLAN has a number up to 4094, not {}", self.vlan));
        }
        if self.mtu != 0 && !(SHORTEST..=LONGEST).contains(&self.mtu) {
            return Err(format!(
                "an mtu has {SHORTEST} to {LONGEST} bytes, not {}",
                self.mtu
            ));
        }
        if !(1..=MOST_QUEUES).contains(&self.queues) {
            let queues = self.queues;
            return Err(format!(
                "a device has 1 to {MOST_QUEUES} queues, not {queues}"
            ));
        }
        if self.queues > 1 && self.vlan != 0 {
            let text = "queues= cannot be used with vlan=: rules of devices match no tagged frames";
            return Err(text.to_owned());
        }
        if self.name().contains('=') {
            return Err(format!(
                "{} does not name a device: write it as for the options -a and --vdev of DPDK",
                self.device
            ));
        }
        if !(FEWEST..=1 << 22).contains(&self.packets) {
            return Err(format!(
                "a pool has {FEWEST} to 4194304 packets, not {}",
                self.packets
            ));
        }
        Ok(self)
    }
}

/// The device with the arguments that it gets.
///
/// In the pool for net_af_xdp, packets lie without gaps, so some of them cross the end of a page.
/// Without copying, the card reads such a packet in place, and both pages must be adjacent at the
/// addresses that the card uses; if they are not, the kernel drops the frame. So the kernel copies,
/// unless the operator says otherwise.
pub(crate) fn complete(device: &str) -> Cow<'_, str> {
    let mut parts = device.split(',');
    let name = parts.next().and_then(|it| it.rsplit(':').next());
    let is_af_xdp = name.is_some_and(|it| it.starts_with("net_af_xdp"));
    match is_af_xdp && !parts.any(|it| it.trim().starts_with("force_copy=")) {
        true => format!("{device},force_copy=1").into(),
        false => device.into(),
    }
}

/// The name of a device, without its arguments.
pub(crate) fn name_of(device: &str) -> &str {
    device.split_once(',').map_or(device, |(name, _)| name)
}

impl FromStr for Site {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ';');
        let device = parts.next().unwrap_or_default().trim();
        let options = parts.next().unwrap_or_default();
        let arguments = parts.next().unwrap_or_default();
        let mut options = options
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty());
        let ip = options.next().and_then(|it| it.strip_prefix("ip="));
        let (ip, prefix) = ip
            .and_then(|it| it.split_once('/'))
            .filter(|_| !device.is_empty())
            .ok_or_else(|| format!("the form is {FORM}"))?;
        let mut site = Self {
            device: device.to_owned(),
            ip: ip.parse().map_err(|why| format!("ip={ip}: {why}"))?,
            prefix: prefix.parse().map_err(|why| format!("/{prefix}: {why}"))?,
            gateway: None,
            vlan: 0,
            mtu: 0,
            packets: PACKETS,
            lend: 0,
            queues: 1,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        };
        for option in options {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            site.set(key, value)?;
        }
        site.check()
    }
}

#[cfg(test)]
mod tests;
