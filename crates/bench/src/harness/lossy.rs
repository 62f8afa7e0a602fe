//! Kernel UDP with losses: a receiving half that wraps the one of `udp` and drops some frames,
//! without the transport's knowledge. A frame is one datagram, or several that the kernel has
//! merged.
//!
//! Invariant: the seed and the order of frames determine which frames are lost. Called by the event
//! loop and the nexus of an experiment's processes.

use std::os::fd::RawFd;

use dunlin::transport::{Counters, UdpOptions};
use dunlin::{Open, Udp};
use dunlin_core::transport::{Frame, Halves, PeerId, RX_BURST, Rx, Transport};
use dunlin_nexus::{Opened, Reach};
use dunlin_sim::world::rng::{Ppm, Rng};
use dunlin_transport::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use dunlin_transport::udp::{UdpRx, UdpTx};

use super::subject::Loss;

/// The transport.
#[derive(Debug)]
pub(crate) struct LossyUdp;

/// The settings.
#[derive(Debug)]
pub(crate) struct LossyOptions {
    pub(crate) udp: UdpOptions,
    pub(crate) loss: Loss,
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct LossyRx {
    udp: UdpRx,
    loss: Ppm,
    rng: Rng,
    /// Indices, within the burst, of the frames that are not dropped.
    kept: [usize; RX_BURST],
}

impl Rx for LossyRx {
    fn burst(&mut self) -> usize {
        let mut count = 0;
        for index in 0..self.udp.burst() {
            if !self.rng.chance(self.loss) {
                self.kept[count] = index;
                count += 1;
            }
        }
        count
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        self.udp.frame(self.kept[index])
    }
}

impl Transport for LossyUdp {
    type Rx = LossyRx;
    type Tx = UdpTx;
}

impl Open for LossyUdp {
    const LABEL: &'static str = Udp::LABEL;
    type Options = LossyOptions;

    fn defaults(nexus: &Reach) -> LossyOptions {
        LossyOptions {
            udp: Udp::defaults(nexus),
            loss: Loss {
                per_million: 0,
                seed: 0,
            },
        }
    }

    fn open_halves(options: LossyOptions) -> Opened<Self> {
        let Halves { rx, tx, limits } = Udp::open_halves(options.udp)?;
        let rx = LossyRx {
            udp: rx,
            loss: Ppm(options.loss.per_million),
            rng: Rng::new(options.loss.seed),
            kept: [0; RX_BURST],
        };
        Ok(Halves { rx, tx, limits })
    }
}

impl Connect for LossyUdp {
    const KIND: u8 = Udp::KIND;

    fn offer(
        rx: &mut LossyRx,
        tx: &mut UdpTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        Udp::offer(&mut rx.udp, tx, peer)
    }

    fn accept(
        rx: &mut LossyRx,
        tx: &mut UdpTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        Udp::accept(&mut rx.udp, tx, peer, offer)
    }

    fn complete(
        rx: &mut LossyRx,
        tx: &mut UdpTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        Udp::complete(&mut rx.udp, tx, pending, answer)
    }

    fn data_size(rx: &LossyRx, tx: &UdpTx, peer: PeerId) -> u32 {
        Udp::data_size(&rx.udp, tx, peer)
    }

    fn abandon(rx: &mut LossyRx, tx: &mut UdpTx, pending: Pending) {
        Udp::abandon(&mut rx.udp, tx, pending);
    }

    fn release(rx: &mut LossyRx, tx: &mut UdpTx, peer: PeerId) {
        Udp::release(&mut rx.udp, tx, peer);
    }

    fn remove(rx: &mut LossyRx, tx: &mut UdpTx, peer: PeerId) {
        Udp::remove(&mut rx.udp, tx, peer);
    }

    fn fds(rx: &LossyRx, tx: &UdpTx, out: &mut Vec<RawFd>) {
        Udp::fds(&rx.udp, tx, out);
    }

    fn arm(rx: &mut LossyRx, tx: &mut UdpTx) -> Arm {
        Udp::arm(&mut rx.udp, tx)
    }

    fn disarm(rx: &mut LossyRx, tx: &mut UdpTx) {
        Udp::disarm(&mut rx.udp, tx);
    }

    fn counters(rx: &LossyRx, tx: &UdpTx) -> Counters {
        Udp::counters(&rx.udp, tx)
    }
}
