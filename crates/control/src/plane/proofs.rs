//! Proofs of addresses (rule C13). A session may use an address other than that of the peer's
//! connection. Before its packets go there, this side sends eight random bytes to that address, and
//! the peer proves the address by sending the bytes back over the connection.
//!
//! The endpoint sends the bytes, since the plane does not handle packets. The plane draws them,
//! tells the endpoint when to send them, and gives up after a timeout; `proofs.rs` has the times.
//! Each session has its own bytes, so an address must be proven again for each session.
//!
//! Requests that wait for a proof have places of their own, of which each origin has its share
//! (`places.rs`). So, whatever one origin asks for, endpoints still answer requests of other kinds
//! and of other origins.
//!
//! Invariants: the endpoint learns exactly once how a proof ends, unless a granted session ends
//! first; a request has either one of its endpoint's places or one of the places for proofs. Called
//! by `plane.rs`.

use dunlin_core::Nanos;
use dunlin_wire::control::{Features, Message, RefuseCode};

use super::Plane;
use crate::places::{Origin, Room};
use crate::proofs::Turn;
use crate::types::{ConnectTicket, Event, LinkId, Proving, SessionKey};

impl<F> Plane<F> {
    /// Begins a proof for an endpoint, which does not use the session until the proof has come.
    pub(super) fn challenge(&mut self, proving: Proving, now: Nanos) {
        let link = match proving {
            Proving::Asked { ticket, .. } => self.take_turn(ticket),
            Proving::Granted(key) => self.sessions.get(key).map(|open| open.link),
        };
        if let Some(link) = link {
            let secret = self.secrets.next();
            self.proofs.begin(proving, link, secret, now);
            self.poll_proofs(now);
        } else if matches!(proving, Proving::Asked { .. }) {
            // The request got no place, or its connection has ended. (If a granted session has lost
            // its connection, the endpoint gets the event of the session's end instead.)
            self.tell_proven(proving, false);
        }
    }

    /// Moves a request from the endpoint's places to the places for proofs, so that requests whose
    /// address is never proven take no place from others. If an origin has more than its share, one
    /// of its requests makes room. Returns the connection of the request, or `None` if it is
    /// refused or gone.
    fn take_turn(&mut self, ticket: ConnectTicket) -> Option<LinkId> {
        let asked = self.tickets.get(&ticket)?;
        let link = asked.link;
        if asked.unproven.is_some() {
            return Some(link);
        }
        let origin = self.origin_of(link);
        match self.unproven.room_for(origin, self.config.max_unproven) {
            Room::Free => {}
            Room::Of(other) => self.make_room(other),
            Room::OfOwn | Room::None => {
                self.refuse_busy(ticket);
                return None;
            }
        }
        self.unproven.insert(ticket, origin);
        let asked = self.tickets.get_mut(&ticket)?;
        asked.unproven = Some(origin);
        if let Some(endpoint) = self.endpoints.get_mut(&asked.endpoint) {
            endpoint.pending -= 1;
        }
        Some(link)
    }

    /// Gives up the newest proof of an origin. Older ones may belong to honest requests from before
    /// a flood.
    fn make_room(&mut self, origin: Origin) {
        let newest = self.unproven.held_by(origin).next_back();
        let asked = newest.and_then(|ticket| Some((ticket, self.tickets.get(&ticket)?.endpoint)));
        if let Some((ticket, endpoint)) = asked {
            self.refuse_busy(ticket);
            self.tell_proven(Proving::Asked { endpoint, ticket }, false);
        }
    }

    fn refuse_busy(&mut self, ticket: ConnectTicket) {
        self.counters.busy_refusals += 1;
        self.refuse(ticket, RefuseCode::Busy);
    }

    /// Moves a request back to the endpoint's places, because its proof is over and the endpoint
    /// must answer it now.
    fn end_turn(&mut self, ticket: ConnectTicket) {
        let Some(asked) = self.tickets.get_mut(&ticket) else {
            return;
        };
        if let Some(origin) = asked.unproven.take() {
            self.unproven.remove(ticket, origin);
            if let Some(endpoint) = self.endpoints.get_mut(&asked.endpoint) {
                endpoint.pending += 1;
            }
        }
    }

    /// The origin of a connection; the other host, if this side has made the connection.
    fn origin_of(&self, link: LinkId) -> Origin {
        let link = self.links.get(&link);
        let dialled = || link?.remote().map(Origin::of_host);
        let origin = link.and_then(|link| link.origin).or_else(dialled);
        origin.unwrap_or(Origin::OwnUser)
    }

    /// Sends back the bytes of a challenge that an endpoint has received, over the connection of
    /// the session.
    pub(super) fn prove(&mut self, key: SessionKey, secret: u64) {
        let open = self.sessions.get(key).map(|open| open.link);
        let attempt = || self.attempts.get(self.attempt_for.get(&key)?)?.link();
        let Some(link) = open.or_else(attempt) else {
            return;
        };
        let peer = self.links.get(&link).and_then(|link| link.peer.as_ref());
        if peer.is_some_and(|peer| peer.features.has(Features::PROOF)) {
            self.send(link, &Message::Proof { secret }, Vec::new());
        }
    }

    /// Takes bytes that the peer sends back. Bytes that belong to no challenge, or to a challenge
    /// that was already answered, change nothing.
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

    /// Makes endpoints send the challenges that are due, and gives up proofs whose time is over.
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
        if let Proving::Asked { ticket, .. } = proving {
            self.end_turn(ticket);
        }
        self.tell(proving.endpoint(), Event::Proven { proving, proven });
    }
}
