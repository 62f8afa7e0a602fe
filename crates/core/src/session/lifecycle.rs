//! Sessions come and go: opening, accepting, closing (rules S7, S11; design §9).
//!
//! The handshake's bytes are the control plane's business; here are its effects on the endpoint.
//! Called by `Rpc` on behalf of the nexus or the simulator, and by `endpoint/scan.rs` for silent
//! peers.

use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::client::call::CallIdx;
use crate::config::{MAX_CREDITS, MAX_PACKETS, MAX_WINDOW, SessionOptions};
use crate::congestion::{BytesPerSec, Scheme};
use crate::endpoint::proto::Proto;
use crate::error::{CloseReason, OpenError};
use crate::session::table::{NONE, Session, State};
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

impl Proto {
    /// A new session that waits for the other side's answer.
    pub(crate) fn open(&mut self, options: &SessionOptions) -> Result<Session, OpenError> {
        options.check().map_err(|_| OpenError::BadOffer)?;
        let window = options.window.min(self.config.max_window);
        let credits = options.credits.min(self.config.max_credits);
        let index = self.insert_session(window, credits, self.config.first_req)?;
        let state = self.sessions.at_mut(index);
        state.state = State::Connecting;
        state.scheme = options.scheme.or(self.config.scheme);
        state.data_size = self.limits.data_size;
        state.max_message = largest(self.config.max_message, self.limits.data_size);
        Ok(self.sessions.handle(index))
    }

    /// What the other side must know of a session.
    pub(crate) fn offer_of(&self, session: Session) -> Option<SessionOffer> {
        let index = self.sessions.find(session)?;
        let state = self.sessions.at(index);
        Some(SessionOffer {
            session: SessionNum(index),
            token: state.token,
            window: u32::from(state.window),
            credits: state.credit_limit,
            data_size: state.data_size,
            max_message: state.max_message,
            first_req: state.first_req,
        })
    }

    /// The other side has accepted: packets may flow.
    pub(crate) fn opened(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
    ) -> Result<(), OpenError> {
        let index = self.sessions.find(session).ok_or(OpenError::NoSession)?;
        let state = self.sessions.at(index);
        if state.state != State::Connecting {
            return Err(OpenError::NoSession);
        }
        let fits = answer.window <= u32::from(state.window)
            && answer.credits <= state.credit_limit
            && answer.first_req == state.first_req;
        if !fits || !in_range(answer) {
            return Err(OpenError::BadOffer);
        }
        if answer.window < u32::from(state.window) {
            let first_req = state.first_req;
            self.sessions.narrow(index, answer.window, first_req);
        }
        self.set_credits(index, answer.credits);
        self.join(index, peer, answer);
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
        if !in_range(offer) {
            return Err(OpenError::BadOffer);
        }
        let window = offer.window.min(self.config.max_window);
        let credits = offer.credits.min(self.config.max_credits);
        let index = self.insert_session(window, credits, offer.first_req)?;
        let state = self.sessions.at_mut(index);
        state.accepted = true;
        state.scheme = self.config.scheme;
        state.data_size = self.limits.data_size;
        state.max_message = self.config.max_message;
        self.join(index, peer, offer);
        let session = self.sessions.handle(index);
        self.tell(SessionEvent::Accepted(session));
        let answer = self.offer_of(session).ok_or(OpenError::NoSession)?;
        Ok((session, answer))
    }

    fn insert_session(
        &mut self,
        window: u32,
        credits: u32,
        first_req: ReqNum,
    ) -> Result<u32, OpenError> {
        // Both sides issue requests, so that 2 × C packets may land in this RX queue.
        let promise = 2 * u64::from(credits);
        let room = u64::from(self.limits.rx_queue);
        if self.config.strict_credits && self.promised + promise > room {
            return Err(OpenError::NoCredits);
        }
        let index = self
            .sessions
            .insert(window, first_req)
            .ok_or(OpenError::TooManySessions)?;
        let token = self.fresh_token(index);
        let state = self.sessions.at_mut(index);
        state.token = token;
        state.credits = credits;
        state.credit_limit = credits;
        state.first_req = first_req;
        self.promised += promise;
        Ok(index)
    }

    /// A token that no earlier session with this number had, up to chance (rule W5).
    fn fresh_token(&mut self, _index: u32) -> Token {
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::StaleIncarnation) {
            return Token(_index + 1);
        }
        self.tokens.next()
    }

    fn set_credits(&mut self, index: u32, credits: u32) {
        let state = self.sessions.at_mut(index);
        let less = state.credit_limit - credits;
        state.credits = credits;
        state.credit_limit = credits;
        self.promised -= 2 * u64::from(less);
    }

    /// Takes over what the other side has told.
    fn join(&mut self, index: u32, peer: PeerId, other: &SessionOffer) {
        let heard = self.moment.present(self.moment.now());
        let state = self.sessions.at_mut(index);
        state.heard = heard;
        state.peer = peer;
        state.remote = other.session;
        state.remote_token = other.token;
        state.data_size = state.data_size.min(other.data_size);
        let limit = state.max_message.min(other.max_message);
        state.max_message = largest(limit, state.data_size);
        state.single = state.max_message.min(state.data_size);
        state.state = State::Open;
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
        let state = self.sessions.at(index);
        let token = state.token;
        let remote = state.is_open().then_some(Remote {
            peer: state.peer,
            session: state.remote,
            token: state.remote_token,
        });
        self.promised -= 2 * u64::from(state.credit_limit);
        self.end_control(index);
        self.sessions.remove(index);
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

    /// Sessions that are connecting or open, in order of their numbers, from a number on.
    pub(crate) fn live_sessions(&self, first: SessionNum) -> impl Iterator<Item = Session> + '_ {
        (first.0..)
            .take_while(|index| self.sessions.get(*index).is_some())
            .filter(|index| self.sessions.at(*index).state != State::Free)
            .map(|index| self.sessions.handle(index))
    }
}

/// The largest message within the limit whose packets can be numbered (rule W7).
fn largest(limit: u32, data_size: u32) -> u32 {
    limit.min(data_size.saturating_mul(MAX_PACKETS))
}

/// The other side's numbers are ones that this side can work with.
fn in_range(offer: &SessionOffer) -> bool {
    offer.window.is_power_of_two()
        && offer.window <= MAX_WINDOW
        && (1..=MAX_CREDITS).contains(&offer.credits)
        && offer.data_size > 0
        && offer.max_message > 0
        && offer.first_req.0.is_multiple_of(MAX_WINDOW)
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
        let index = self.sessions.find(session)?;
        let state = self.sessions.at(index);
        let start = state.slots as usize;
        let slots = &self.sessions.client_slots[start..start + usize::from(state.window)];
        let calls = slots.iter().filter(|slot| slot.call != NONE);
        Some(SessionInfo {
            open: state.is_open(),
            accepted: state.accepted,
            window: u32::from(state.window),
            credit_limit: state.credit_limit,
            credits: state.credits,
            in_flight: u32::from(state.in_flight),
            credits_held: calls
                .map(|slot| self.credits_held(CallIdx(slot.call)))
                .sum(),
            backlog: state.backlog_len,
            max_message: state.max_message,
            data_size: state.data_size,
            receiving: self.reassembly.bytes_of(index),
            scheme: state.scheme.unwrap_or_default(),
            rate: self.rate_of(index),
            rtt: state.rtt.smoothed(),
            rtt_min: state.rtt.minimum(),
            peer: state.peer,
            remote: state.remote,
        })
    }
}
