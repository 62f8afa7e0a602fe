//! The interface by which the nexus opens any transport for an endpoint.

use std::error::Error;
use std::net::IpAddr;

use dunlin_core::transport::{Halves, Transport};
use dunlin_transport::auto::{self, Auto};
use dunlin_transport::connect::Connect;
use dunlin_transport::networks::Networks;
use dunlin_transport::shm::{self, Shm};
use dunlin_transport::udp::{self, Udp};

/// Both halves of an opened transport, or why it could not be opened.
pub type Opened<T> =
    Result<Halves<<T as Transport>::Rx, <T as Transport>::Tx>, Box<dyn Error + Send + Sync>>;

/// The addresses of a nexus and of its peers, in the form for endpoints.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The address at which the nexus listens.
    pub ip: IpAddr,
    /// The address that peers get instead.
    pub advertise: Option<IpAddr>,
    /// Networks to which packets may go even if the peer has connected from another address, once
    /// the peer has proven that packets reach it there (rules C12 and C13).
    pub allow_peers: Networks,
}

/// A transport that a nexus can open for its endpoints.
pub trait Open: Connect + 'static {
    /// Its options.
    type Options;

    /// Its name for operators: at most eight letters.
    const LABEL: &'static str;

    /// The name of an endpoint whose options may have chosen another transport than its type.
    fn label(_tx: &Self::Tx) -> &'static str {
        Self::LABEL
    }

    /// The default options of an endpoint whose nexus has these addresses.
    fn defaults(nexus: &Reach) -> Self::Options;

    /// Opens both halves.
    ///
    /// # Errors
    /// The transport's error.
    fn open_halves(options: Self::Options) -> Opened<Self>;
}

impl Open for Shm {
    type Options = shm::Options;
    const LABEL: &'static str = "shm";

    fn defaults(_: &Reach) -> shm::Options {
        shm::Options::default()
    }

    fn open_halves(options: shm::Options) -> Opened<Self> {
        Ok(Self::open(options)?)
    }
}

impl Open for Udp {
    type Options = udp::Options;
    const LABEL: &'static str = "udp";

    fn defaults(nexus: &Reach) -> udp::Options {
        udp::Options {
            ip: nexus.ip,
            advertise: nexus.advertise,
            allow_peers: nexus.allow_peers.clone(),
            ..udp::Options::default()
        }
    }

    fn open_halves(options: udp::Options) -> Opened<Self> {
        Ok(Self::open(&options)?)
    }
}

impl Open for Auto {
    type Options = auto::Options;
    const LABEL: &'static str = "auto";

    fn defaults(nexus: &Reach) -> auto::Options {
        auto::Options {
            shm: Shm::defaults(nexus),
            udp: Udp::defaults(nexus),
            remote: None,
        }
    }

    fn label(tx: &Self::Tx) -> &'static str {
        tx.remote().label().unwrap_or(Self::LABEL)
    }

    fn open_halves(options: auto::Options) -> Opened<Self> {
        Ok(Self::open(&options)?)
    }
}

#[cfg(feature = "xdp")]
impl Open for dunlin_xdp::AutoXdp {
    type Options = dunlin_xdp::AutoOptions;
    const LABEL: &'static str = "shm+xdp";

    /// The options lack the interface, which has no default.
    fn defaults(nexus: &Reach) -> dunlin_xdp::AutoOptions {
        dunlin_xdp::AutoOptions {
            shm: Shm::defaults(nexus),
            xdp: dunlin_xdp::Xdp::defaults(nexus),
        }
    }

    fn open_halves(options: dunlin_xdp::AutoOptions) -> Opened<Self> {
        Ok(dunlin_xdp::open_auto(&options)?)
    }
}

#[cfg(feature = "xdp")]
impl Open for dunlin_xdp::Xdp {
    type Options = dunlin_xdp::Options;
    const LABEL: &'static str = "xdp";

    /// The options lack the interface, which has no default.
    fn defaults(nexus: &Reach) -> dunlin_xdp::Options {
        dunlin_xdp::Options {
            udp: Udp::defaults(nexus),
            ..dunlin_xdp::Options::default()
        }
    }

    fn open_halves(options: dunlin_xdp::Options) -> Opened<Self> {
        Ok(Self::open(&options)?)
    }
}

#[cfg(feature = "dpdk")]
impl Open for dunlin_dpdk::AutoDpdk {
    type Options = dunlin_dpdk::AutoOptions;
    const LABEL: &'static str = "shm+dpdk";

    /// The options lack the device, which has no default.
    fn defaults(nexus: &Reach) -> dunlin_dpdk::AutoOptions {
        dunlin_dpdk::AutoOptions {
            shm: Shm::defaults(nexus),
            dpdk: dunlin_dpdk::Dpdk::defaults(nexus),
        }
    }

    fn open_halves(options: dunlin_dpdk::AutoOptions) -> Opened<Self> {
        Ok(dunlin_dpdk::open_auto(&options)?)
    }
}

#[cfg(feature = "dpdk")]
impl Open for dunlin_dpdk::Dpdk {
    type Options = dunlin_dpdk::Options;
    const LABEL: &'static str = "dpdk";

    /// The options lack the device, which has no default.
    fn defaults(nexus: &Reach) -> dunlin_dpdk::Options {
        dunlin_dpdk::Options {
            udp: Udp::defaults(nexus),
            ..dunlin_dpdk::Options::default()
        }
    }

    fn open_halves(options: dunlin_dpdk::Options) -> Opened<Self> {
        Ok(Self::open(&options)?)
    }
}
