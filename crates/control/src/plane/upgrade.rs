//! From TCP to the UNIX socket of the same process (rule C3). The process at the other end of a TCP
//! connection names a UNIX socket as its own, but could name the socket of another process of this
//! host. Therefore the plane believes it only if it has an address of this host, and returns a
//! nonce over both connections.
//!
//! ```text
//! TCP greeted ─▶ nonce sent ─returned─▶ UNIX dialled ─▶ greeted ─▶ nonce sent ─returned─▶ used
//! ```
//! The side that was dialled keeps only nonces from connections of its own user, so a process of
//! another user cannot pass one on. If a nonce does not come back in time, TCP is used.

use dunlin_core::Nanos;
use dunlin_wire::control::{Features, GoodbyeReason, Message};

use super::Plane;
use crate::link::Link;
use crate::places::Origin;
use crate::route::{RouteId, RouteState};
use crate::types::{Action, LinkId, Target};

/// The plane dials only UNIX sockets whose names begin like this, so that a Hello cannot lead a
/// process to the sockets of other programs.
pub(super) const UNIX_PREFIX: &str = "\0dunlin-";

impl<F> Plane<F> {
    /// The UNIX socket of the process at the other end of a TCP link, if it is on this host.
    pub(super) fn unix_name_behind(&self, id: LinkId) -> Option<String> {
        let link = self.links.get(&id)?;
        let peer = link.peer.as_ref()?;
        let here = link.here && !link.carries_fds && peer.boot_id == self.us.boot_id;
        // A process without a UNIX socket cannot pass descriptors itself.
        let both = here && !self.us.unix_name.is_empty() && peer.features.has(Features::NONCE);
        (both && peer.unix_name.starts_with(UNIX_PREFIX)).then(|| peer.unix_name.clone())
    }

    /// Sends a nonce over a TCP link, so that the process there can be recognised again.
    pub(super) fn begin_upgrade(&mut self, tcp: LinkId, now: Nanos) {
        let nonce = self.secrets.next();
        self.send_nonce(tcp, nonce, now);
    }

    /// Asks the process at the UNIX socket to return the nonce that was sent over TCP.
    pub(super) fn ask_for_proof(&mut self, tcp: LinkId, unix: LinkId, now: Nanos) {
        let nonce = self.links.get(&tcp).and_then(|link| link.nonce);
        let Some(nonce) = nonce.filter(|_| self.same_process(tcp, unix)) else {
            return self.close_link(unix, GoodbyeReason::BadMessage, now);
        };
        self.send_nonce(unix, nonce, now);
    }

    fn send_nonce(&mut self, id: LinkId, nonce: u64, now: Nanos) {
        if let Some(link) = self.links.get_mut(&id) {
            link.on_nonce_sent(nonce, now, &self.config);
            self.on_link_time(id);
            self.send(id, &Message::Nonce { nonce }, Vec::new());
        }
    }

    /// Uses TCP, because the other side has not returned the nonce in time.
    pub(super) fn on_unproven(&mut self, id: LinkId, now: Nanos) {
        let Some(route_id) = self.links.get(&id).and_then(|link| link.route) else {
            return;
        };
        match self.routes.get(&route_id).map(|route| route.state) {
            Some(RouteState::Dialling(tcp)) if tcp == id => self.use_link(route_id, tcp, now),
            Some(RouteState::Upgrading { unix, .. }) if unix == id => {
                self.close_link(unix, GoodbyeReason::Silent, now);
            }
            _ => {}
        }
    }

    pub(super) fn on_nonce(
        &mut self,
        id: LinkId,
        nonce: u64,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        let link = self.links.get(&id).ok_or(GoodbyeReason::BadMessage)?;
        match link.route {
            Some(_) if link.nonce != Some(nonce) => Err(GoodbyeReason::BadMessage),
            Some(route) => self.on_nonce_returned(id, route, now),
            None => self.on_nonce_got(id, nonce),
        }
    }

    /// Handles a nonce that the other side has returned.
    fn on_nonce_returned(
        &mut self,
        id: LinkId,
        route_id: RouteId,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        if let Some(link) = self.links.get_mut(&id) {
            link.on_nonce_returned();
        }
        self.on_link_time(id);
        let state = self.routes.get(&route_id).map(|route| route.state);
        match (state, self.unix_name_behind(id)) {
            (Some(RouteState::Dialling(tcp)), Some(name)) if tcp == id => {
                self.dial_unix(route_id, tcp, name, now);
            }
            (Some(RouteState::Upgrading { unix, .. }), _) if unix == id => {
                self.forget_nonce(id);
                self.use_link(route_id, id, now);
            }
            // The nonce comes too late: TCP is already in use.
            (Some(RouteState::Up(up)), _) if up == id => self.forget_nonce(id),
            _ => return Err(GoodbyeReason::BadMessage),
        }
        Ok(())
    }

    /// Forgets the nonce, so that the other side cannot return it a second time.
    fn forget_nonce(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.nonce = None;
        }
    }

    /// Handles a nonce from the side that has dialled: over TCP, a new one; over the UNIX socket,
    /// one that this process must have received over TCP. A nonce from another user or host is
    /// returned but not kept, so that its connection stays with TCP.
    fn on_nonce_got(&mut self, id: LinkId, nonce: u64) -> Result<(), GoodbyeReason> {
        let link = self.links.get_mut(&id).ok_or(GoodbyeReason::BadMessage)?;
        // The search for a nonce visits all links, so each link may cause only one search.
        if std::mem::replace(&mut link.has_got_nonce, true) {
            return Err(GoodbyeReason::BadMessage);
        }
        let origin = link.origin;
        if origin == Some(Origin::OwnUser) {
            link.nonce = Some(nonce);
        }
        if matches!(origin, Some(Origin::Process(_))) && !self.has_got(id, nonce) {
            return Err(GoodbyeReason::BadMessage);
        }
        self.send(id, &Message::Nonce { nonce }, Vec::new());
        Ok(())
    }

    /// Whether the process at the other end has sent the nonce over TCP.
    fn has_got(&self, unix: LinkId, nonce: u64) -> bool {
        let knows = |(id, link): (&LinkId, &Link)| {
            let accepted_tcp = link.route.is_none() && !link.carries_fds;
            accepted_tcp && link.nonce == Some(nonce) && self.same_process(*id, unix)
        };
        self.links.iter().any(knows)
    }

    fn dial_unix(&mut self, route_id: RouteId, tcp: LinkId, name: String, now: Nanos) {
        let unix = LinkId(self.fresh_id());
        let Some(route) = self.routes.get_mut(&route_id) else {
            return;
        };
        route.on_upgrade(tcp, unix);
        let mut dialling = Link::dialling(route_id, true, now, &self.config);
        dialling.nexus = self.links.get(&tcp).and_then(|tcp| tcp.nexus);
        self.enter_link(unix, dialling);
        self.actions.push_back(Action::Dial {
            link: unix,
            to: Target::Unix(name),
        });
    }

    fn same_process(&self, one: LinkId, other: LinkId) -> bool {
        let incarnation = |id| {
            let link: Option<&Link> = self.links.get(&id);
            link.and_then(|link| link.peer.as_ref())
                .map(|peer| peer.incarnation)
        };
        incarnation(one).is_some() && incarnation(one) == incarnation(other)
    }
}
