//! The names of peers, for handlers that ask: each peer's process and endpoint in the control
//! plane. The control plane gives a name with the first session and withdraws it with the last.

use std::net::SocketAddr;

use crate::ordered::Map;
use crate::transport::PeerId;

/// A peer's place in the control plane, where known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The address at which the nexus of the peer's process listens.
    pub process: Option<SocketAddr>,
    /// The index of the peer's endpoint in that nexus.
    pub endpoint: Option<u16>,
}

/// The peers with which a session is open.
#[derive(Debug, Default)]
pub(crate) struct Peers(Map<PeerId, Peer>);

impl Peers {
    /// A session with this peer has opened.
    pub(crate) fn on_met(&mut self, peer: PeerId, name: Peer) {
        self.0.insert(peer, name);
    }

    /// The last session with this peer has ended.
    pub(crate) fn on_parted(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    pub(crate) fn find(&self, peer: PeerId) -> Option<Peer> {
        self.0.get(&peer).copied()
    }
}

#[cfg(test)]
mod tests;
