//! [`Context`]: facts about a request that its handler gets with the message.

use dunlin_core::{Cx, Nanos, Peer, Session};

use crate::metadata::Metadata;

/// Facts about a request that a handler gets with the message.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The session that the request came on. It does not identify a client: several channels
    /// share a session, and a channel may open another one.
    pub session: Session,
    /// When the client stops waiting, on this endpoint's clock, if the request has a deadline. The
    /// time that the request spent on its way is not subtracted. A handler that calls other servers
    /// can pass on the time that is left.
    pub deadline: Option<Nanos>,
    pub(crate) metadata: Metadata<'a>,
    pub(crate) method: &'static str,
}

/// Finds the peers of sessions; implemented by [`Cx`] and `dunlin::Caller`.
pub trait Peers {
    /// The other end of an open session.
    fn peer(&self, session: Session) -> Option<Peer>;
}

impl Peers for Cx<'_> {
    fn peer(&self, session: Session) -> Option<Peer> {
        Self::peer(self, session)
    }
}

impl<'a> Context<'a> {
    /// The client: its process, and its endpoint there. `at` is the endpoint of the handler. `None`
    /// if the session has ended.
    pub fn peer(&self, at: &impl Peers) -> Option<Peer> {
        at.peer(self.session)
    }

    /// The time that the client still waits; `None`: for ever.
    pub fn left(&self, now: Nanos) -> Option<Nanos> {
        self.deadline.map(|deadline| deadline.since(now))
    }

    /// The metadata that the client has sent with the request.
    pub fn metadata(&self) -> Metadata<'a> {
        self.metadata
    }

    /// The method's name, with its service: `Kv.get`.
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// The smaller of the time `own` and the time that the client still waits: the deadline of a
    /// call that the handler makes to serve the request.
    pub fn shorten(&self, own: Option<Nanos>, now: Nanos) -> Option<Nanos> {
        [own, self.left(now)].into_iter().flatten().min()
    }
}
