//! Setting up peers of `auto` endpoints: the client offers both transports, the acceptor chooses
//! one.

use std::os::fd::RawFd;
use std::time::Duration;

use dunlin_core::transport::PeerId;
use dunlin_wire::control::TransportKind;

use super::offer::{Parts, Waiting};
use super::remote::Remote;
use super::uses::{is_remote, over_remote};
use super::{Auto, AutoRx, AutoTx};
use crate::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;
use crate::shm::{Shm, ShmRx, ShmTx};

impl<R: Remote> Connect for Auto<R> {
    const DETAILS: &'static [&'static str] = R::DETAILS;

    fn offer(
        rx: &mut AutoRx<R>,
        tx: &mut AutoTx<R>,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        if !tx.offered.has_room() {
            return Err(ConnectError::TooManyPeers);
        }
        if peer.same_host {
            tx.offered.on_neighbour();
        }
        let (udp_pending, udp) = R::offer(&mut rx.remote, &mut tx.remote, peer)?;
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
        rx: &mut AutoRx<R>,
        tx: &mut AutoTx<R>,
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
                    let accepted = accept_remote(rx, tx, peer, udp)?;
                    // A peer on another host may offer shared memory too. It must not use up the
                    // warning, which is given only once.
                    if peer.same_host {
                        tx.offered.on_fallback(why);
                    }
                    accepted
                }
            },
            (Some(shm), None) => accept_shm(rx, tx, peer, shm)?,
            (None, Some(udp)) => accept_remote(rx, tx, peer, udp)?,
            (None, None) => return Err(ConnectError::Malformed),
        };
        let answer = answer.encode().inspect_err(|_| release_part(rx, tx, id))?;
        count_use(rx, tx, id);
        Ok((id, answer))
    }

    fn complete(
        rx: &mut AutoRx<R>,
        tx: &mut AutoTx<R>,
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
            }) => complete_remote(rx, tx, waiting, udp),
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

    fn data_size(rx: &AutoRx<R>, tx: &AutoTx<R>, peer: PeerId) -> u32 {
        if is_remote(peer) {
            return R::data_size(&rx.remote, &tx.remote, peer);
        }
        let shm = rx.shm.as_ref().zip(tx.shm.as_ref());
        shm.map_or(u32::MAX, |(rx, tx)| Shm::data_size(rx, tx, peer))
    }

    fn must_prove(rx: &AutoRx<R>, tx: &AutoTx<R>, peer: PeerId) -> bool {
        is_remote(peer) && R::must_prove(&rx.remote, &tx.remote, peer)
    }

    fn abandon(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, pending: Pending) {
        if let Some(waiting) = tx.offered.remove(&pending) {
            abandon_parts(rx, tx, waiting);
            count_transports(rx, tx);
        }
    }

    fn release(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, peer: PeerId) {
        release_part(rx, tx, peer);
        tx.uses.release(peer);
        count_transports(rx, tx);
    }

    fn remove(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, peer: PeerId) {
        if is_remote(peer) {
            R::remove(&mut rx.remote, &mut tx.remote, peer);
        } else if let Some((shm_rx, shm_tx)) = shm_halves(rx, tx) {
            Shm::remove(shm_rx, shm_tx, peer);
        }
        tx.uses.remove(peer);
        count_transports(rx, tx);
    }

    fn fds(rx: &AutoRx<R>, tx: &AutoTx<R>, out: &mut Vec<RawFd>) {
        if let (Some(shm_rx), Some(shm_tx)) = (&rx.shm, &tx.shm) {
            Shm::fds(shm_rx, shm_tx, out);
        }
        R::fds(&rx.remote, &tx.remote, out);
    }

    fn least_spin(rx: &AutoRx<R>) -> Duration {
        R::least_spin(&rx.remote)
    }

    fn arm(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>) -> Arm {
        if R::arm(&mut rx.remote, &mut tx.remote) == Arm::Ready {
            return Arm::Ready;
        }
        shm_halves(rx, tx).map_or(Arm::Wait, |(shm_rx, shm_tx)| Shm::arm(shm_rx, shm_tx))
    }

    fn disarm(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>) {
        // The endpoint does not know which transport woke it or kept it awake.
        rx.turns.on_doubt();
        R::disarm(&mut rx.remote, &mut tx.remote);
        if let Some((shm_rx, shm_tx)) = shm_halves(rx, tx) {
            Shm::disarm(shm_rx, shm_tx);
        }
    }

    fn take_fallback(tx: &mut AutoTx<R>) -> Option<ConnectError> {
        tx.offered.take_fallback()
    }

    fn details(rx: &AutoRx<R>, tx: &AutoTx<R>, show: &mut dyn FnMut(&'static str, u64)) {
        R::details(&rx.remote, &tx.remote, show);
    }

    fn counters(rx: &AutoRx<R>, tx: &AutoTx<R>) -> Counters {
        let udp = R::counters(&rx.remote, &tx.remote);
        match (&rx.shm, &tx.shm) {
            (Some(shm_rx), Some(shm_tx)) => udp.plus(&Shm::counters(shm_rx, shm_tx)),
            _ => udp,
        }
    }
}

fn shm_halves<'a, R: Remote>(
    rx: &'a mut AutoRx<R>,
    tx: &'a mut AutoTx<R>,
) -> Option<(&'a mut ShmRx, &'a mut ShmTx)> {
    rx.shm.as_mut().zip(tx.shm.as_mut())
}

/// The offer of shared memory to `peer`; none if that cannot work, or has failed before.
fn offer_shm<R: Remote>(
    rx: &mut AutoRx<R>,
    tx: &mut AutoTx<R>,
    peer: &PeerInfo,
) -> Option<(Pending, Offer)> {
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

fn accept_shm<R: Remote>(
    rx: &mut AutoRx<R>,
    tx: &mut AutoTx<R>,
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

fn accept_remote<R: Remote>(
    rx: &mut AutoRx<R>,
    tx: &mut AutoTx<R>,
    peer: &PeerInfo,
    offer: Offer,
) -> Result<(PeerId, Parts), ConnectError> {
    let (id, answer) = R::accept(&mut rx.remote, &mut tx.remote, peer, offer)?;
    Ok((
        over_remote(id),
        Parts {
            shm: None,
            udp: Some(answer),
        },
    ))
}

fn complete_shm<R: Remote>(
    rx: &mut AutoRx<R>,
    tx: &mut AutoTx<R>,
    waiting: Waiting,
    answer: Offer,
) -> Result<PeerId, ConnectError> {
    R::abandon(&mut rx.remote, &mut tx.remote, waiting.udp);
    let offered = waiting.shm.zip(shm_halves(rx, tx));
    let (pending, (shm_rx, shm_tx)) = offered.ok_or(ConnectError::Malformed)?;
    Shm::complete(shm_rx, shm_tx, pending, answer).map_err(|error| {
        // The acceptor has already chosen shared memory, so this offer is lost. The next offer will
        // contain only UDP.
        if !matches!(error, ConnectError::Gone) {
            tx.offered.give_up_shm(waiting.endpoint);
            tx.offered.on_fallback(error);
        }
        ConnectError::Gone
    })
}

fn complete_remote<R: Remote>(
    rx: &mut AutoRx<R>,
    tx: &mut AutoTx<R>,
    waiting: Waiting,
    answer: Offer,
) -> Result<PeerId, ConnectError> {
    abandon_shm(rx, tx, waiting.shm);
    let id = R::complete(&mut rx.remote, &mut tx.remote, waiting.udp, answer)?;
    Ok(over_remote(id))
}

fn abandon_parts<R: Remote>(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, waiting: Waiting) {
    R::abandon(&mut rx.remote, &mut tx.remote, waiting.udp);
    abandon_shm(rx, tx, waiting.shm);
}

fn abandon_shm<R: Remote>(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, pending: Option<Pending>) {
    if let (Some(pending), Some((shm_rx, shm_tx))) = (pending, shm_halves(rx, tx)) {
        Shm::abandon(shm_rx, shm_tx, pending);
    }
}

fn release_part<R: Remote>(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, peer: PeerId) {
    if is_remote(peer) {
        R::release(&mut rx.remote, &mut tx.remote, peer);
    } else if let Some((shm_rx, shm_tx)) = shm_halves(rx, tx) {
        Shm::release(shm_rx, shm_tx, peer);
    }
}

fn count_use<R: Remote>(rx: &mut AutoRx<R>, tx: &mut AutoTx<R>, peer: PeerId) {
    tx.uses.add(peer);
    count_transports(rx, tx);
}

/// Informs `turns` which transports may bring packets now. While an offer waits, its answer may
/// come by either.
fn count_transports<R: Remote>(rx: &mut AutoRx<R>, tx: &AutoTx<R>) {
    let remote_used = tx.uses.remote_peers() > 0 || !tx.offered.is_empty();
    rx.turns.on_peers(tx.uses.shm_peers() > 0, remote_used);
}
