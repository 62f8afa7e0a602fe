//! A transport with losses: a receiving half that wraps the receiving half of `udp`, `xdp` or
//! `dpdk`. It drops some frames, or delays them, without the transport's knowledge. A frame is one
//! datagram, or several that the kernel has merged.
//!
//! Invariant: the seed and the order of frames determine which frames are lost or late. Called by
//! the event loop and the nexus of an experiment's processes.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::RawFd;

use dunlin::transport::Counters;
use dunlin::{Dpdk, Open, Udp, Xdp};
use dunlin_core::transport::{Frame, Halves, PeerId, RX_BURST, Rx, Transport};
use dunlin_nexus::{Opened, Reach};
use dunlin_sim::world::rng::{Ppm, Rng};
use dunlin_transport::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};

use super::subject::Loss;

/// The transport over another one.
#[derive(Debug)]
pub(crate) struct Lossy<T>(PhantomData<T>);

/// Kernel UDP with losses.
pub(crate) type LossyUdp = Lossy<Udp>;

/// AF_XDP with losses.
pub(crate) type LossyXdp = Lossy<Xdp>;

/// DPDK with losses.
pub(crate) type LossyDpdk = Lossy<Dpdk>;

/// The settings.
#[derive(Debug)]
pub(crate) struct LossyOptions<O> {
    pub(crate) below: O,
    pub(crate) loss: Loss,
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct LossyRx<R> {
    below: R,
    loss: Ppm,
    late: Ppm,
    rng: Rng,
    shown: Vec<Shown>,
    /// Frames that are late, each with the number of bursts until its delivery.
    kept_back: VecDeque<(u32, Vec<u8>)>,
}

/// A frame of the burst.
#[derive(Debug)]
enum Shown {
    /// The frame with this index in the burst of the transport below.
    Below(usize),
    Late(Vec<u8>),
}

/// The most bursts that a late frame waits. An endpoint that spins receives some hundred bursts in
/// a round trip.
const MOST_LATE: u64 = 1_000;

impl<R: Rx> LossyRx<R> {
    /// Shows late frames whose time has come.
    fn show_late(&mut self) {
        for (left, _) in &mut self.kept_back {
            *left = left.saturating_sub(1);
        }
        for _ in 0..self.kept_back.len() {
            match self.kept_back.pop_front() {
                Some((0, bytes)) if self.shown.len() < RX_BURST => {
                    self.shown.push(Shown::Late(bytes));
                }
                Some(waiting) => self.kept_back.push_back(waiting),
                None => {}
            }
        }
    }
}

impl<R: Rx> Rx for LossyRx<R> {
    fn burst(&mut self) -> usize {
        self.shown.clear();
        for index in 0..self.below.burst() {
            if self.rng.chance(self.loss) {
                continue;
            }
            if self.rng.chance(self.late) {
                let bursts = u32::try_from(1 + self.rng.below(MOST_LATE)).unwrap_or(1);
                let bytes = self.below.frame(index).bytes.to_vec();
                self.kept_back.push_back((bursts, bytes));
            } else {
                self.shown.push(Shown::Below(index));
            }
        }
        self.show_late();
        self.shown.len()
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        match &self.shown[index] {
            Shown::Below(index) => self.below.frame(*index),
            Shown::Late(bytes) => Frame::new(bytes),
        }
    }
}

impl<T: Transport> Transport for Lossy<T> {
    type Rx = LossyRx<T::Rx>;
    type Tx = T::Tx;
}

impl<T: Open> Open for Lossy<T> {
    const LABEL: &'static str = T::LABEL;
    type Options = LossyOptions<T::Options>;

    fn defaults(nexus: &Reach) -> Self::Options {
        LossyOptions {
            below: T::defaults(nexus),
            loss: Loss::default(),
        }
    }

    fn open_halves(options: Self::Options) -> Opened<Self> {
        let Halves { rx, tx, limits } = T::open_halves(options.below)?;
        let rx = LossyRx {
            below: rx,
            loss: Ppm(options.loss.per_million),
            late: Ppm(options.loss.late_per_million),
            rng: Rng::new(options.loss.seed),
            shown: Vec::with_capacity(RX_BURST),
            kept_back: VecDeque::new(),
        };
        Ok(Halves { rx, tx, limits })
    }
}

impl<T: Connect> Connect for Lossy<T> {
    const KIND: u8 = T::KIND;

    fn offer(
        rx: &mut LossyRx<T::Rx>,
        tx: &mut T::Tx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        T::offer(&mut rx.below, tx, peer)
    }

    fn accept(
        rx: &mut LossyRx<T::Rx>,
        tx: &mut T::Tx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        T::accept(&mut rx.below, tx, peer, offer)
    }

    fn complete(
        rx: &mut LossyRx<T::Rx>,
        tx: &mut T::Tx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        T::complete(&mut rx.below, tx, pending, answer)
    }

    fn data_size(rx: &LossyRx<T::Rx>, tx: &T::Tx, peer: PeerId) -> u32 {
        T::data_size(&rx.below, tx, peer)
    }

    fn must_prove(rx: &LossyRx<T::Rx>, tx: &T::Tx, peer: PeerId) -> bool {
        T::must_prove(&rx.below, tx, peer)
    }

    fn abandon(rx: &mut LossyRx<T::Rx>, tx: &mut T::Tx, pending: Pending) {
        T::abandon(&mut rx.below, tx, pending);
    }

    fn release(rx: &mut LossyRx<T::Rx>, tx: &mut T::Tx, peer: PeerId) {
        T::release(&mut rx.below, tx, peer);
    }

    fn remove(rx: &mut LossyRx<T::Rx>, tx: &mut T::Tx, peer: PeerId) {
        T::remove(&mut rx.below, tx, peer);
    }

    fn fds(rx: &LossyRx<T::Rx>, tx: &T::Tx, out: &mut Vec<RawFd>) {
        T::fds(&rx.below, tx, out);
    }

    fn arm(rx: &mut LossyRx<T::Rx>, tx: &mut T::Tx) -> Arm {
        T::arm(&mut rx.below, tx)
    }

    fn disarm(rx: &mut LossyRx<T::Rx>, tx: &mut T::Tx) {
        T::disarm(&mut rx.below, tx);
    }

    fn counters(rx: &LossyRx<T::Rx>, tx: &T::Tx) -> Counters {
        T::counters(&rx.below, tx)
    }
}
