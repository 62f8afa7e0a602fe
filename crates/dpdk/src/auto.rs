//! `auto` over `dpdk`: shared memory for peers of this host, the device for the others.
//!
//! To its peers it looks like an `auto` endpoint over UDP. Called by programs and by the nexus.

use std::io;

use dunlin_core::transport::{Lane, LanePacket, TxSeq};
use dunlin_transport::auto::{Auto, HalvesOver, OpenRemote, OpenedRemote, Remote};
use dunlin_transport::{shm, udp};

use crate::open::{Dpdk, Options};
use crate::receive::DpdkRx;
use crate::transmit::DpdkTx;

/// Shared memory and DPDK as one transport.
pub type AutoDpdk = Auto<Dpdk>;

/// Options of shared memory and of DPDK.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AutoOptions {
    /// Shared memory. If it cannot be opened, the endpoint uses DPDK alone.
    pub shm: shm::Options,
    /// DPDK.
    pub dpdk: Options,
}

impl Remote for Dpdk {
    fn looks_are_cheap(_: &DpdkRx) -> bool {
        true
    }

    #[inline]
    fn send_staged(tx: &mut DpdkTx, lane: &Lane, packets: &[LanePacket]) -> TxSeq {
        tx.send_staged(lane, packets, &[])
    }
}

/// Opens `dpdk` for an `auto` endpoint whose program chooses the transport at run time. The
/// endpoint's options of UDP replace those in `self`.
impl OpenRemote for Options {
    fn open(&self, udp: udp::Options) -> io::Result<OpenedRemote> {
        let halves = Dpdk::open(&Self {
            udp,
            ..self.clone()
        })?;
        Ok(OpenedRemote::new::<Dpdk>("shm+dpdk", halves))
    }
}

/// Opens an `auto` endpoint over `dpdk`.
///
/// # Errors
/// Those of [`Dpdk::open`], and `InvalidInput` for options of shared memory outside their limits.
pub fn open_auto(options: &AutoOptions) -> io::Result<HalvesOver<Dpdk>> {
    AutoDpdk::over(options.shm, |most| {
        Dpdk::open(&Options {
            udp: options.dpdk.udp.clone().with_data_up_to(most),
            ..options.dpdk.clone()
        })
    })
}
