//! The control plane's handle to an endpoint: sessions begin and end through it, and peers become
//! known to the transport (rules C4 to C6).
//!
//! It only borrows the endpoint, so a program never meets these methods on the page of `Rpc`.
//! Called by the adapters of `dunlin-control` in the nexus and in the simulator, and by tests that
//! connect two endpoints without a control plane.

use dunlin_wire::{SessionNum, Token};

use crate::config::SessionOptions;
use crate::endpoint::rpc::Rpc;
use crate::error::{CloseReason, OpenError};
use crate::handle::Session;
use crate::session::lifecycle::{Closed, SessionOffer};
use crate::time::Clock;
use crate::transport::{PeerId, Transport};

/// An endpoint as the control plane sees it.
pub struct Lifecycle<'a, T: Transport, C, App> {
    rpc: &'a mut Rpc<T, C, App>,
}

impl<T: Transport, C: Clock, App> Rpc<T, C, App> {
    /// The handle of the control plane, through which sessions begin and end.
    #[inline]
    pub fn lifecycle(&mut self) -> Lifecycle<'_, T, C, App> {
        Lifecycle { rpc: self }
    }
}

impl<'a, T: Transport, C: Clock, App> Lifecycle<'a, T, C, App> {
    /// A new session that waits for the other side's answer. Calls on it wait in its backlog.
    ///
    /// # Errors
    /// If there are too many sessions, or the options are out of range.
    pub fn open(&mut self, options: &SessionOptions) -> Result<Session, OpenError> {
        self.rpc.engine.step_in();
        self.rpc.engine.core.open(options)
    }

    /// The numbers of a session that the other side must know.
    pub fn offer_of(&self, session: Session) -> Option<SessionOffer> {
        self.rpc.engine.core.sessions.offer_of(session)
    }

    /// The live session that has this number and token at this side.
    pub fn session_named(&self, number: SessionNum, token: Token) -> Option<Session> {
        self.rpc.engine.core.sessions.named(number, token)
    }

    /// Gives a session that waits for the other side's answer another token, so that no packet to
    /// it under the old one is taken (rule W5). `None`: it does not wait.
    pub fn rename(&mut self, session: Session) -> Option<Token> {
        self.rpc.engine.core.sessions.rename(session)
    }

    /// The other side has accepted.
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
        engine.begin_control(session, peer);
        Ok(())
    }

    /// The other side asks for a session.
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
        engine.begin_control(session, peer);
        Ok((session, answer))
    }

    /// Ends a session because the control plane says so. False if it had ended before.
    pub fn close(&mut self, session: Session, reason: CloseReason) -> bool {
        self.rpc.engine.step_in();
        self.rpc.engine.core.close(session, reason, false)
    }

    /// The next session that has ended at this side.
    #[inline]
    pub fn take_closed(&mut self) -> Option<Closed> {
        self.rpc.engine.core.context.notices.pop_closed()
    }

    /// Both halves of the transport, to make peers known to it.
    #[inline]
    pub fn halves_mut(self) -> (&'a mut T::Rx, &'a mut T::Tx) {
        (&mut self.rpc.rx, &mut self.rpc.engine.tx)
    }
}
