//! The channels between this endpoint and others, which sessions share, and the order in which
//! sessions make their offers (rule C4).
//!
//! The first offer to an endpoint is made alone: other sessions wait until there is a channel to
//! share. From then on at most [`MAX_OFFERS`] are under way at a time. Invariant: as long as a
//! session waits, an offer is under way, and the next session gets the turn when that offer ends.
//! Called by `handshake.rs`.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use dunlin_core::ordered::Map;
use dunlin_core::transport::PeerId;
use dunlin_wire::SessionNum;
use dunlin_wire::control::{EndpointIndex, EndpointUid};

use crate::types::PeerIdentity;

/// Most offers under way to an endpoint with which there is a channel.
pub(super) const MAX_OFFERS: usize = 32;

/// All channels.
#[derive(Debug, Default)]
pub(super) struct Channels {
    of: Map<OtherEnd, Channel>,
    /// For each peer: the other end, and the number of open sessions with the peer.
    peers: Map<PeerId, (OtherEnd, usize)>,
    /// A planted bug: no session waits for its turn.
    #[cfg(feature = "mutants")]
    pub(super) unlimited: bool,
}

/// The other end of a channel: the identity that the endpoint claims, and the address of its
/// connection. A nexus can claim an endpoint of another nexus, but cannot connect from that nexus's
/// address. So its unanswered offers take no turn from sessions with the real endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct OtherEnd {
    endpoint: EndpointUid,
    remote: Option<IpAddr>,
}

impl OtherEnd {
    pub(super) const fn of(peer: &PeerIdentity) -> Self {
        Self {
            endpoint: peer.endpoint,
            remote: peer.remote,
        }
    }
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
    /// The address at which the other endpoint's nexus listens, if it is known.
    nexus: Option<SocketAddr>,
    /// The other endpoint's index in that nexus.
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
    /// Notes the address and the index of an endpoint. There may be no channel with it yet.
    pub(super) fn meet(&mut self, peer: &PeerIdentity) {
        let channel = self
            .of
            .get_or_insert(OtherEnd::of(peer), Channel::default());
        channel.nexus = peer.nexus.or(channel.nexus);
        channel.index = peer.index.or(channel.index);
    }

    /// Adds a session that waits for its turn.
    pub(super) fn queue(&mut self, other: OtherEnd, session: SessionNum) {
        let channel = self.of.get_or_insert(other, Channel::default());
        channel.waiting.push_back(session);
    }

    /// Removes a session that no longer waits.
    pub(super) fn leave_queue(&mut self, other: OtherEnd, session: SessionNum) {
        if let Some(channel) = self.of.get_mut(&other) {
            channel.waiting.retain(|waiting| *waiting != session);
        }
        self.tidy(other);
    }

    /// Gives the turn to the next waiting session, which must make its offer now.
    pub(super) fn next_turn(&mut self, other: OtherEnd) -> Option<SessionNum> {
        let channel = self.of.get_mut(&other)?;
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

    /// Ends an offer's turn.
    pub(super) fn on_turn_over(&mut self, other: OtherEnd) {
        if let Some(channel) = self.of.get_mut(&other) {
            debug_assert!(channel.offered > 0, "a turn ends once");
            channel.offered = channel.offered.saturating_sub(1);
        }
        self.tidy(other);
    }

    /// Notes that a session with this peer is open now.
    pub(super) fn on_open(&mut self, other: OtherEnd, peer: PeerId) {
        // Two connections with different addresses may lead to one peer, which has one count.
        let (of_peer, sessions) = self.peers.get_or_insert(peer, (other, 0));
        *sessions += 1;
        self.of.get_or_insert(*of_peer, Channel::default()).live += 1;
        self.tidy(other);
    }

    /// Notes that a session with this peer has ended. True if it was the last.
    pub(super) fn on_ended(&mut self, peer: PeerId) -> bool {
        let Some((other, sessions)) = self.peers.get_mut(&peer) else {
            return false;
        };
        let other = *other;
        *sessions -= 1;
        let last = *sessions == 0;
        if last {
            self.peers.remove(&peer);
        }
        if let Some(channel) = self.of.get_mut(&other) {
            channel.live = channel.live.saturating_sub(1);
        }
        self.tidy(other);
        last
    }

    /// See [`super::Handshake::whereabouts`].
    pub(super) fn whereabouts(&self, peer: PeerId) -> (Option<SocketAddr>, Option<EndpointIndex>) {
        let other = self.peers.get(&peer).map(|(other, _)| other);
        let channel = other.and_then(|other| self.of.get(other));
        channel.map_or((None, None), |channel| (channel.nexus, channel.index))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.peers.is_empty()
    }

    /// Forgets an endpoint without sessions and offers.
    fn tidy(&mut self, other: OtherEnd) {
        if self.of.get(&other).is_some_and(Channel::is_unused) {
            self.of.remove(&other);
        }
    }
}
