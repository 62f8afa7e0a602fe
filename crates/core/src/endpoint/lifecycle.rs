//! The control plane's handle to an endpoint, through which it opens and closes sessions, and adds
//! peers to the transport (rules C4 to C6).
//!
//! The handle borrows the endpoint, so these methods do not appear on the documentation page of
//! `Endpoint`. Called by the adapters of `dunlin-control` in the nexus and in the simulator, and by
//! tests that connect two endpoints without a control plane.

use dunlin_msgbuf::BufRef;
use dunlin_wire::control::Fate;
use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::config::SessionOptions;
use crate::context::peers::Peer;
use crate::endpoint::rpc::Endpoint;
use crate::error::{CloseReason, OpenError};
use crate::handle::Session;
use crate::session::challenge::header_to;
use crate::session::lifecycle::{Account, Report, SessionOffer};
use crate::time::Clock;
use crate::transport::{PeerId, Transport};

/// An endpoint as the control plane sees it.
pub struct Lifecycle<'a, T: Transport, C, App> {
    rpc: &'a mut Endpoint<T, C, App>,
}

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// The handle of the control plane, through which sessions begin and end.
    #[inline]
    pub fn lifecycle(&mut self) -> Lifecycle<'_, T, C, App> {
        Lifecycle { rpc: self }
    }
}

impl<'a, T: Transport, C: Clock, App> Lifecycle<'a, T, C, App> {
    /// Opens a session that waits for the peer's answer. Calls on it wait in its backlog.
    ///
    /// # Errors
    /// If there are too many sessions, or the options are out of range.
    pub fn open(&mut self, options: &SessionOptions) -> Result<Session, OpenError> {
        self.rpc.engine.step_in();
        self.rpc.engine.core.open(options)
    }

    /// The numbers of a session that the peer must know.
    pub fn offer_of(&self, session: Session) -> Option<SessionOffer> {
        self.rpc.engine.core.sessions.offer_of(session)
    }

    /// The live session that has this number and token at this side.
    pub fn session_named(&self, number: SessionNum, token: Token) -> Option<Session> {
        self.rpc.engine.core.sessions.named(number, token)
    }

    /// Gives a session that waits for the peer's answer another token, so that no packet with the
    /// old one reaches it (rule W5). `None`: the session is not waiting.
    pub fn rename(&mut self, session: Session) -> Option<Token> {
        self.rpc.engine.core.sessions.rename(session)
    }

    /// Opens a session, because the peer has accepted it.
    ///
    /// # Errors
    /// If the session has ended or is open, or the answer does not fit the offer.
    pub fn opened(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
    ) -> Result<(), OpenError> {
        let engine = &mut self.rpc.engine;
        engine.step_in();
        engine.core.opened(session, peer, answer)?;
        engine.begin_pacing(session, peer);
        Ok(())
    }

    /// Accepts a session that the peer asks for.
    ///
    /// # Errors
    /// If there are too many sessions, or the offer is out of range.
    pub fn accept(
        &mut self,
        peer: PeerId,
        offer: &SessionOffer,
    ) -> Result<(Session, SessionOffer), OpenError> {
        let engine = &mut self.rpc.engine;
        engine.step_in();
        let (session, answer) = engine.core.accept(peer, offer)?;
        engine.begin_pacing(session, peer);
        Ok((session, answer))
    }

    /// Names a peer, with which a session has opened; `None`: its last session has ended. Handlers
    /// get the name from [`Cx::peer`](crate::Cx::peer).
    pub fn name_peer(&mut self, peer: PeerId, name: Option<Peer>) {
        let peers = &mut self.rpc.engine.core.context.peers;
        match name {
            Some(name) => peers.on_met(peer, name),
            None => peers.on_parted(peer),
        }
    }

    /// Ends a session for the control plane. False if it had ended before.
    pub fn close(&mut self, session: Session, reason: CloseReason) -> bool {
        self.rpc.engine.step_in();
        self.rpc.engine.core.close(session, reason, false)
    }

    /// The fates of requests that the peer has issued on a session (rule C11).
    pub fn fates_of(&self, session: Session, requests: &[ReqNum]) -> Vec<(ReqNum, Fate)> {
        let core = &self.rpc.engine.core;
        let line = core.sessions.find_line(session);
        let Some(line) = line.filter(|line| line.is_open()) else {
            return Vec::new();
        };
        let fate = |req: &ReqNum| (*req, core.requests.fate_at(line.slot_at(*req), *req));
        requests.iter().map(fate).collect()
    }

    /// Takes the peer's answer to a question about calls of a session. An answer without a question
    /// changes nothing.
    pub fn on_account(&mut self, session: Session, account: &Account) {
        self.rpc.engine.step_in();
        let core = &mut self.rpc.engine.core;
        if core.inquirer().on_account(session, account) {
            core.close(session, CloseReason::PeerFailed, true);
        }
    }

    /// Sends a challenge to a peer before this side opens a session with it; the session has this
    /// number and token at the peer (rule C13).
    pub fn challenge(&mut self, peer: PeerId, to: (SessionNum, Token), secret: u64) {
        self.rpc.engine.step_in();
        let outbox = &mut self.rpc.engine.core.context.outbox;
        outbox.push(peer, &header_to(to), BufRef::EMPTY);
        outbox.add_challenge(secret.to_le_bytes());
    }

    /// Whether there is a report to take.
    #[inline]
    pub fn has_reports(&self) -> bool {
        self.rpc.engine.core.context.notices.has_reports()
    }

    /// The next report: a session has ended at this side, has a question for its peer, or was
    /// challenged by its peer.
    pub fn take_report(&mut self) -> Option<Report> {
        self.rpc.engine.core.context.notices.pop_report()
    }

    /// Both halves of the transport, so that the control plane can add peers to it.
    #[inline]
    pub fn halves_mut(self) -> (&'a mut T::Rx, &'a mut T::Tx) {
        (&mut self.rpc.rx, &mut self.rpc.engine.tx)
    }
}
