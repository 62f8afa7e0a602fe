//! Opening, accepting and closing sessions: each event is brought to the parts that it concerns
//! (rules S7, S11).
//!
//! The control plane handles the bytes of the handshake; this file has the effects of the handshake
//! on the endpoint. Called by `Lifecycle` on behalf of the control plane, by `Cx` for the user, and
//! by the core when a peer has failed or a law is broken.

use crate::config::SessionOptions;
use crate::congestion::Way;
use crate::error::{CloseReason, HandleError, OpenError};
use crate::handle::{Session, SessionIdx};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::protocol::Core;
use crate::session::lifecycle::{Closed, Remote, Report, SessionEvent, SessionInfo, SessionOffer};
use crate::session::terms::{Terms, largest_message};
use crate::transport::PeerId;

impl Core {
    /// Opens a session that waits for the peer's answer.
    pub(crate) fn open(&mut self, options: &SessionOptions) -> Result<Session, OpenError> {
        options.check().map_err(OpenError::Options)?;
        let data_size = self.context.limits.data_size;
        let index = self.begin_session(
            &Terms {
                peer: PeerId(0),
                window: options.window.min(self.context.config.max_window),
                credits: options.credits.min(self.context.config.max_credits),
                data_size,
                max_message: largest_message(self.context.config.max_message, data_size),
                first_req: self.context.config.first_req,
            },
            false,
        )?;
        let scheme = options.scheme.or(self.context.config.scheme);
        self.sessions.at_mut(index).choose_scheme(scheme);
        Ok(self.sessions.handle(index))
    }

    /// Opens a session that the peer has accepted: packets may flow.
    pub(crate) fn opened(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
    ) -> Result<(), OpenError> {
        let heard = self.context.moment.present_now();
        let index = session.index();
        if self.sessions.complete(session, peer, answer, heard)? {
            self.open_slots(index);
        }
        self.end_too_large(index);
        self.context.tell(SessionEvent::Connected(session));
        let line = self.sessions.at_mut(index);
        self.context.wake(index, line);
        Ok(())
    }

    /// Accepts a session that the peer asks for, and makes the answer.
    pub(crate) fn accept(
        &mut self,
        peer: PeerId,
        offer: &SessionOffer,
    ) -> Result<(Session, SessionOffer), OpenError> {
        if !offer.is_in_range() {
            return Err(OpenError::BadOffer);
        }
        let terms = Terms {
            peer,
            window: offer.window.min(self.context.config.max_window),
            credits: offer.credits.min(self.context.config.max_credits),
            data_size: self.context.limits.data_size,
            max_message: self.context.config.max_message,
            first_req: offer.first_req,
        };
        let index = self.begin_session(&terms, true)?;
        let heard = self.context.moment.present_now();
        self.sessions.join(index, peer, offer, heard);
        self.sessions
            .at_mut(index)
            .choose_scheme(self.context.config.scheme);
        let session = self.sessions.handle(index);
        self.context.tell(SessionEvent::Accepted(session));
        let answer = self
            .sessions
            .offer_of(session)
            .ok_or(OpenError::NoSession)?;
        Ok((session, answer))
    }

    fn begin_session(&mut self, terms: &Terms, accepted: bool) -> Result<SessionIdx, OpenError> {
        let strict = self.context.config.strict_credits;
        let rx_queue = strict.then_some(self.context.limits.rx_queue);
        let index = self.sessions.begin(terms, accepted, rx_queue)?;
        #[cfg(feature = "mutants")]
        if self.context.shows(Mutant::StaleIncarnation) {
            self.sessions.reuse_token(index);
        }
        self.open_slots(index);
        self.pacer.on_sessions(self.sessions.live());
        Ok(index)
    }

    /// Gives the session its new slots.
    fn open_slots(&mut self, index: SessionIdx) {
        let line = self.sessions.at(index);
        let (slots, first_req) = (line.slots(), line.terms().first_req);
        let (all, sessions) = (self.sessions.slot_count(), self.sessions.len());
        self.calls.open_slots(slots, first_req, all, sessions);
        self.requests.open_slots(slots, first_req, all);
    }

    /// Ends a session: its calls complete with an error, its responses go back to the pool, and its
    /// number becomes free. `tell`: the peer must still learn of the end. Returns false if the
    /// session had already ended.
    pub(crate) fn close(&mut self, session: Session, reason: CloseReason, tell: bool) -> bool {
        let Some(index) = self.sessions.find(session) else {
            return false;
        };
        self.end_calls(index, reason);
        self.server().end_requests(index);
        self.inquiries.on_ended(index);
        let line = self.sessions.at(index);
        let (number, token) = line.remote();
        let remote = line.is_open().then_some(Remote {
            peer: line.terms().peer,
            session: number,
            token,
        });
        #[cfg(feature = "mutants")]
        self.breach(index);
        self.pacer.end_scheme(self.sessions.at_mut(index));
        let token = self.sessions.end(index);
        self.pacer.on_sessions(self.sessions.live());
        #[cfg(feature = "mutants")]
        if self.context.shows(Mutant::LimitLeftAfterClose) {
            self.sessions.at_mut(index).spoil_limit();
        }
        self.context.tell(SessionEvent::Closed { session, reason });
        self.context.notices.on_report(Report::Closed(Closed {
            session,
            token,
            reason,
            remote,
            tell,
        }));
        true
    }
}

#[cfg(feature = "mutants")]
impl Core {
    /// Plants breaches of laws: the ending session leaves state behind, or takes too much with it.
    fn breach(&mut self, index: SessionIdx) {
        match self.context.config.mutant {
            Some(Mutant::FlowLeaked) => {
                self.sessions.at_mut(index).end_flow();
            }
            Some(Mutant::PromiseLeaked) => self.sessions.leak_promise(),
            Some(Mutant::SlotsLeaked) => self.sessions.leak_slots(),
            Some(Mutant::RequestLeaked) => self.requests.leak(),
            Some(Mutant::PlaceLeaked) => self.reassembly.leak_place(),
            Some(Mutant::CallLeaked) => self.calls.leak(),
            _ => {}
        }
    }
}

impl Core {
    /// The state of a session.
    ///
    /// # Errors
    /// If it has ended, or belongs to another endpoint.
    pub(crate) fn session_info(&self, session: Session) -> Result<SessionInfo, HandleError> {
        let index = self.sessions.check(session)?;
        let line = self.sessions.at(index);
        let terms = line.terms();
        let calls = self.calls.in_slots(line.slots());
        Ok(SessionInfo {
            open: line.is_open(),
            accepted: line.is_accepted(),
            window: terms.window,
            credit_limit: terms.credits,
            credits: line.credits(),
            in_flight: line.in_flight(),
            credits_held: calls
                .map(|idx| self.transfers.credits_of(idx, &self.calls))
                .sum(),
            backlog: self.calls.waiting(index),
            keeps_code_rules: line.keeps_code_rules(),
            max_message: terms.max_message,
            data_size: terms.data_size,
            receiving: self.reassembly.bytes_of(index),
            scheme: line.scheme().unwrap_or_default(),
            rate: self.pacer.rate(line.flow(), Way::Out),
            rtt: line.rtt().smoothed(),
            rtt_min: line.rtt().minimum(),
            peer: terms.peer,
            remote: line.remote().0,
        })
    }
}
