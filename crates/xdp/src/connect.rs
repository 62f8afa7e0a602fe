//! Connects `xdp` endpoints as `udp` endpoints are connected. An offer has the address of the
//! socket. Steered packets have the same address, so each side may use either transport.
//!
//! Called by the nexus through [`Connect`].

use std::os::fd::{AsRawFd, RawFd};

use dunlin_core::transport::{PeerId, Tx};
use dunlin_transport::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use dunlin_transport::counters::Counters;
use dunlin_transport::udp::Udp;

use crate::device::Device;
use crate::open::Xdp;
use crate::receive::{self, XdpRx};
use crate::transmit::{self, XdpTx};
use crate::ways::FALLS;
use dunlin_packet::REFUSALS;

impl Connect for Xdp {
    const KIND: u8 = <Udp as Connect>::KIND;
    const DETAILS: &'static [&'static str] = &NAMES;

    fn offer(
        rx: &mut XdpRx,
        tx: &mut XdpTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        Udp::offer(&mut rx.udp, &mut tx.udp, peer)
    }

    fn accept(
        rx: &mut XdpRx,
        tx: &mut XdpTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        let (id, answer) = Udp::accept(&mut rx.udp, &mut tx.udp, peer, offer)?;
        tx.add_way(id);
        Ok((id, answer))
    }

    fn complete(
        rx: &mut XdpRx,
        tx: &mut XdpTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        let id = Udp::complete(&mut rx.udp, &mut tx.udp, pending, answer)?;
        tx.add_way(id);
        Ok(id)
    }

    fn data_size(rx: &XdpRx, tx: &XdpTx, peer: PeerId) -> u32 {
        Udp::data_size(&rx.udp, &tx.udp, peer)
    }

    fn must_prove(rx: &XdpRx, tx: &XdpTx, peer: PeerId) -> bool {
        Udp::must_prove(&rx.udp, &tx.udp, peer)
    }

    fn abandon(rx: &mut XdpRx, tx: &mut XdpTx, pending: Pending) {
        Udp::abandon(&mut rx.udp, &mut tx.udp, pending);
    }

    fn release(rx: &mut XdpRx, tx: &mut XdpTx, peer: PeerId) {
        Udp::release(&mut rx.udp, &mut tx.udp, peer);
        tx.forget_gone(peer);
    }

    fn remove(rx: &mut XdpRx, tx: &mut XdpTx, peer: PeerId) {
        Udp::remove(&mut rx.udp, &mut tx.udp, peer);
        tx.forget_gone(peer);
    }

    fn fds(rx: &XdpRx, tx: &XdpTx, out: &mut Vec<RawFd>) {
        Udp::fds(&rx.udp, &tx.udp, out);
        let fds = rx.devices().filter_map(Device::fd);
        out.extend(fds.map(|fd| fd.as_raw_fd()));
    }

    fn arm(rx: &mut XdpRx, tx: &mut XdpTx) -> Arm {
        // Sends the frames for which the kernel had no memory before.
        tx.settle();
        // If the interface has gone, it has left an error, which would keep the descriptor
        // readable.
        rx.devices().for_each(|device| {
            device.take_error();
        });
        if rx.has_more() {
            return Arm::Ready;
        }
        Udp::arm(&mut rx.udp, &mut tx.udp)
    }

    fn disarm(rx: &mut XdpRx, tx: &mut XdpTx) {
        Udp::disarm(&mut rx.udp, &mut tx.udp);
        rx.on_wake();
        tx.on_doubt();
    }

    fn counters(rx: &XdpRx, tx: &XdpTx) -> Counters {
        let own = rx.own_counters().plus(&tx.own_counters());
        own.plus(&Udp::counters(&rx.udp, &tx.udp))
    }

    fn details(rx: &XdpRx, tx: &XdpTx, show: &mut dyn FnMut(&'static str, u64)) {
        rx.show_details(show);
        tx.show_details(show);
    }
}

/// Names of the further counters of both halves.
const NAMES: [&str;
    receive::DETAILS.len() + REFUSALS.len() + transmit::DETAILS.len() + FALLS.len()] =
    joined([&receive::DETAILS, &REFUSALS, &transmit::DETAILS, &FALLS]);

/// The names of these lists, one list after the other.
const fn joined<const N: usize>(lists: [&[&'static str]; 4]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[at] = lists[list][index];
            at += 1;
            index += 1;
        }
        list += 1;
    }
    assert!(at == N, "the lists have as many names as there are places");
    all
}

impl XdpTx {
    /// Looks for the way to a peer that was added.
    fn add_way(&mut self, peer: PeerId) {
        if let Some(reach) = self.udp.reach(peer) {
            self.ways.add(peer, reach);
        }
    }

    /// Forgets the way to a peer if its last use has ended.
    fn forget_gone(&mut self, peer: PeerId) {
        if self.udp.reach(peer).is_none() {
            self.ways.remove(peer);
        }
    }
}
