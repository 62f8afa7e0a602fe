//! A session on its way to being open: its stage, and the wish that may be asked for again. The
//! table in the header of `handshake.rs` has the transitions; that file alone makes them.

use std::net::SocketAddr;

use dunlin_core::{CloseReason, Nanos, Session};
use dunlin_wire::control::{EndpointIndex, EndpointUid};

use crate::types::{LinkId, PeerIdentity, SessionKey};

/// A session that this side asks for, as the plane is asked for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Addresses of the same nexus.
    pub to: Vec<SocketAddr>,
    /// Which of its endpoints.
    pub target: EndpointIndex,
    /// When to give up.
    pub deadline: Nanos,
}

/// A session on its way to being open.
#[derive(Debug)]
pub(super) struct Connecting<P> {
    pub(super) session: Session,
    pub(super) key: SessionKey,
    pub(super) wish: Wish,
    /// Times that it was granted and could not be completed.
    pub(super) retries: u32,
    /// The other endpoint was found once.
    pub(super) met: bool,
    pub(super) stage: Stage<P>,
}

#[derive(Debug)]
pub(super) enum Stage<P> {
    /// The plane looks for the other endpoint.
    Asked,
    /// It was found; the offer waits for its turn.
    Waiting { via: LinkId, peer: PeerIdentity },
    /// Core gives the session another token, before it is asked for again.
    Renaming,
    /// The transport makes the offer.
    Offering { via: LinkId, uid: EndpointUid },
    /// The other side has the offer.
    Offered { uid: EndpointUid, pending: P },
    /// It was granted, and the transport takes the answer. The plane may say meanwhile that the
    /// session has ended.
    Completing {
        uid: EndpointUid,
        ended: Option<CloseReason>,
    },
}
