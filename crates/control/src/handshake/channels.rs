//! The channels between this endpoint and others, which sessions share, and the turns in which
//! their offers are made (rule C4).
//!
//! The first offer to an endpoint is made alone: the others wait until there is a channel to share.
//! From then on [`MAX_OFFERS`] are under way at a time. Invariant: as long as a session waits, an
//! offer is under way, so its end passes the turn on. Called by `handshake.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use dunlin_core::transport::PeerId;
use dunlin_wire::SessionNum;
use dunlin_wire::control::{EndpointIndex, EndpointUid};

use crate::types::PeerIdentity;

/// Offers under way to an endpoint with which there is a channel.
pub(super) const MAX_OFFERS: usize = 32;

/// All channels.
#[derive(Debug, Default)]
pub(super) struct Channels {
    of: BTreeMap<EndpointUid, Channel>,
    /// The endpoint behind each peer, and the number of open sessions with it.
    peers: BTreeMap<PeerId, (EndpointUid, usize)>,
    /// A planted bug: every session has its turn at once.
    #[cfg(feature = "mutants")]
    pub(super) unlimited: bool,
}

/// The sessions and offers between this endpoint and another, which share a channel.
#[derive(Debug, Default)]
struct Channel {
    /// Open sessions.
    live: usize,
    /// Offers under way.
    offered: usize,
    /// Sessions that wait for their turn, in order.
    waiting: VecDeque<SessionNum>,
    /// Where the other's nexus listens, as far as is known.
    nexus: Option<SocketAddr>,
    /// Its index there.
    index: Option<EndpointIndex>,
}

impl Channel {
    const fn may_offer(&self) -> bool {
        self.offered == 0 || (self.live > 0 && self.offered < MAX_OFFERS)
    }

    fn is_unused(&self) -> bool {
        self.live == 0 && self.offered == 0 && self.waiting.is_empty()
    }
}

impl Channels {
    /// Notes the address and the index of an endpoint, with which there may be no channel yet.
    pub(super) fn meet(&mut self, peer: &PeerIdentity) {
        let channel = self.of.entry(peer.endpoint).or_default();
        channel.nexus = peer.nexus.or(channel.nexus);
        channel.index = peer.index.or(channel.index);
    }

    /// A session waits for its turn.
    pub(super) fn queue(&mut self, uid: EndpointUid, session: SessionNum) {
        self.of.entry(uid).or_default().waiting.push_back(session);
    }

    /// A session no longer waits.
    pub(super) fn leave_queue(&mut self, uid: EndpointUid, session: SessionNum) {
        if let Some(channel) = self.of.get_mut(&uid) {
            channel.waiting.retain(|waiting| *waiting != session);
        }
        self.tidy(uid);
    }

    /// The session whose offer is to be made next; it has its turn now.
    pub(super) fn next_turn(&mut self, uid: EndpointUid) -> Option<SessionNum> {
        let channel = self.of.get_mut(&uid)?;
        let may_offer = channel.may_offer();
        #[cfg(feature = "mutants")]
        let may_offer = may_offer || self.unlimited;
        if !may_offer {
            return None;
        }
        let session = channel.waiting.pop_front()?;
        channel.offered += 1;
        Some(session)
    }

    /// Ends the turn of an offer.
    pub(super) fn on_turn_over(&mut self, uid: EndpointUid) {
        if let Some(channel) = self.of.get_mut(&uid) {
            debug_assert!(channel.offered > 0, "a turn ends once");
            channel.offered = channel.offered.saturating_sub(1);
        }
        self.tidy(uid);
    }

    /// Notes that a session with this peer is open now.
    pub(super) fn on_open(&mut self, uid: EndpointUid, peer: PeerId) {
        self.of.entry(uid).or_default().live += 1;
        self.peers.entry(peer).or_insert((uid, 0)).1 += 1;
    }

    /// Notes that a session with this peer has ended. True if it was the last.
    pub(super) fn on_ended(&mut self, peer: PeerId) -> bool {
        let Some((uid, sessions)) = self.peers.get_mut(&peer) else {
            return false;
        };
        let uid = *uid;
        *sessions -= 1;
        let last = *sessions == 0;
        if last {
            self.peers.remove(&peer);
        }
        if let Some(channel) = self.of.get_mut(&uid) {
            channel.live = channel.live.saturating_sub(1);
        }
        self.tidy(uid);
        last
    }

    /// See [`super::Handshake::whereabouts`].
    pub(super) fn whereabouts(&self, peer: PeerId) -> (Option<SocketAddr>, Option<EndpointIndex>) {
        let uid = self.peers.get(&peer).map(|(uid, _)| uid);
        let channel = uid.and_then(|uid| self.of.get(uid));
        channel.map_or((None, None), |channel| (channel.nexus, channel.index))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.peers.is_empty()
    }

    /// Forgets an endpoint without sessions and offers.
    fn tidy(&mut self, uid: EndpointUid) {
        if self.of.get(&uid).is_some_and(Channel::is_unused) {
            self.of.remove(&uid);
        }
    }
}
