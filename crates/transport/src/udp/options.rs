//! Options of the `udp` transport, with defaults that work everywhere.
//!
//! Plain data; read once, when the endpoint is opened. `socket` checks the limits then.

use std::net::{IpAddr, Ipv4Addr};

use dunlin_core::Nanos;

use crate::networks::Networks;

/// Smallest setting for the bytes of a datagram: every IPv4 host must accept datagrams of this size
/// (RFC 791).
pub const MIN_DATAGRAM_BYTES: u32 = 576;

/// Largest setting for the bytes of a datagram: 65 535 less the headers of IPv6 and UDP.
pub const MAX_DATAGRAM_BYTES: u32 = super::pack::MAX_MESSAGE_BYTES;

/// The receive buffer has room for at least this many default windows of loopback packets.
pub const WINDOWS_BUFFERED: u32 = 2;

/// Whether the endpoint reads the ECN bits of received datagrams. Reading them costs about 3 % of a
/// round trip over loopback, where no router can set them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Unless the socket is bound to a loopback address.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Options of one `udp` endpoint.
///
/// ```
/// use dunlin_transport::udp::{Options, Udp};
/// let halves = Udp::open(&Options { pack: false, ..Options::default() }).unwrap();
/// assert!(halves.limits.data_size >= 1440);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Address to bind, usually the nexus's. Default: IPv4 loopback.
    pub ip: IpAddr,
    /// Port to bind; 0 lets the system choose.
    pub port: u16,
    /// The address in offers. `None`: the bound address, or, if that is the unspecified address,
    /// the address of our end of the control connection with the peer (loopback if the connection
    /// is a UNIX socket).
    pub advertise: Option<IpAddr>,
    /// Networks in which a peer may offer an address other than the one from which it connects.
    /// Packets go there once the peer has proven that they reach it (rules C12 and C13).
    pub allow_peers: Networks,
    /// The most data bytes in one packet, without header and extension.
    pub data_size: u32,
    /// The most data bytes for peers at a loopback address, where no link has an MTU of 1500 and
    /// the cost of a packet hardly depends on its size. The endpoint lowers this until the receive
    /// buffer has room for [`WINDOWS_BUFFERED`] default windows of such packets, but not below
    /// `data_size`.
    pub loopback_data_size: u32,
    /// The most bytes of a datagram that holds several packets. `None`: the bytes that fit an MTU
    /// of 1500 (1472 with IPv4, 1452 with IPv6). For a peer whose full packets are larger, the
    /// limit is one full packet. A packet is never split: a packet above the limit is sent alone,
    /// and the kernel fragments it if necessary.
    pub datagram_bytes: Option<u32>,
    /// Whether several packets to one peer share a datagram.
    pub pack: bool,
    /// Whether several datagrams to one peer go to the kernel as one message, which is split later
    /// (`UDP_SEGMENT`).
    pub gso: bool,
    /// Whether several datagrams may be received as one buffer (`UDP_GRO`).
    pub gro: bool,
    /// Whether ECN bits are read. Sent datagrams always have ECT(0).
    pub ecn: Ecn,
    /// Microseconds for which the kernel polls the device when the socket is empty
    /// (`SO_BUSY_POLL`); 0: no polling.
    pub busy_poll_us: u32,
    /// Bytes of the receive buffer to ask for. The kernel may grant less; the endpoint computes
    /// its `rx_queue` from the granted bytes.
    pub rcvbuf_bytes: u32,
    /// Bytes of the send buffer to ask for. The kernel may grant less.
    pub sndbuf_bytes: u32,
    /// Rate of the link in bytes per second, from which congestion control starts.
    pub line_rate: u64,
    /// Round trip of a small packet through the empty network, if the operator knows it. Otherwise
    /// ([`Nanos::ZERO`]) sessions measure it, and a session that is opened while the network is
    /// full mistakes that state for the empty network. An endpoint that has this round trip also
    /// sends the packets of large responses no faster than `line_rate`, so set both.
    pub base_rtt: Nanos,
    /// The most peers at a time.
    pub max_peers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            advertise: None,
            allow_peers: Networks::default(),
            data_size: 1440,
            // Four such packets are one message to the kernel (`pack::MAX_MESSAGE_BYTES`).
            loopback_data_size: 16_320,
            datagram_bytes: None,
            pack: true,
            gso: true,
            gro: true,
            ecn: Ecn::Auto,
            busy_poll_us: 0,
            rcvbuf_bytes: 4 << 20,
            sndbuf_bytes: 4 << 20,
            // 25 Gbit/s.
            line_rate: 3_125_000_000,
            base_rtt: Nanos::ZERO,
            max_peers: 1 << 16,
        }
    }
}

impl Options {
    /// The most bytes of a datagram that holds several packets, from an endpoint at this address.
    pub(super) fn datagram_from(&self, ip: IpAddr) -> u32 {
        let fits_mtu_1500 = match ip {
            IpAddr::V4(_) => 1500 - 20 - 8,
            IpAddr::V6(_) => 1500 - 40 - 8,
        };
        self.datagram_bytes.unwrap_or(fits_mtu_1500)
    }

    /// These options with at most `most` data bytes in a packet to any peer.
    #[must_use]
    pub fn with_data_up_to(self, most: u32) -> Self {
        Self {
            data_size: self.data_size.min(most),
            loopback_data_size: self.loopback_data_size.min(most),
            ..self
        }
    }
}
