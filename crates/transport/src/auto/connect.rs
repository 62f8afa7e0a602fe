//! Setting up peers of `auto` endpoints: the client offers both transports, the acceptor chooses
//! one.

use std::os::fd::RawFd;

use dunlin_core::transport::PeerId;
use dunlin_wire::control::TransportKind;

use super::offer::{Parts, Waiting};
use super::uses::{is_udp, over_udp};
use super::{Auto, AutoRx, AutoTx};
use crate::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;
use crate::shm::{Shm, ShmRx, ShmTx};
use crate::udp::Udp;

impl Connect for Auto {
    fn offer(
        rx: &mut AutoRx,
        tx: &mut AutoTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        if !tx.offered.has_room() {
            return Err(ConnectError::TooManyPeers);
        }
        if peer.same_host {
            tx.offered.on_neighbour();
        }
        let (udp_pending, udp) = Udp::offer(&mut rx.udp, &mut tx.udp, peer)?;
        let (shm_pending, shm) = offer_shm(rx, tx, peer).unzip();
        let waiting = Waiting {
            endpoint: peer.endpoint,
            shm: shm_pending,
            udp: udp_pending,
        };
        match (Parts {
            shm,
            udp: Some(udp),
        })
        .encode()
        {
            Ok(offer) => {
                let pending = tx.offered.insert(waiting);
                count_transports(rx, tx);
                Ok((pending, offer))
            }
            Err(error) => {
                abandon_parts(rx, tx, waiting);
                Err(error)
            }
        }
    }

    fn accept(
        rx: &mut AutoRx,
        tx: &mut AutoTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        if peer.same_host {
            tx.offered.on_neighbour();
        }
        let parts = Parts::decode(offer)?;
        let (id, answer) = match (parts.shm, parts.udp) {
            (Some(shm), Some(udp)) => match accept_shm(rx, tx, peer, shm) {
                Ok(accepted) => accepted,
                // The peer offered a channel that is gone, and will offer a new one.
                Err(ConnectError::Gone) => return Err(ConnectError::Gone),
                Err(why) => {
                    let accepted = accept_udp(rx, tx, peer, udp)?;
                    // A peer on another host may offer shared memory, too. It must not use up the
                    // warning, which is given only once.
                    if peer.same_host {
                        tx.offered.on_fallback(why);
                    }
                    accepted
                }
            },
            (Some(shm), None) => accept_shm(rx, tx, peer, shm)?,
            (None, Some(udp)) => accept_udp(rx, tx, peer, udp)?,
            (None, None) => return Err(ConnectError::Malformed),
        };
        let answer = answer.encode().inspect_err(|_| release_part(rx, tx, id))?;
        count_use(rx, tx, id);
        Ok((id, answer))
    }

    fn complete(
        rx: &mut AutoRx,
        tx: &mut AutoTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        let waiting = tx.offered.remove(&pending).ok_or(ConnectError::Gone)?;
        let completed = match Parts::decode(answer) {
            Ok(Parts {
                shm: Some(shm),
                udp: None,
            }) => complete_shm(rx, tx, waiting, shm),
            Ok(Parts {
                shm: None,
                udp: Some(udp),
            }) => complete_udp(rx, tx, waiting, udp),
            _ => {
                abandon_parts(rx, tx, waiting);
                Err(ConnectError::Malformed)
            }
        };
        match completed {
            Ok(id) => count_use(rx, tx, id),
            Err(_) => count_transports(rx, tx),
        }
        completed
    }

    fn parts(offer: Offer) -> Vec<(TransportKind, Offer)> {
        // Only `encode` makes offers, so this one decodes.
        Parts::decode(offer).unwrap_or_default().into_kinds()
    }

    fn whole(parts: Vec<(TransportKind, Offer)>) -> Result<Offer, ConnectError> {
        Parts::from_kinds(parts)?.encode()
    }

    fn data_size(rx: &AutoRx, tx: &AutoTx, peer: PeerId) -> u32 {
        if is_udp(peer) {
            return Udp::data_size(&rx.udp, &tx.udp, peer);
        }
        let shm = rx.shm.as_ref().zip(tx.shm.as_ref());
        shm.map_or(u32::MAX, |(rx, tx)| Shm::data_size(rx, tx, peer))
    }

    fn must_prove(rx: &AutoRx, tx: &AutoTx, peer: PeerId) -> bool {
        is_udp(peer) && Udp::must_prove(&rx.udp, &tx.udp, peer)
    }

    fn abandon(rx: &mut AutoRx, tx: &mut AutoTx, pending: Pending) {
        if let Some(waiting) = tx.offered.remove(&pending) {
            abandon_parts(rx, tx, waiting);
            count_transports(rx, tx);
        }
    }

    fn release(rx: &mut AutoRx, tx: &mut AutoTx, peer: PeerId) {
        release_part(rx, tx, peer);
        tx.uses.release(peer);
        count_transports(rx, tx);
    }

    fn remove(rx: &mut AutoRx, tx: &mut AutoTx, peer: PeerId) {
        if is_udp(peer) {
            Udp::remove(&mut rx.udp, &mut tx.udp, peer);
        } else if let Some((shm_rx, shm_tx)) = shm_halves(rx, tx) {
            Shm::remove(shm_rx, shm_tx, peer);
        }
        tx.uses.remove(peer);
        count_transports(rx, tx);
    }

    fn fds(rx: &AutoRx, tx: &AutoTx, out: &mut Vec<RawFd>) {
        if let (Some(shm_rx), Some(shm_tx)) = (&rx.shm, &tx.shm) {
            Shm::fds(shm_rx, shm_tx, out);
        }
        Udp::fds(&rx.udp, &tx.udp, out);
    }

    fn arm(rx: &mut AutoRx, tx: &mut AutoTx) -> Arm {
        if Udp::arm(&mut rx.udp, &mut tx.udp) == Arm::Ready {
            return Arm::Ready;
        }
        shm_halves(rx, tx).map_or(Arm::Wait, |(shm_rx, shm_tx)| Shm::arm(shm_rx, shm_tx))
    }

    fn disarm(rx: &mut AutoRx, tx: &mut AutoTx) {
        // The endpoint does not know which transport woke it or kept it awake.
        rx.turns.on_doubt();
        Udp::disarm(&mut rx.udp, &mut tx.udp);
        if let Some((shm_rx, shm_tx)) = shm_halves(rx, tx) {
            Shm::disarm(shm_rx, shm_tx);
        }
    }

    fn take_fallback(tx: &mut AutoTx) -> Option<ConnectError> {
        tx.offered.take_fallback()
    }

    fn counters(rx: &AutoRx, tx: &AutoTx) -> Counters {
        let udp = Udp::counters(&rx.udp, &tx.udp);
        match (&rx.shm, &tx.shm) {
            (Some(shm_rx), Some(shm_tx)) => udp.plus(&Shm::counters(shm_rx, shm_tx)),
            _ => udp,
        }
    }
}

fn shm_halves<'a>(
    rx: &'a mut AutoRx,
    tx: &'a mut AutoTx,
) -> Option<(&'a mut ShmRx, &'a mut ShmTx)> {
    rx.shm.as_mut().zip(tx.shm.as_mut())
}

/// The offer of shared memory to `peer`; none if that cannot work, or if it has failed before.
fn offer_shm(rx: &mut AutoRx, tx: &mut AutoTx, peer: &PeerInfo) -> Option<(Pending, Offer)> {
    if !peer.same_host || !tx.offered.may_use_shm(peer.endpoint) {
        return None;
    }
    let (shm_rx, shm_tx) = shm_halves(rx, tx)?;
    match Shm::offer(shm_rx, shm_tx, peer) {
        Ok(offer) => Some(offer),
        Err(why) => {
            tx.offered.on_fallback(why);
            None
        }
    }
}

fn accept_shm(
    rx: &mut AutoRx,
    tx: &mut AutoTx,
    peer: &PeerInfo,
    offer: Offer,
) -> Result<(PeerId, Parts), ConnectError> {
    if !tx.offered.may_use_shm(peer.endpoint) {
        return Err(ConnectError::Unreachable);
    }
    let (shm_rx, shm_tx) = shm_halves(rx, tx).ok_or(ConnectError::Unreachable)?;
    let (id, answer) = Shm::accept(shm_rx, shm_tx, peer, offer)?;
    Ok((
        id,
        Parts {
            shm: Some(answer),
            udp: None,
        },
    ))
}

fn accept_udp(
    rx: &mut AutoRx,
    tx: &mut AutoTx,
    peer: &PeerInfo,
    offer: Offer,
) -> Result<(PeerId, Parts), ConnectError> {
    let (id, answer) = Udp::accept(&mut rx.udp, &mut tx.udp, peer, offer)?;
    Ok((
        over_udp(id),
        Parts {
            shm: None,
            udp: Some(answer),
        },
    ))
}

fn complete_shm(
    rx: &mut AutoRx,
    tx: &mut AutoTx,
    waiting: Waiting,
    answer: Offer,
) -> Result<PeerId, ConnectError> {
    Udp::abandon(&mut rx.udp, &mut tx.udp, waiting.udp);
    let offered = waiting.shm.zip(shm_halves(rx, tx));
    let (pending, (shm_rx, shm_tx)) = offered.ok_or(ConnectError::Malformed)?;
    Shm::complete(shm_rx, shm_tx, pending, answer).map_err(|error| {
        // The acceptor has already chosen shared memory, so this offer is lost. The next one will
        // not offer shared memory.
        if !matches!(error, ConnectError::Gone) {
            tx.offered.give_up_shm(waiting.endpoint);
            tx.offered.on_fallback(error);
        }
        ConnectError::Gone
    })
}

fn complete_udp(
    rx: &mut AutoRx,
    tx: &mut AutoTx,
    waiting: Waiting,
    answer: Offer,
) -> Result<PeerId, ConnectError> {
    abandon_shm(rx, tx, waiting.shm);
    let id = Udp::complete(&mut rx.udp, &mut tx.udp, waiting.udp, answer)?;
    Ok(over_udp(id))
}

fn abandon_parts(rx: &mut AutoRx, tx: &mut AutoTx, waiting: Waiting) {
    Udp::abandon(&mut rx.udp, &mut tx.udp, waiting.udp);
    abandon_shm(rx, tx, waiting.shm);
}

fn abandon_shm(rx: &mut AutoRx, tx: &mut AutoTx, pending: Option<Pending>) {
    if let (Some(pending), Some((shm_rx, shm_tx))) = (pending, shm_halves(rx, tx)) {
        Shm::abandon(shm_rx, shm_tx, pending);
    }
}

fn release_part(rx: &mut AutoRx, tx: &mut AutoTx, peer: PeerId) {
    if is_udp(peer) {
        Udp::release(&mut rx.udp, &mut tx.udp, peer);
    } else if let Some((shm_rx, shm_tx)) = shm_halves(rx, tx) {
        Shm::release(shm_rx, shm_tx, peer);
    }
}

fn count_use(rx: &mut AutoRx, tx: &mut AutoTx, peer: PeerId) {
    tx.uses.add(peer);
    count_transports(rx, tx);
}

/// Informs `turns` which transports may bring packets now. While an offer waits, either may bring
/// its answer.
fn count_transports(rx: &mut AutoRx, tx: &AutoTx) {
    let udp_used = tx.uses.udp_peers() > 0 || !tx.offered.is_empty();
    rx.turns.on_peers(tx.uses.shm_peers() > 0, udp_used);
}
