//! A connection from its beginning to its end: accepted or dialled, greeted, closed; and the
//! consequences of its end.

use std::net::{IpAddr, SocketAddr};

use dunlin_core::{CloseReason, Nanos};
use dunlin_wire::control::{GoodbyeReason, Hello, Incarnation, Message};

use super::Plane;
use crate::heartbeat::Secret;
use crate::link::{Greeting, Link, LinkStep};
use crate::route::{AfterLoss, RouteId, RouteState};
use crate::types::{Action, Event, LinkId, Target};

/// The side that ended a connection, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// This side, which sends Goodbye.
    Ours(GoodbyeReason),
    /// The other side, with or without Goodbye.
    Theirs(Option<GoodbyeReason>),
}

impl End {
    /// The reason with which the connection's sessions close.
    const fn close_reason(self) -> CloseReason {
        match self {
            Self::Ours(GoodbyeReason::Shutdown) => CloseReason::EndpointClosed,
            Self::Ours(_) | Self::Theirs(None) => CloseReason::PeerFailed,
            Self::Theirs(Some(GoodbyeReason::Shutdown)) => CloseReason::Disconnected,
            Self::Theirs(Some(_)) => CloseReason::Reset,
        }
    }

    const fn goodbye(self) -> Option<GoodbyeReason> {
        match self {
            Self::Ours(reason) => Some(reason),
            Self::Theirs(reason) => reason,
        }
    }
}

impl<F> Plane<F> {
    /// Sets the address of our end of a connection. The caller does so before any frame comes over
    /// it.
    pub fn on_local(&mut self, id: LinkId, local: SocketAddr) {
        if let Some(link) = self.links.get_mut(&id) {
            link.local = Some(local);
        }
    }

    /// Sets the address of the other end of an accepted connection. The caller does so before any
    /// frame comes over it.
    pub fn on_remote(&mut self, id: LinkId, remote: IpAddr) {
        if let Some(link) = self.links.get_mut(&id) {
            link.remote = Some(remote.to_canonical());
        }
    }

    /// Notes that the other end of a dialled connection has an address of this host. The caller
    /// does so before [`Self::on_dialled`]. Otherwise, the plane does not believe a peer that
    /// claims to be on this host.
    pub fn on_here(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.here = true;
        }
    }

    /// Notes that a dialled connection is made.
    pub fn on_dialled(&mut self, id: LinkId, now: Nanos) {
        let config = &self.config;
        if self
            .links
            .get_mut(&id)
            .is_some_and(|link| link.on_dialled(now, config))
        {
            self.on_link_time(id);
            self.say_hello(id, false);
        }
    }

    /// Notes that a connection is gone, or could not be made.
    pub fn on_closed(&mut self, id: LinkId, now: Nanos) {
        if self.links.contains_key(&id) {
            self.lose_link(id, None, now);
        }
    }

    /// Closes a connection at this side.
    pub(super) fn close_link(&mut self, id: LinkId, reason: GoodbyeReason, now: Nanos) {
        let counter = match reason {
            GoodbyeReason::BadMessage => &mut self.counters.bad_messages,
            GoodbyeReason::Version => &mut self.counters.version_mismatches,
            GoodbyeReason::DeclaredFailed => &mut self.counters.peers_failed,
            GoodbyeReason::Silent => &mut self.counters.silent,
            _ => &mut 0,
        };
        *counter += 1;
        self.end_link(id, End::Ours(reason), now);
    }

    /// Handles a connection that the other side has closed.
    pub(super) fn lose_link(&mut self, id: LinkId, goodbye: Option<GoodbyeReason>, now: Nanos) {
        self.end_link(id, End::Theirs(goodbye), now);
    }

    pub(super) fn on_hello(
        &mut self,
        id: LinkId,
        hello: &Hello<'_>,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        let secret = self.draw_secret();
        let link = self.links.get_mut(&id).ok_or(GoodbyeReason::BadMessage)?;
        let us = &self.us;
        link.on_hello(hello, false, &Greeting { us, secret }, now, &self.config)?;
        let knows_nexus = link.nexus.is_some();
        self.on_link_time(id);
        self.take_place(id, now)?;
        if !knows_nexus {
            // A process that connects over a UNIX socket has connected over TCP before, and that
            // connection still exists (rule C3).
            let nexus = self.nexus_of(hello.incarnation);
            if let Some(link) = self.links.get_mut(&id) {
                link.nexus = nexus;
            }
        }
        self.say_hello(id, true);
        self.say_serving(id);
        Ok(())
    }

    pub(super) fn on_hello_ack(
        &mut self,
        id: LinkId,
        hello: &Hello<'_>,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        let secret = self.draw_secret();
        let link = self.links.get_mut(&id).ok_or(GoodbyeReason::BadMessage)?;
        let us = &self.us;
        link.on_hello(hello, true, &Greeting { us, secret }, now, &self.config)?;
        let route = link.route;
        self.on_link_time(id);
        let route = route.ok_or(GoodbyeReason::BadMessage)?;
        self.say_serving(id);
        self.on_link_up(id, route, now);
        Ok(())
    }

    /// Polls the links: sends heartbeats, and ends connections whose deadline has passed.
    pub(super) fn poll_links(&mut self, now: Nanos) {
        for id in self.link_times.due(now) {
            match self.links.get_mut(&id).map(|link| link.poll(now)) {
                Some(LinkStep::Heartbeat(counter)) => {
                    self.send(id, &Message::Heartbeat { counter }, Vec::new());
                }
                Some(LinkStep::Unproven) => self.on_unproven(id, now),
                Some(LinkStep::End(reason)) => self.close_link(id, reason, now),
                Some(LinkStep::Quiet) | None => {}
            }
            self.on_link_time(id);
        }
    }

    /// Updates the time at which the plane must poll a link.
    pub(super) fn on_link_time(&mut self, id: LinkId) {
        if let Some(link) = self.links.get(&id) {
            self.link_times.set(id, link.next_wakeup());
        }
    }

    /// Adds a link, and notes when the plane must poll it.
    pub(super) fn enter_link(&mut self, id: LinkId, link: Link) {
        self.links.insert(id, link);
        self.on_link_time(id);
    }

    /// Polls the routes: dials waiting ones again, and removes those that no attempt has needed for
    /// a while.
    pub(super) fn poll_routes(&mut self, now: Nanos) {
        let ids = if now >= self.next_idle_look {
            self.next_idle_look = now + self.config.heartbeat.interval();
            self.routes.keys().copied().collect()
        } else {
            self.route_times.due(now)
        };
        for id in ids {
            self.tend_route(id, now);
        }
    }

    /// Dials or drops a route's connections, as its attempts and sessions require.
    pub(super) fn tend_route(&mut self, id: RouteId, now: Nanos) {
        let Some(route) = self.routes.get(&id) else {
            return;
        };
        if route.wants_dial(now) {
            self.dial(id, now);
            return;
        }
        let unwanted = route.attempts == 0;
        match route.state {
            RouteState::Up(link) => {
                self.pump(id, link);
                self.close_if_idle(link, unwanted, now);
            }
            RouteState::Down | RouteState::Backoff(_) if unwanted => self.remove_route(id),
            _ => {}
        }
    }

    fn draw_secret(&mut self) -> Secret {
        Secret([self.secrets.next(), self.secrets.next()])
    }

    fn say_hello(&mut self, id: LinkId, answer: bool) {
        let us = self.us.clone();
        let hello = if self.links.get(&id).is_some_and(|link| link.here) {
            us.hello()
        } else {
            us.hello_elsewhere()
        };
        let message = if answer {
            Message::HelloAck(hello)
        } else {
            Message::Hello(hello)
        };
        let sent = self.send(id, &message, Vec::new());
        debug_assert!(sent, "the nexus gives itself a short name");
    }

    fn dial(&mut self, id: RouteId, now: Nanos) {
        let link = LinkId(self.fresh_id());
        let Some(address) = self
            .routes
            .get_mut(&id)
            .and_then(|route| route.on_dial(link))
        else {
            return;
        };
        let mut dialling = Link::dialling(id, false, now, &self.config);
        dialling.nexus = Some(address);
        self.route_times.remove(id);
        self.enter_link(link, dialling);
        self.actions.push_back(Action::Dial {
            link,
            to: Target::Tcp(address),
        });
    }

    /// Uses a dialled connection on which both sides have sent Hello.
    fn on_link_up(&mut self, id: LinkId, route_id: RouteId, now: Nanos) {
        let state = self.routes.get(&route_id).map(|route| route.state);
        match state {
            Some(RouteState::Dialling(_)) if self.unix_name_behind(id).is_some() => {
                self.begin_upgrade(id, now);
            }
            Some(RouteState::Upgrading { tcp, unix }) if unix == id => {
                self.ask_for_proof(tcp, unix, now);
            }
            Some(_) => self.use_link(route_id, id, now),
            None => {}
        }
    }

    pub(super) fn use_link(&mut self, route_id: RouteId, id: LinkId, now: Nanos) {
        let replaced = self
            .routes
            .get_mut(&route_id)
            .and_then(|route| route.on_up(id));
        if let Some(tcp) = replaced {
            self.counters.upgrades += 1;
            self.close_link(tcp, GoodbyeReason::Replaced, now);
        }
        self.pump(route_id, id);
    }

    /// The address at which a process listens, if one of its connections has revealed it.
    fn nexus_of(&self, incarnation: Incarnation) -> Option<SocketAddr> {
        let of = |link: &&Link| {
            let peer = link.peer.as_ref();
            link.nexus.is_some() && peer.is_some_and(|peer| peer.incarnation == incarnation)
        };
        self.links.values().find(of).and_then(|link| link.nexus)
    }

    fn close_if_idle(&mut self, id: LinkId, unwanted: bool, now: Nanos) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if !(unwanted && link.is_unused()) {
            link.idle_since = None;
            return;
        }
        let since = *link.idle_since.get_or_insert(now);
        if now.since(since) >= self.config.linger {
            self.close_link(id, GoodbyeReason::Shutdown, now);
        }
    }

    fn remove_route(&mut self, id: RouteId) {
        if let Some(route) = self.routes.remove(&id) {
            self.route_to.remove(&route.addrs);
            self.route_times.remove(id);
        }
    }

    /// Ends a connection for any reason, with everything that it carried.
    fn end_link(&mut self, id: LinkId, end: End, now: Nanos) {
        let Some(link) = self.links.remove(&id) else {
            return;
        };
        self.link_times.remove(id);
        if let (End::Ours(reason), true) = (end, link.can_send()) {
            self.send(id, &Message::Goodbye { reason }, Vec::new());
        }
        self.actions.push_back(Action::Close { link: id });
        if let Some(origin) = link.origin {
            self.places.on_end(id, origin);
        }
        if link.sessions > 0 {
            self.end_sessions_over(id, end.close_reason());
        }
        if link.pending > 0 {
            self.drop_tickets_of(id);
        }
        if let Some(route) = link.route {
            self.on_route_lost(route, id, end, now);
        }
    }

    fn end_sessions_over(&mut self, id: LinkId, reason: CloseReason) {
        let over: Vec<_> = self.sessions.over(id).map(|(key, _)| key).collect();
        for key in over {
            self.forget_session(key);
            self.tell(key.endpoint, Event::Closed { key, reason });
        }
    }

    fn on_route_lost(&mut self, route_id: RouteId, id: LinkId, end: End, now: Nanos) {
        let Some(route) = self.routes.get_mut(&route_id) else {
            return;
        };
        let after = route.on_lost(id);
        match after {
            AfterLoss::Nothing => {}
            AfterLoss::StayWith(tcp) => self.pump(route_id, tcp),
            AfterLoss::Redial { retries, close } => {
                let wait = self.config.backoff(retries, self.rng.next_u32());
                route.full |= end.goodbye() == Some(GoodbyeReason::TooManyConnections);
                route.state = RouteState::Backoff(now + wait);
                self.route_times.set(route_id, route.next_wakeup());
                if end.goodbye() == Some(GoodbyeReason::Version) {
                    self.fail_attempts_over(route_id, now);
                } else {
                    self.requeue_attempts_over(id);
                }
                if let Some(unix) = close {
                    self.close_link(unix, GoodbyeReason::Replaced, now);
                }
                self.tend_route(route_id, now);
            }
        }
    }
}
