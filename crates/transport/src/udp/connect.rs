//! How `udp` endpoints become known to each other: an exchange of addresses.
//!
//! There is no channel to set up: each side tells where it receives, and enters the other into its
//! table of peers. Called by the nexus through [`Connect`].

use std::os::fd::{AsRawFd, RawFd};

use dunlin_core::transport::PeerId;

use super::offer::Terms;
use super::{Udp, UdpRx, UdpTx};
use crate::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;

impl Connect for Udp {
    const KIND: u8 = 2;

    fn offer(
        rx: &mut UdpRx,
        tx: &mut UdpTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        let pending = tx.peers_mut().begin_offer(peer.endpoint);
        Ok((
            pending.ok_or(ConnectError::TooManyPeers)?,
            own_terms(rx, tx).encode(),
        ))
    }

    fn accept(
        rx: &mut UdpRx,
        tx: &mut UdpTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        let id = tx.add_peer(peer.endpoint, &Terms::decode(&offer)?)?;
        Ok((id, own_terms(rx, tx).encode()))
    }

    fn complete(
        _rx: &mut UdpRx,
        tx: &mut UdpTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        let endpoint = tx
            .peers_mut()
            .end_offer(&pending)
            .ok_or(ConnectError::Gone)?;
        tx.add_peer(endpoint, &Terms::decode(&answer)?)
    }

    fn abandon(_rx: &mut UdpRx, tx: &mut UdpTx, pending: Pending) {
        tx.peers_mut().end_offer(&pending);
    }

    fn release(_rx: &mut UdpRx, tx: &mut UdpTx, peer: PeerId) {
        tx.peers_mut().release(peer);
    }

    fn remove(_rx: &mut UdpRx, tx: &mut UdpTx, peer: PeerId) {
        tx.peers_mut().remove(peer);
    }

    fn fds(rx: &UdpRx, _tx: &UdpTx, out: &mut Vec<RawFd>) {
        out.push(rx.socket().fd().as_raw_fd());
    }

    fn arm(rx: &mut UdpRx, _tx: &mut UdpTx) -> Arm {
        if rx.has_more() { Arm::Ready } else { Arm::Wait }
    }

    /// The socket is readable by itself; there is nothing to take back.
    fn disarm(_rx: &mut UdpRx, _tx: &mut UdpTx) {}

    fn counters(rx: &UdpRx, tx: &UdpTx) -> Counters {
        rx.counters().plus(&tx.counters())
    }
}

fn own_terms(rx: &UdpRx, tx: &UdpTx) -> Terms {
    Terms {
        data_size: tx.data_size(),
        buffer: rx.buffer_bytes(),
        addresses: vec![rx.local_addr()],
    }
}
