//! Sessions as the control plane and programs see them: offers, events, and information.

use dunlin_wire::control::Fate;
use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::config::{MAX_CREDITS, MAX_WINDOW};
use crate::error::CloseReason;
use crate::handle::Session;
use crate::scheme::{BytesPerSec, Scheme};
use crate::time::Nanos;
use crate::transport::PeerId;

/// One side of a session, as it describes itself to its peer in the handshake.
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
    /// The most data bytes in a packet.
    pub data_size: u32,
    /// Largest message in bytes.
    pub max_message: u32,
    /// Start of the request numbers.
    pub first_req: ReqNum,
    /// This side obeys the rules of error codes (rule W13).
    pub keeps_code_rules: bool,
}

/// A change of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEvent {
    /// A session that this side opened is ready; its waiting calls leave now.
    Connected(Session),
    /// A peer opened a session with this endpoint.
    Accepted(Session),
    /// The session has ended; all of its calls have completed or complete now.
    Closed {
        /// The session.
        session: Session,
        /// The reason.
        reason: CloseReason,
    },
}

/// Informs the control plane that a session has ended at this side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed {
    /// The session.
    pub session: Session,
    /// The token that this side had given it.
    pub token: Token,
    /// The reason.
    pub reason: CloseReason,
    /// The peer's side; `None` if the session was never connected.
    pub remote: Option<Remote>,
    /// Whether the control plane must still inform the peer.
    pub tell: bool,
}

/// A message from an endpoint to its control plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// A session has ended at this side.
    Closed(Closed),
    /// A session has a question for its peer.
    Question(Question),
    /// The other side of a session asks for a proof of this side's address.
    Challenged(Challenged),
}

/// The bytes of a challenge that has reached this side's address. This side returns them over the
/// control plane (rule C13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Challenged {
    /// The number of the challenged session, which is connecting or open.
    pub session: SessionNum,
    /// The token that this side had given it.
    pub token: Token,
    /// The bytes.
    pub secret: u64,
}

/// Asks for the fates of requests that have made no progress for the failure timeout (rule C11).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The session of these requests.
    pub session: Session,
    /// The token that this side had given it.
    pub token: Token,
    /// The requests.
    pub requests: Vec<ReqNum>,
}

/// The peer's answer to a [`Question`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Account {
    /// The peer's endpoint states the fates of the requests.
    Fates(Vec<(ReqNum, Fate)>),
    /// The peer's endpoint has read no packets for at least this time, because its thread is in a
    /// handler.
    Away(Nanos),
    /// The peer's release does not know inquiries.
    Nothing,
}

/// The peer's side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// The peer's endpoint, as the transport knows it.
    pub peer: PeerId,
    /// The peer's number for the session.
    pub session: SessionNum,
    /// The peer's token for the session.
    pub token: Token,
}

impl SessionOffer {
    /// Whether this side can work with these numbers.
    pub(crate) fn is_in_range(&self) -> bool {
        self.window.is_power_of_two()
            && self.window <= MAX_WINDOW
            && (1..=MAX_CREDITS).contains(&self.credits)
            && self.data_size > 0
            && self.max_message > 0
            && self.first_req.0.is_multiple_of(MAX_WINDOW)
    }
}

/// The state of a session, for tools and programs.
#[derive(Clone, Copy, Debug)]
pub struct SessionInfo {
    /// Packets flow.
    pub open: bool,
    /// The peer opened it.
    pub accepted: bool,
    /// Concurrent requests in each direction.
    pub window: u32,
    /// Packets that may be in flight.
    pub credit_limit: u32,
    /// Packets that may still be sent now.
    pub credits: u32,
    /// Calls in slots, including cancelled ones that await the server's answer.
    pub in_flight: u32,
    /// Credits that these calls hold: one each, and more while large messages are on their way.
    pub credits_held: u32,
    /// Calls that wait for a slot or a credit.
    pub backlog: u32,
    /// The peer obeys the rules of error codes, so its codes prove whether a handler ran.
    pub keeps_code_rules: bool,
    /// Largest message in bytes.
    pub max_message: u32,
    /// The most data bytes in a packet: a message up to this length is a single packet.
    pub data_size: u32,
    /// Bytes of memory for partly arrived large requests of the peer (rule S14).
    pub receiving: u64,
    /// The congestion control scheme. While a session is connecting, it may still change to the
    /// transport's default.
    pub scheme: Scheme,
    /// The rate at which its requests leave; `None`: line rate.
    pub rate: Option<BytesPerSec>,
    /// Smoothed round trip.
    pub rtt: Option<crate::time::Nanos>,
    /// Smallest round trip seen.
    pub rtt_min: Option<crate::time::Nanos>,
    /// The other endpoint as the transport knows it.
    pub peer: PeerId,
    /// The peer's number for the session.
    pub remote: SessionNum,
}
