//! The sending half: each packet goes to the transport that its peer was met on.
//!
//! Invariants: packets to one peer keep their order, and UDP gets one burst for each burst of ours.
//! A position in the sequence counts as done when both transports are done with all they had.
//! Called by the event loop, and by `connect`.

use dunlin_core::transport::{Lane, Path, PeerId, Tx, TxItem, TxSeq};

use super::offer::Offered;
use super::uses::{Uses, is_udp};
use crate::shm::ShmTx;
use crate::udp::UdpTx;

/// Packets over UDP that are brought together out of a mixed burst.
const MIXED: usize = 128;

/// The sending half of an `auto` endpoint.
#[derive(Debug)]
pub struct AutoTx {
    /// `None` if the system refused to open shared memory.
    pub(super) shm: Option<ShmTx>,
    pub(super) udp: UdpTx,
    pub(super) offered: Offered,
    pub(super) uses: Uses,
    mixed: Vec<TxItem>,
    given: TxSeq,
    done: TxSeq,
    /// What the transports said to the last burst that they got.
    shm_given: TxSeq,
    udp_given: TxSeq,
}

impl AutoTx {
    pub(super) fn new(shm: Option<ShmTx>, udp: UdpTx) -> Self {
        Self {
            shm,
            udp,
            offered: Offered::default(),
            uses: Uses::default(),
            mixed: Vec::with_capacity(MIXED),
            given: TxSeq(0),
            done: TxSeq(0),
            shm_given: TxSeq(0),
            udp_given: TxSeq(0),
        }
    }

    /// Sends what may be for several peers on both transports.
    fn send_mixed(&mut self, items: &[TxItem]) {
        for part in items.chunks(MIXED) {
            self.mixed.clear();
            for run in part.chunk_by(|a, b| is_udp(a.peer) == is_udp(b.peer)) {
                if is_udp(run[0].peer) {
                    self.mixed.extend_from_slice(run);
                } else if let Some(shm) = &mut self.shm {
                    self.shm_given = shm.burst(run);
                }
            }
            self.udp_given = self.udp.burst(&self.mixed);
        }
    }
}

impl Tx for AutoTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.given.0 += items.len() as u64;
        match &mut self.shm {
            Some(shm) if items.iter().all(|item| !is_udp(item.peer)) => {
                self.shm_given = shm.burst(items);
            }
            // Without shared memory `udp` counts what was meant for it as for unknown peers.
            None => self.udp_given = self.udp.burst(items),
            Some(_) => self.send_mixed(items),
        }
        self.given
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        let shm_done = self
            .shm
            .as_mut()
            .is_none_or(|shm| shm.done() >= self.shm_given);
        if shm_done && self.udp.done() >= self.udp_given {
            self.done = self.given;
        }
        self.done
    }

    #[inline]
    fn lend(&mut self, peer: PeerId, expected: usize) -> Option<Lane> {
        match &mut self.shm {
            Some(shm) if !is_udp(peer) => shm.lend(peer, expected),
            _ => self.udp.lend(peer, expected),
        }
    }

    #[inline]
    fn publish(&mut self, peer: PeerId, lane: Lane) {
        match &mut self.shm {
            Some(shm) if !is_udp(peer) => shm.publish(peer, lane),
            _ => self.udp.publish(peer, lane),
        }
    }

    /// Of the transport that the peer was met on.
    fn path(&self, peer: PeerId) -> Option<Path> {
        match &self.shm {
            Some(shm) if !is_udp(peer) => shm.path(peer),
            _ => self.udp.path(peer),
        }
    }

    #[inline]
    fn settle(&mut self) {
        if let Some(shm) = &mut self.shm {
            shm.settle();
        }
    }

    fn flush(&mut self) {
        if let Some(shm) = &mut self.shm {
            shm.flush();
        }
        self.udp.flush();
    }
}
