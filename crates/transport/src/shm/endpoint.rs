//! The transport as its users see it: [`Shm::open`] and [`Connect`].

use std::os::fd::RawFd;

use dunlin_core::transport::{Halves, Limits, PeerId, Transport, Tx};

use super::cells::cells_of;
use super::channel::Bell;
use super::channels::Channels;
use super::options::{INLINE, OpenError, Options, in_ring};
use super::regions::MapLimit;
use super::rx::ShmRx;
use super::setup;
use super::tx::ShmTx;
use crate::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;

/// The shared-memory transport.
#[derive(Clone, Copy, Debug)]
pub struct Shm;

/// Roughly the rate at which a core writes to its second-level cache, in bytes per second.
const LINE_RATE: u64 = 10_000_000_000;

impl Shm {
    /// Makes an endpoint that has no peers yet.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: Options) -> Result<Halves<ShmRx, ShmTx>, OpenError> {
        let Options {
            data_size,
            cells,
            by_reference,
            ..
        } = options;
        options.check()?;
        let longest = data_size + INLINE;
        let in_ring = in_ring(longest, cells).min(by_reference.saturating_add(INLINE));
        let (bell, bell_fd) = Bell::create()?;
        let limit = MapLimit {
            peer: options.map_limit,
            process: options.map_limit_process,
        };
        Ok(Halves {
            rx: ShmRx::new(bell, longest, limit),
            tx: ShmTx::new(Channels::new(options, bell_fd)?),
            limits: Limits {
                data_size,
                // Up to an eighth of the cells may be read without the sender knowing it.
                rx_queue: (cells - cells / 8) / cells_of(in_ring),
                line_rate: LINE_RATE,
            },
        })
    }
}

impl Transport for Shm {
    type Rx = ShmRx;
    type Tx = ShmTx;
}

impl Connect for Shm {
    const KIND: u8 = 1;

    fn offer(
        rx: &mut ShmRx,
        tx: &mut ShmTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        setup::offer(rx, tx, peer)
    }

    fn accept(
        rx: &mut ShmRx,
        tx: &mut ShmTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        setup::accept(rx, tx, peer, offer)
    }

    fn complete(
        rx: &mut ShmRx,
        tx: &mut ShmTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        setup::complete(rx, tx, pending, answer)
    }

    fn abandon(rx: &mut ShmRx, tx: &mut ShmTx, pending: Pending) {
        setup::abandon(rx, tx, pending);
    }

    fn release(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
        setup::release(rx, tx, peer);
    }

    fn remove(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
        setup::remove(rx, tx, peer);
    }

    fn fds(_rx: &ShmRx, tx: &ShmTx, out: &mut Vec<RawFd>) {
        out.push(tx.channels.wake_fd());
    }

    fn arm(rx: &mut ShmRx, tx: &mut ShmTx) -> Arm {
        tx.settle();
        tx.forget_dead_regions();
        tx.channels.armed = rx.fall_asleep();
        if tx.channels.armed {
            Arm::Wait
        } else {
            Arm::Ready
        }
    }

    fn disarm(rx: &mut ShmRx, tx: &mut ShmTx) {
        rx.wake_up();
        if std::mem::take(&mut tx.channels.armed) {
            setup::drain_lines(rx, tx);
        }
    }

    fn counters(rx: &ShmRx, tx: &ShmTx) -> Counters {
        let mapped = Counters {
            rx_mapped_bytes: rx.mapped(),
            ..*rx.counters()
        };
        mapped.plus(&tx.counters())
    }
}
