//! How `udp` endpoints get to know each other: an exchange of addresses.
//!
//! There is no channel to set up: each side sends the addresses at which it receives, and enters
//! the other into its table of peers. Called by the nexus through [`Connect`].

use std::os::fd::{AsRawFd, RawFd};

use dunlin_core::transport::PeerId;

use dunlin_wire::control::TransportKind;

use super::offer::Terms;
use super::{Udp, UdpRx, UdpTx};
use crate::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;

impl Connect for Udp {
    const KIND: u8 = TransportKind::UDP.0;

    fn offer(
        rx: &mut UdpRx,
        tx: &mut UdpTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        let terms = own_terms(rx, peer)?;
        let pending = tx.with_peers(|peers| peers.begin_offer(peer));
        Ok((pending.ok_or(ConnectError::TooManyPeers)?, terms.encode()))
    }

    fn accept(
        rx: &mut UdpRx,
        tx: &mut UdpTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        let terms = own_terms(rx, peer)?;
        let id = tx.add_peer(peer, &Terms::decode(&offer)?)?;
        Ok((id, terms.encode()))
    }

    fn complete(
        _rx: &mut UdpRx,
        tx: &mut UdpTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        let peer = tx.with_peers(|peers| peers.end_offer(&pending));
        let peer = peer.ok_or(ConnectError::Gone)?;
        tx.add_peer(&peer, &Terms::decode(&answer)?)
    }

    fn data_size(_rx: &UdpRx, tx: &UdpTx, peer: PeerId) -> u32 {
        tx.data_size_of(peer)
    }

    fn must_prove(_rx: &UdpRx, tx: &UdpTx, peer: PeerId) -> bool {
        tx.is_foreign(peer)
    }

    fn abandon(_rx: &mut UdpRx, tx: &mut UdpTx, pending: Pending) {
        tx.with_peers(|peers| peers.end_offer(&pending));
    }

    fn release(_rx: &mut UdpRx, tx: &mut UdpTx, peer: PeerId) {
        tx.with_peers(|peers| peers.release(peer));
    }

    fn remove(_rx: &mut UdpRx, tx: &mut UdpTx, peer: PeerId) {
        tx.with_peers(|peers| peers.remove(peer));
    }

    fn fds(rx: &UdpRx, _tx: &UdpTx, out: &mut Vec<RawFd>) {
        out.push(rx.socket().fd().as_raw_fd());
    }

    fn arm(rx: &mut UdpRx, _tx: &mut UdpTx) -> Arm {
        if rx.has_more() { Arm::Ready } else { Arm::Wait }
    }

    /// Does nothing: the kernel makes the socket readable even if no thread sleeps.
    fn disarm(_rx: &mut UdpRx, _tx: &mut UdpTx) {}

    fn counters(rx: &UdpRx, tx: &UdpTx) -> Counters {
        rx.counters().plus(&tx.counters())
    }
}

/// Our offer to a peer.
///
/// # Errors
/// `Unreachable` if the peer has no way to send to our socket.
fn own_terms(rx: &UdpRx, peer: &PeerInfo) -> Result<Terms, ConnectError> {
    let addresses = rx.socket().addresses(peer.local);
    if addresses.is_empty() {
        return Err(ConnectError::Unreachable);
    }
    Ok(Terms {
        data_size: rx.socket().data_size_at(&addresses),
        buffer: rx.buffer_bytes(),
        addresses,
    })
}
