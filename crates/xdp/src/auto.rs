//! `auto` over `xdp`: shared memory for peers of this host, AF_XDP for the others, and the kernel's
//! socket where AF_XDP does not reach.
//!
//! To its peers it looks like an `auto` endpoint over UDP. Called by programs and by the nexus.

use std::io;

use dunlin_core::transport::{Lane, LanePacket, TxSeq};
use dunlin_transport::auto::{Auto, HalvesOver, OpenRemote, OpenedRemote, Remote};
use dunlin_transport::{shm, udp};

use crate::open::{Options, Xdp};
use crate::receive::XdpRx;
use crate::transmit::XdpTx;

/// Shared memory, AF_XDP and the kernel's socket as one transport.
pub type AutoXdp = Auto<Xdp>;

/// Options of shared memory and of AF_XDP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AutoOptions {
    /// Shared memory. If it cannot be opened, the endpoint uses AF_XDP alone.
    pub shm: shm::Options,
    /// AF_XDP.
    pub xdp: Options,
}

impl Remote for Xdp {
    fn looks_are_cheap(_: &XdpRx) -> bool {
        true
    }

    #[inline]
    fn send_staged(tx: &mut XdpTx, lane: &Lane, packets: &[LanePacket]) -> TxSeq {
        tx.send_staged(lane, packets)
    }
}

/// Opens `xdp` for an `auto` endpoint whose program chooses the transport at run time. The
/// endpoint's options of UDP replace those in `self`.
impl OpenRemote for Options {
    fn open(&self, udp: udp::Options) -> io::Result<OpenedRemote> {
        let halves = Xdp::open(&Self {
            udp,
            ..self.clone()
        })?;
        Ok(OpenedRemote::new::<Xdp>("shm+xdp", halves))
    }
}

/// Opens an `auto` endpoint over `xdp` in the network namespace of the caller.
///
/// # Errors
/// Those of [`Xdp::open`], and `InvalidInput` for options of shared memory outside their limits.
pub fn open_auto(options: &AutoOptions) -> io::Result<HalvesOver<Xdp>> {
    AutoXdp::over(options.shm, |most| {
        Xdp::open(&Options {
            udp: options.xdp.udp.clone().with_data_up_to(most),
            ..options.xdp.clone()
        })
    })
}
