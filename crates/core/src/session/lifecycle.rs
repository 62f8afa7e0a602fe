//! Sessions come and go: opening, accepting, closing (rules S7, S11; design §9).
//!
//! The handshake's bytes are the control plane's business; here are its effects on the endpoint.
//! Called by `Rpc` on behalf of the nexus or the simulator, and by `endpoint/scan.rs` for silent
//! peers.

use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::config::{MAX_CREDITS, MAX_WINDOW, SessionOptions};
use crate::congestion::{BytesPerSec, Scheme};
use crate::endpoint::proto::Proto;
use crate::error::{CloseReason, OpenError};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::session::table::Session;
use crate::session::terms::{Terms, largest_message};
use crate::transport::PeerId;

/// What one side of a session tells the other in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOffer {
    /// The number that packets to this side must carry.
    pub session: SessionNum,
    /// The token that packets to this side must carry.
    pub token: Token,
    /// Concurrent requests in each direction.
    pub window: u32,
    /// Packets in flight.
    pub credits: u32,
    /// Most data bytes in a packet.
    pub data_size: u32,
    /// Largest message in bytes.
    pub max_message: u32,
    /// Start of the request numbers.
    pub first_req: ReqNum,
}

/// What happened to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEvent {
    /// A session that this side opened is ready; its waiting calls go out now.
    Connected(Session),
    /// The other side opened a session with this endpoint.
    Accepted(Session),
    /// The session has ended; all of its calls have completed or complete now.
    Closed {
        /// Which.
        session: Session,
        /// Why.
        reason: CloseReason,
    },
}

/// A session that ended at this side, for the nexus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed {
    /// Which.
    pub session: Session,
    /// The token that this side had given it.
    pub token: Token,
    /// Why.
    pub reason: CloseReason,
    /// Who was on the other side; `None` if the session was never connected.
    pub remote: Option<Remote>,
    /// The other side does not know yet.
    pub tell: bool,
}

/// The other side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// Its endpoint, as the transport knows it.
    pub peer: PeerId,
    /// Its number for the session.
    pub session: SessionNum,
    /// Its token for the session.
    pub token: Token,
}

impl SessionOffer {
    /// The numbers are ones that this side can work with.
    pub(crate) fn is_in_range(&self) -> bool {
        self.window.is_power_of_two()
            && self.window <= MAX_WINDOW
            && (1..=MAX_CREDITS).contains(&self.credits)
            && self.data_size > 0
            && self.max_message > 0
            && self.first_req.0.is_multiple_of(MAX_WINDOW)
    }
}

impl Proto {
    /// A new session that waits for the other side's answer.
    pub(crate) fn open(&mut self, options: &SessionOptions) -> Result<Session, OpenError> {
        options.check().map_err(|_| OpenError::BadOffer)?;
        let data_size = self.limits.data_size;
        let index = self.begin_session(
            &Terms {
                peer: PeerId(0),
                window: options.window.min(self.config.max_window),
                credits: options.credits.min(self.config.max_credits),
                data_size,
                max_message: largest_message(self.config.max_message, data_size),
                first_req: self.config.first_req,
            },
            false,
        )?;
        let scheme = options.scheme.or(self.config.scheme);
        self.sessions.at_mut(index).set_scheme(scheme);
        Ok(self.sessions.handle(index))
    }

    /// What the other side must know of a session.
    pub(crate) fn offer_of(&self, session: Session) -> Option<SessionOffer> {
        let line = self.sessions.find_line(session)?;
        Some(line.offer(session.number()))
    }

    /// The other side has accepted: packets may flow.
    pub(crate) fn opened(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
    ) -> Result<(), OpenError> {
        let heard = self.moment.present(self.moment.now());
        let index = session.index();
        if self.sessions.complete(session, peer, answer, heard)? {
            self.open_slots(index);
        }
        self.end_too_large(index);
        self.tell(SessionEvent::Connected(session));
        self.wake(index);
        Ok(())
    }

    /// The other side asks for a session: makes this side of it, and the answer.
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
            window: offer.window.min(self.config.max_window),
            credits: offer.credits.min(self.config.max_credits),
            data_size: self.limits.data_size,
            max_message: self.config.max_message,
            first_req: offer.first_req,
        };
        let index = self.begin_session(&terms, true)?;
        let heard = self.moment.present(self.moment.now());
        self.sessions.join(index, peer, offer, heard);
        self.sessions.at_mut(index).set_scheme(self.config.scheme);
        let session = self.sessions.handle(index);
        self.tell(SessionEvent::Accepted(session));
        let answer = self.offer_of(session).ok_or(OpenError::NoSession)?;
        Ok((session, answer))
    }

    fn begin_session(&mut self, terms: &Terms, accepted: bool) -> Result<u32, OpenError> {
        let strict = self.config.strict_credits;
        let rx_queue = strict.then_some(self.limits.rx_queue);
        let index = self.sessions.begin(terms, accepted, rx_queue)?;
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::StaleIncarnation) {
            self.sessions.reuse_token(index);
        }
        self.open_slots(index);
        Ok(index)
    }

    /// The session has other slots than before.
    fn open_slots(&mut self, index: u32) {
        let line = self.sessions.at(index);
        let (slots, first_req) = (line.slots(), line.terms().first_req);
        let (all, sessions) = (self.sessions.slot_count(), self.sessions.len());
        self.calls
            .open_slots(slots.clone(), first_req, all, sessions);
        self.works.open_slots(slots, first_req, all);
    }

    /// Ends a session: its calls complete with an error, its work is given back, its number is
    /// free. `tell`: the other side does not know. False if it had ended before.
    pub(crate) fn close(&mut self, session: Session, reason: CloseReason, tell: bool) -> bool {
        let Some(index) = self.sessions.find(session) else {
            return false;
        };
        self.end_calls(index, reason);
        self.orphan_works(index);
        self.reassembly.forget_session(index);
        let line = self.sessions.at(index);
        let (number, token) = line.remote();
        let remote = line.is_open().then_some(Remote {
            peer: line.terms().peer,
            session: number,
            token,
        });
        self.end_control(index);
        let token = self.sessions.end(index);
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::LimitLeftAfterClose) {
            self.sessions.at_mut(index).spoil_limit();
        }
        self.tell(SessionEvent::Closed { session, reason });
        self.notices.on_closed(Closed {
            session,
            token,
            reason,
            remote,
            tell,
        });
        true
    }
}

/// What can be asked about a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionInfo {
    /// Packets flow.
    pub open: bool,
    /// The other side opened it.
    pub accepted: bool,
    /// Concurrent requests in each direction.
    pub window: u32,
    /// Packets that may be in flight.
    pub credit_limit: u32,
    /// Packets that may still be sent now.
    pub credits: u32,
    /// Calls in slots, those included that were cancelled and await the server's word.
    pub in_flight: u32,
    /// Credits that these calls hold: one each, and more while large messages are on their way.
    pub credits_held: u32,
    /// Calls that wait for a slot or a credit.
    pub backlog: u32,
    /// Largest message in bytes.
    pub max_message: u32,
    /// Most data bytes in a packet: a message that is not larger travels as one.
    pub data_size: u32,
    /// Bytes of large requests of the other side that are there in part (rule S14).
    pub receiving: u64,
    /// Congestion control. A session that connects has that of its transport later.
    pub scheme: Scheme,
    /// The rate that its requests are held to; `None`: that of the line.
    pub rate: Option<BytesPerSec>,
    /// Smoothed round trip.
    pub rtt: Option<crate::time::Nanos>,
    /// Smallest round trip seen.
    pub rtt_min: Option<crate::time::Nanos>,
    /// The other endpoint as the transport knows it.
    pub peer: PeerId,
    /// The other side's number for the session.
    pub remote: SessionNum,
}

impl Proto {
    /// What is known of a session.
    pub(crate) fn session_info(&self, session: Session) -> Option<SessionInfo> {
        let line = self.sessions.find_line(session)?;
        let (index, terms) = (session.index(), line.terms());
        let calls = self.calls.in_slots(line.slots());
        Some(SessionInfo {
            open: line.is_open(),
            accepted: line.is_accepted(),
            window: terms.window,
            credit_limit: terms.credits,
            credits: line.credits(),
            in_flight: line.in_flight(),
            credits_held: calls.map(|idx| self.credits_held(idx)).sum(),
            backlog: self.calls.waiting(index),
            max_message: terms.max_message,
            data_size: terms.data_size,
            receiving: self.reassembly.bytes_of(index),
            scheme: line.scheme().unwrap_or_default(),
            rate: self.rate_of(index),
            rtt: line.rtt().smoothed(),
            rtt_min: line.rtt().minimum(),
            peer: terms.peer,
            remote: line.remote().0,
        })
    }
}
