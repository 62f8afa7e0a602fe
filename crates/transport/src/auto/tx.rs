//! The sending half: each packet goes to the transport that was chosen for its peer.
//!
//! Invariants: packets to one peer keep their order, and UDP gets one burst for each burst of ours.
//! A position in the sequence counts as done when both transports are done with all packets that
//! they got before it (`released`). Called by the event loop, and by `connect`.

use dunlin_core::transport::{
    LANE_LINES, Lane, LanePacket, Messages, Path, PeerId, Tx, TxItem, TxSeq,
};

use super::chosen::Chosen;
use super::offer::Offered;
use super::released::{Released, SentPositions};
use super::remote::Remote;
use super::uses::{Uses, is_remote};
use crate::shm::ShmTx;

/// Room for the packets over UDP that a mixed burst contains.
const MIXED: usize = 128;

/// The sending half of an `auto` endpoint.
#[derive(Debug)]
pub struct AutoTx<R: Remote = Chosen> {
    /// `None` if the system refused to open shared memory.
    pub(super) shm: Option<ShmTx>,
    pub(super) remote: R::Tx,
    pub(super) offered: Offered,
    pub(super) uses: Uses,
    mixed: Vec<TxItem>,
    /// The packets over UDP that a mixed lane contains.
    mixed_staged: Vec<LanePacket>,
    /// The position of this endpoint after its last burst, and the position of each transport in
    /// its own sequence.
    given: SentPositions,
    released: Released,
}

impl<R: Remote> AutoTx<R> {
    pub(super) fn new(shm: Option<ShmTx>, remote: R::Tx) -> Self {
        Self {
            shm,
            remote,
            offered: Offered::default(),
            uses: Uses::default(),
            mixed: Vec::with_capacity(MIXED),
            mixed_staged: Vec::with_capacity(LANE_LINES),
            given: SentPositions::default(),
            released: Released::default(),
        }
    }

    /// The half of the transport for peers of other hosts.
    pub fn remote(&self) -> &R::Tx {
        &self.remote
    }

    /// Sends a burst whose packets may be for peers on both transports.
    fn send_mixed(&mut self, items: &[TxItem]) {
        for part in items.chunks(MIXED) {
            self.mixed.clear();
            for run in part.chunk_by(|a, b| is_remote(a.peer) == is_remote(b.peer)) {
                if is_remote(run[0].peer) {
                    self.mixed.extend_from_slice(run);
                } else if let Some(shm) = &mut self.shm {
                    self.given.shm = shm.burst(run);
                }
            }
            self.given.remote = self.remote.burst(&self.mixed);
        }
    }
}

impl<R: Remote> AutoTx<R> {
    /// Sends a lane whose packets may be for peers on both transports, and the items after it.
    fn send_mixed_lane(&mut self, lane: &Lane, items: &[TxItem]) {
        self.mixed_staged.clear();
        let runs = lane.packets();
        for run in runs.chunk_by(|a, b| is_remote(a.peer()) == is_remote(b.peer())) {
            if is_remote(run[0].peer()) {
                self.mixed_staged.extend_from_slice(run);
            } else if let Some(shm) = &mut self.shm {
                self.given.shm = shm.send_staged(lane, run, &[]);
            }
        }
        if !self.mixed_staged.is_empty() {
            self.given.remote = R::send_staged(&mut self.remote, lane, &self.mixed_staged);
        }
        self.send_mixed(items);
    }
}

impl<R: Remote> Tx for AutoTx<R> {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.given.own.0 += items.len() as u64;
        match &mut self.shm {
            Some(shm) if items.iter().all(|item| !is_remote(item.peer)) => {
                self.given.shm = shm.burst(items);
            }
            // Without shared memory, `udp` gets its packets too, and counts them as packets for
            // unknown peers.
            None => self.given.remote = self.remote.burst(items),
            Some(_) => self.send_mixed(items),
        }
        self.given.own
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        let shm = match &mut self.shm {
            Some(shm) => shm.done(),
            None => self.given.shm,
        };
        self.released.look(self.given, shm, self.remote.done())
    }

    fn lane(&self) -> usize {
        let shm = self.shm.as_ref().map_or(usize::MAX, Tx::lane);
        self.remote.lane().min(shm)
    }

    #[inline]
    fn takes_alike(&self, packet: LanePacket) -> bool {
        let shm = self.shm.as_ref();
        shm.is_some_and(|shm| shm.takes_alike(packet)) && !is_remote(packet.peer())
    }

    #[inline(always)]
    fn send_alike<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        match &mut self.shm {
            Some(shm) if !is_remote(packet.peer()) => {
                self.given.own.0 += lane.len() as u64;
                self.given.shm = shm.send_alike(lane, packet, messages);
                self.given.own
            }
            _ => self.send(lane, &[]),
        }
    }

    #[inline(always)]
    fn send_lone<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        match &mut self.shm {
            Some(shm) if !is_remote(packet.peer()) => {
                self.given.own.0 += 1;
                self.given.shm = shm.send_lone(lane, packet, messages);
                self.given.own
            }
            _ => self.send(lane, &[]),
        }
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        self.given.own.0 += (lane.len() + items.len()) as u64;
        let mut peers = lane.packets().iter().map(|packet| packet.peer());
        let others = items.iter().any(|item| is_remote(item.peer));
        match &mut self.shm {
            Some(shm) if !others && !peers.any(is_remote) => {
                self.given.shm = shm.send(lane, items);
            }
            None => self.given.remote = self.remote.send(lane, items),
            Some(_) => self.send_mixed_lane(lane, items),
        }
        self.given.own
    }

    /// The path of the transport that was chosen for the peer.
    fn path(&self, peer: PeerId) -> Option<Path> {
        match &self.shm {
            Some(shm) if !is_remote(peer) => shm.path(peer),
            _ => self.remote.path(peer),
        }
    }

    fn reorders(&self, peer: PeerId) -> bool {
        match &self.shm {
            Some(shm) if !is_remote(peer) => shm.reorders(peer),
            _ => self.remote.reorders(peer),
        }
    }

    #[inline]
    fn settle(&mut self) {
        if let Some(shm) = &mut self.shm {
            shm.settle();
        }
        self.remote.settle();
    }

    fn flush(&mut self) {
        if let Some(shm) = &mut self.shm {
            shm.flush();
        }
        self.remote.flush();
    }
}
