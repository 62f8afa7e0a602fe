//! Proofs of addresses (rule C13): before packets of a session go to an address that is not that of
//! the peer's connection, eight random bytes go there, and come back over the connection.
//!
//! The endpoint sends the bytes, since the plane knows no packets. The plane draws them, tells the
//! endpoint when to send them, and gives up in the end; `proofs.rs` keeps the times. Each session
//! has bytes of its own, so an address that is used again is proven again.
//!
//! Invariant: the endpoint learns exactly once how a proof ends, unless a granted session ends
//! first. Called by `plane.rs`.

use dunlin_core::Nanos;
use dunlin_wire::control::{Features, Message};

use super::Plane;
use crate::proofs::Turn;
use crate::types::{Event, LinkId, Proving, SessionKey};

impl<F> Plane<F> {
    /// Begins a proof that an endpoint wants before it makes a session.
    pub(super) fn challenge(&mut self, proving: Proving, now: Nanos) {
        let link = match proving {
            Proving::Asked { ticket, .. } => self.tickets.get(&ticket).map(|asked| asked.link),
            Proving::Granted(key) => self.sessions.get(&key).map(|open| open.link),
        };
        if let Some(link) = link {
            let secret = self.secrets.next();
            self.proofs.begin(proving, link, secret, now);
            self.poll_proofs(now);
        } else if matches!(proving, Proving::Asked { .. }) {
            // Its connection has ended. The end of a granted session is on its way already.
            self.tell_proven(proving, false);
        }
    }

    /// Sends back the bytes of a challenge that an endpoint has received, over the connection of
    /// the session.
    pub(super) fn prove(&mut self, key: SessionKey, secret: u64) {
        let open = self.sessions.get(&key).map(|open| open.link);
        let attempt = || self.attempts.get(self.attempt_for.get(&key)?)?.link();
        let Some(link) = open.or_else(attempt) else {
            return;
        };
        let peer = self.links.get(&link).and_then(|link| link.peer.as_ref());
        if peer.is_some_and(|peer| peer.features.has(Features::PROOF)) {
            self.send(link, &Message::Proof { secret }, Vec::new());
        }
    }

    /// Takes bytes that the peer sends back. Those of no challenge, or of one that was answered
    /// before, change nothing.
    pub(super) fn on_proof(&mut self, link: LinkId, secret: u64) {
        if let Some(proving) = self.proofs.on_proof(link, secret) {
            self.tell_proven(proving, true);
        }
    }

    /// Ends a proof whose connection has ended.
    pub(super) fn give_up_proof(&mut self, proving: Proving) {
        if self.proofs.forget(proving) {
            self.tell_proven(proving, false);
        }
    }

    /// Has the challenges sent that are due, and gives up those whose time is over.
    pub(super) fn poll_proofs(&mut self, now: Nanos) {
        let timeout = self.config.heartbeat.timeout;
        while let Some(turn) = self.proofs.next_turn(timeout, now) {
            match turn {
                Turn::Send(proving, secret) => {
                    let event = Event::Challenge { proving, secret };
                    self.tell(proving.endpoint(), event);
                }
                Turn::GiveUp(proving) => self.tell_proven(proving, false),
            }
        }
    }

    fn tell_proven(&mut self, proving: Proving, proven: bool) {
        self.tell(proving.endpoint(), Event::Proven { proving, proven });
    }
}
