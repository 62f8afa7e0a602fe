//! The number of peers on each transport.
//!
//! Invariant: a peer is in the table if and only if it has uses, and the two numbers count the
//! table's entries. Called by `connect`; `tx` asks to which transport an id belongs.

use std::collections::HashMap;

use dunlin_core::transport::PeerId;

/// Set in the id of a peer that is reached over the remote transport. Neither transport uses this
/// bit itself; the remote one ignores it.
const REMOTE_BIT: u32 = 1 << 31;

/// Uses of all peers.
#[derive(Debug, Default)]
pub(super) struct Uses {
    by_peer: HashMap<PeerId, u32>,
    shm_peers: usize,
    remote_peers: usize,
}

/// True if the peer is reached over the remote transport.
#[inline]
pub(super) fn is_remote(peer: PeerId) -> bool {
    peer.0 & REMOTE_BIT != 0
}

/// The id under which `auto` knows a peer of the remote transport.
pub(super) fn over_remote(peer: PeerId) -> PeerId {
    PeerId(peer.0 | REMOTE_BIT)
}

impl Uses {
    /// Adds a use of the peer.
    pub(super) fn add(&mut self, peer: PeerId) {
        let uses = self.by_peer.entry(peer).or_insert(0);
        *uses += 1;
        if *uses == 1 {
            *self.peers(peer) += 1;
        }
    }

    /// Removes one use of the peer.
    pub(super) fn release(&mut self, peer: PeerId) {
        match self.by_peer.get_mut(&peer) {
            Some(uses) if *uses > 1 => *uses -= 1,
            _ => self.remove(peer),
        }
    }

    /// Removes all uses of the peer.
    pub(super) fn remove(&mut self, peer: PeerId) {
        if self.by_peer.remove(&peer).is_some() {
            *self.peers(peer) -= 1;
        }
    }

    /// The number of peers on shared memory.
    pub(super) fn shm_peers(&self) -> usize {
        self.shm_peers
    }

    /// The number of peers over the remote transport.
    pub(super) fn remote_peers(&self) -> usize {
        self.remote_peers
    }

    fn peers(&mut self, peer: PeerId) -> &mut usize {
        if is_remote(peer) {
            &mut self.remote_peers
        } else {
            &mut self.shm_peers
        }
    }
}
