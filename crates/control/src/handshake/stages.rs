//! A session that is connecting: its stage, and its request to the plane, which may be repeated.
//! Only `handshake.rs` changes the stage, by the table in its header.

use std::net::SocketAddr;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOffer};
use dunlin_wire::control::EndpointIndex;

use super::channels::OtherEnd;
use crate::types::{LinkId, PeerIdentity, SessionKey};

/// A session that this side asks for, in the form of the request to the plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Addresses of the same nexus.
    pub to: Vec<SocketAddr>,
    /// The endpoint of that nexus.
    pub target: EndpointIndex,
    /// When to give up.
    pub deadline: Nanos,
}

/// A session that is connecting.
#[derive(Debug)]
pub(super) struct Connecting<P> {
    pub(super) session: Session,
    pub(super) key: SessionKey,
    pub(super) wish: Wish,
    /// The number of grants that could not be completed.
    pub(super) retries: u32,
    /// Some nexus has found the other endpoint.
    pub(super) met: bool,
    /// Number of challenges that were answered since the other side got the offer.
    pub(super) proofs: u8,
    pub(super) stage: Stage<P>,
}

#[derive(Debug)]
pub(super) enum Stage<P> {
    /// The plane looks for the other endpoint.
    Asked,
    /// The endpoint was found; the offer waits for its turn.
    Waiting { via: LinkId, peer: PeerIdentity },
    /// Core gives the session another token, before this side asks for it again.
    Renaming,
    /// The transport makes the offer.
    Offering { via: LinkId, other: OtherEnd },
    /// The other side has the offer.
    Offered { other: OtherEnd, pending: P },
    /// The session was granted, and the transport is processing the answer. In this stage the plane
    /// may report that the session has ended.
    Completing {
        other: OtherEnd,
        ended: Option<CloseReason>,
    },
    /// The session was granted, and the transport has taken the answer, but the peer has not proven
    /// its address.
    Proving {
        other: OtherEnd,
        peer: PeerId,
        offer: SessionOffer,
    },
}
