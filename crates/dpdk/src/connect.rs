//! Connects `dpdk` endpoints as `udp` endpoints are connected. An offer has the address of the
//! device and the port of the endpoint.
//!
//! Called by the nexus through [`Connect`].

use std::os::fd::RawFd;
use std::time::Duration;

use dunlin_core::transport::{PeerId, Tx};
use dunlin_transport::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use dunlin_transport::counters::Counters;
use dunlin_transport::udp::Udp;

use crate::copies::COPIES;
use crate::keeper;
use crate::open::Dpdk;
use crate::receive::DpdkRx;
use crate::tally::NAMES;
use crate::transmit::DpdkTx;

impl Connect for Dpdk {
    const KIND: u8 = <Udp as Connect>::KIND;
    const DETAILS: &'static [&'static str] = &ALL;

    fn offer(
        _rx: &mut DpdkRx,
        tx: &mut DpdkTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        tx.book.offer(peer)
    }

    fn accept(
        _rx: &mut DpdkRx,
        tx: &mut DpdkTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        let (id, answer) = tx.book.accept(peer, &offer)?;
        Ok((tx.reached(id)?, answer))
    }

    fn complete(
        _rx: &mut DpdkRx,
        tx: &mut DpdkTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        let id = tx.book.complete(&pending, &answer)?;
        tx.reached(id)
    }

    fn data_size(_rx: &DpdkRx, tx: &DpdkTx, peer: PeerId) -> u32 {
        tx.book.data_size_of(peer)
    }

    fn must_prove(_rx: &DpdkRx, tx: &DpdkTx, peer: PeerId) -> bool {
        tx.book.is_foreign(peer)
    }

    fn abandon(_rx: &mut DpdkRx, tx: &mut DpdkTx, pending: Pending) {
        tx.book.abandon(&pending);
    }

    fn release(_rx: &mut DpdkRx, tx: &mut DpdkTx, peer: PeerId) {
        tx.book.release(peer);
        tx.forget_gone(peer);
    }

    fn remove(_rx: &mut DpdkRx, tx: &mut DpdkTx, peer: PeerId) {
        tx.book.remove(peer);
        tx.forget_gone(peer);
    }

    fn fds(rx: &DpdkRx, _tx: &DpdkTx, out: &mut Vec<RawFd>) {
        out.push(rx.seat().inbox.fd());
        out.extend(rx.seat().port.bell());
    }

    /// Without interrupts, the keeper wakes an endpoint. If both sides of a call slept between its
    /// packets, each packet would wait for two looks of the keeper, and congestion control would
    /// take that wait for a queue.
    fn least_spin(rx: &DpdkRx) -> Duration {
        match rx.seat().port.bell() {
            Some(_) => Duration::ZERO,
            None => 2 * keeper::BUSY,
        }
    }

    /// From now on, the thread that receives a packet for this endpoint wakes it, or the device
    /// itself does.
    fn arm(rx: &mut DpdkRx, tx: &mut DpdkTx) -> Arm {
        tx.settle();
        // The device does not wake the endpoint when it has sent packets, so the endpoint stays
        // awake until its msgbufs are back.
        if tx.has_lent() || rx.has_rest() || !rx.seat().inbox.sleep() {
            return Arm::Ready;
        }
        rx.sleep();
        let seat = rx.seat();
        seat.port.look_for_all();
        match seat.inbox.is_asleep() {
            true => Arm::Wait,
            false => Arm::Ready,
        }
    }

    fn disarm(rx: &mut DpdkRx, _tx: &mut DpdkTx) {
        rx.wake();
    }

    fn counters(rx: &DpdkRx, tx: &DpdkTx) -> Counters {
        rx.counters().plus(&tx.counters())
    }

    /// Counters of the device, the same at all of its endpoints, and of this endpoint's copies.
    fn details(rx: &DpdkRx, tx: &DpdkTx, show: &mut dyn FnMut(&'static str, u64)) {
        rx.seat().port.show_counters(show);
        tx.show_copies(show);
    }
}

/// Names of the counters of the device, and of copies.
const ALL: [&str; NAMES.len() + COPIES.len()] = {
    let mut all = [""; NAMES.len() + COPIES.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at < NAMES.len() {
            true => NAMES[at],
            false => COPIES[at - NAMES.len()],
        };
        at += 1;
    }
    all
};

impl DpdkTx {
    /// Returns the peer if a way leads to it, and releases it otherwise.
    fn reached(&mut self, peer: PeerId) -> Result<PeerId, ConnectError> {
        if self.add_way(peer) {
            return Ok(peer);
        }
        self.book.release(peer);
        Err(ConnectError::Unreachable)
    }
}
