//! One attempt to open a session, at the side that asks for it (rules C4 and C5).
//!
//! ```text
//!            link up               Found              Offer
//! Waiting ────────────▶ LookingUp ───────▶ Offering ────────▶ Connecting ──Accept──▶ (open)
//!    ▲  ▲                   │                 │                   │
//!    │  └──── link lost ────┴─────────────────┴───────────────────┤
//!    └─────── after a wait ◀── Backoff ◀── refused, worth a retry ┘
//! ```
//! In every state the deadline, a final refusal or the user can end the attempt. A program may call
//! `connect` before the server listens: then the attempt waits for the link, which the route dials
//! again and again (`route.rs`), or gets a refusal after which it retries.
//!
//! Owned and called by `plane`.

use dunlin_core::Nanos;
use dunlin_wire::control::{EndpointIndex, EndpointUid, RefuseCode};

use super::route::RouteId;
use super::types::{ConnectFailure, LinkId, SessionKey};

/// The state of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttemptState {
    /// The attempt waits for a link, or for its turn to use one.
    Waiting,
    /// The attempt has asked the other nexus for the endpoint.
    LookingUp(LinkId),
    /// The attempt has asked this process's endpoint for an offer.
    Offering(LinkId),
    /// The attempt has asked the other endpoint for the session.
    Connecting(LinkId),
    /// The other side refused; the attempt tries again at this time.
    Backoff(Nanos),
}

/// One attempt to open a session.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) key: SessionKey,
    pub(super) route: RouteId,
    pub(super) target: EndpointIndex,
    pub(super) deadline: Nanos,
    pub(super) state: AttemptState,
    /// The endpoint that was found, if the target was looked up.
    pub(super) peer: EndpointUid,
    /// The endpoint's index, if the target was looked up.
    pub(super) found: EndpointIndex,
    retries: u32,
    last_refusal: Option<RefuseCode>,
    had_link: bool,
}

/// The peer has sent a message that does not fit the state: an error of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OutOfTurn;

/// The next step after a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AfterRefusal {
    /// Wait for the backoff that belongs to this number of retries.
    Retry(u32),
    /// The attempt has failed.
    Failed(ConnectFailure),
}

impl Attempt {
    pub(super) fn new(
        key: SessionKey,
        route: RouteId,
        target: EndpointIndex,
        deadline: Nanos,
    ) -> Self {
        Self {
            key,
            route,
            target,
            deadline,
            state: AttemptState::Waiting,
            peer: EndpointUid::default(),
            found: target,
            retries: 0,
            last_refusal: None,
            had_link: false,
        }
    }

    /// The link that the attempt uses now.
    pub(super) const fn link(&self) -> Option<LinkId> {
        match self.state {
            AttemptState::LookingUp(link)
            | AttemptState::Offering(link)
            | AttemptState::Connecting(link) => Some(link),
            AttemptState::Waiting | AttemptState::Backoff(_) => None,
        }
    }

    /// When the plane must look at the attempt next.
    pub(super) fn due(&self) -> Nanos {
        match self.state {
            AttemptState::Backoff(until) => until.min(self.deadline),
            _ => self.deadline,
        }
    }

    /// Whether the endpoint holds an offer that gets no answer if the link is lost.
    pub(super) const fn has_offer(&self) -> bool {
        matches!(
            self.state,
            AttemptState::Offering(_) | AttemptState::Connecting(_)
        )
    }

    /// Begins the attempt's turn on the link.
    pub(super) fn on_turn(&mut self, link: LinkId) {
        debug_assert_eq!(self.state, AttemptState::Waiting);
        self.had_link = true;
        self.state = AttemptState::LookingUp(link);
    }

    /// Takes the answer to the look-up.
    pub(super) fn on_found(
        &mut self,
        from: LinkId,
        index: EndpointIndex,
        peer: EndpointUid,
    ) -> Result<(), OutOfTurn> {
        if self.state != AttemptState::LookingUp(from) {
            return Err(OutOfTurn);
        }
        self.state = AttemptState::Offering(from);
        (self.found, self.peer) = (index, peer);
        Ok(())
    }

    /// Takes the endpoint's offer for this link. False if that link is gone.
    pub(super) fn on_offer(&mut self, via: LinkId) -> bool {
        let expected = self.state == AttemptState::Offering(via);
        if expected {
            self.state = AttemptState::Connecting(via);
        }
        expected
    }

    /// Takes the grant of the session. If it fits the attempt, the attempt is over.
    pub(super) fn on_accept(&self, from: LinkId, peer: EndpointUid) -> Result<(), OutOfTurn> {
        let expected = self.state == AttemptState::Connecting(from) && self.peer == peer;
        if expected { Ok(()) } else { Err(OutOfTurn) }
    }

    /// Takes the refusal of the look-up or of the session.
    pub(super) fn on_refuse(
        &mut self,
        from: LinkId,
        code: RefuseCode,
    ) -> Result<AfterRefusal, OutOfTurn> {
        match self.state {
            AttemptState::LookingUp(link) | AttemptState::Connecting(link) if link == from => {}
            _ => return Err(OutOfTurn),
        }
        self.last_refusal = Some(code);
        let worth_a_retry = matches!(
            code,
            RefuseCode::NoSuchEndpoint | RefuseCode::Busy | RefuseCode::UnprovenAddress
        );
        if !worth_a_retry {
            return Ok(AfterRefusal::Failed(ConnectFailure::Refused(code)));
        }
        let retries = self.retries;
        self.retries = self.retries.saturating_add(1);
        Ok(AfterRefusal::Retry(retries))
    }

    /// The error of a connect whose deadline has passed.
    pub(super) const fn timeout(&self) -> ConnectFailure {
        if self.had_link {
            ConnectFailure::TimedOut(self.last_refusal)
        } else {
            ConnectFailure::Unreachable
        }
    }
}
