//! How `xdp` endpoints get to know each other: as `udp` endpoints do. An offer has the address of
//! the socket. Steered packets have the same address, so each side may use either transport.
//!
//! Called by the nexus through [`Connect`].

use std::os::fd::{AsRawFd, RawFd};

use dunlin_core::transport::{PeerId, Tx};
use dunlin_transport::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use dunlin_transport::counters::Counters;
use dunlin_transport::udp::Udp;

use crate::open::Xdp;
use crate::receive::XdpRx;
use crate::transmit::XdpTx;

impl Connect for Xdp {
    const KIND: u8 = <Udp as Connect>::KIND;

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
        out.extend(rx.device().fd().map(|fd| fd.as_raw_fd()));
    }

    fn arm(rx: &mut XdpRx, tx: &mut XdpTx) -> Arm {
        // Sends the frames for which the kernel had no memory before.
        tx.settle();
        // If the interface has gone, it has left an error, which would keep the descriptor
        // readable.
        rx.device().take_error();
        if rx.has_more() {
            return Arm::Ready;
        }
        Udp::arm(&mut rx.udp, &mut tx.udp)
    }

    fn disarm(rx: &mut XdpRx, tx: &mut XdpTx) {
        Udp::disarm(&mut rx.udp, &mut tx.udp);
        rx.on_doubt();
        tx.on_doubt();
    }

    fn counters(rx: &XdpRx, tx: &XdpTx) -> Counters {
        let own = rx.own_counters().plus(&tx.own_counters());
        own.plus(&Udp::counters(&rx.udp, &tx.udp))
    }
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
