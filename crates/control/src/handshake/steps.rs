//! The steps that a handshake asks for, and their results. Made by `handshake.rs`, carried out by
//! `handshake/drive.rs`.

use std::fmt;

use dunlin_core::transport::PeerId;
use dunlin_core::{Account, CloseReason, SessionOffer};
use dunlin_wire::control::RefuseCode;
use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::types::{Command, ConnectTicket, LinkId, PeerIdentity, SessionKey, Side};

/// One step to carry out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<F, P> {
    /// Give a command to the plane.
    Command(Command<F>),
    /// Let the transport make an offer, then call `on_offered`.
    Offer {
        /// The session at this side.
        key: SessionKey,
        /// The connection over which the peer was found.
        via: LinkId,
        /// The endpoint that gets the offer.
        peer: PeerIdentity,
    },
    /// Let the transport take an answer and core open the session, then call `on_completed`.
    Complete {
        /// The session at this side.
        key: SessionKey,
        /// The offer that was answered.
        pending: P,
        /// The other side.
        side: Side<F>,
    },
    /// Let the transport take an offer and core accept the session, then call `on_answered`.
    Answer {
        /// The request.
        ticket: ConnectTicket,
        /// The endpoint that asks.
        peer: PeerIdentity,
        /// The side that asks.
        side: Side<F>,
    },
    /// Send a challenge to a peer (rule C13).
    Challenge {
        /// The peer.
        peer: PeerId,
        /// The peer's number and token for the session.
        to: (SessionNum, Token),
        /// The bytes of the challenge.
        secret: u64,
    },
    /// Let core open a session whose peer has granted it and proven its address, and pass the
    /// result to `on_completed`.
    Open {
        /// The session at this side.
        key: SessionKey,
        /// The peer.
        peer: PeerId,
        /// The peer's side.
        offer: SessionOffer,
    },
    /// Report to `on_completed` that a granted session's peer has not proven its address.
    Unproven {
        /// The session at this side.
        key: SessionKey,
    },
    /// Let core accept a session whose peer has proven its address, and pass the result to
    /// `on_answered`.
    Admit {
        /// The request.
        ticket: ConnectTicket,
        /// The endpoint that asks.
        identity: PeerIdentity,
        /// The peer.
        peer: PeerId,
        /// The numbers of the side that asks, and the answer of the transport.
        side: Side<F>,
    },
    /// Inform the transport that no answer to an offer will come.
    Abandon {
        /// The offer.
        pending: P,
    },
    /// Inform the transport that one session less uses a peer.
    Release {
        /// The peer.
        peer: PeerId,
    },
    /// Inform the transport that a peer is dead.
    Remove {
        /// The peer.
        peer: PeerId,
    },
    /// Let core report the fates of requests to the plane.
    Inquired {
        /// The session at this side.
        key: SessionKey,
        /// Requests of the other side.
        requests: Vec<ReqNum>,
    },
    /// Give core the answer to its question.
    Account {
        /// The session at this side.
        key: SessionKey,
        /// The answer.
        account: Account,
    },
    /// Let core give the session another token, then call `on_renamed`.
    Rename {
        /// The session at this side.
        key: SessionKey,
    },
    /// End a session in core, if it still exists.
    Close {
        /// The session at this side.
        key: SessionKey,
        /// Why the session ends.
        reason: CloseReason,
    },
}

/// The result of completing a granted session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// The session is open; the transport counts one more use of this peer.
    Open(PeerId),
    /// The transport took the answer and counts one more use of this peer, but the peer's numbers
    /// do not fit the session that this side asked for (rule C5).
    Unfit(PeerId),
    /// The transport took the answer and counts one more use of this peer, which must still prove
    /// its address.
    Unproven {
        /// The peer.
        peer: PeerId,
        /// The peer's side.
        offer: SessionOffer,
    },
    /// The transport cannot use the answer. The offer is gone.
    Failed(RefuseCode),
}

/// The answer to a session that the peer asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<F> {
    /// The session is open; the transport counts one more use of this peer.
    Granted {
        /// The peer.
        peer: PeerId,
        /// This side.
        side: Side<F>,
    },
    /// The transport took the offer and counts one more use of this peer, but core has no room.
    NoRoom {
        /// The peer.
        peer: PeerId,
        /// The reason for the other side.
        code: RefuseCode,
    },
    /// The transport took the offer and counts one more use of this peer, which must still prove
    /// its address.
    Unproven {
        /// The peer.
        peer: PeerId,
        /// The numbers of the side that asks, and the answer of the transport.
        side: Side<F>,
    },
    /// The transport did not take the offer.
    NoWay(RefuseCode),
}

/// The plane sent an event that does not fit the stage of its session: the plane or the handshake
/// has a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongStage {
    /// The session.
    pub key: SessionKey,
    /// The event.
    pub event: &'static str,
}

impl fmt::Display for WrongStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the plane reports {} for session {}, which does not wait for it; please report this",
            self.event, self.key.session.0
        )
    }
}

impl std::error::Error for WrongStage {}
