//! Sessions that endpoints of this process ask for: the commands and messages that advance an
//! `Attempt` (`attempt.rs`), and those that end it.

use std::net::SocketAddr;

use dunlin_core::{CloseReason, Nanos};
use dunlin_wire::control::{
    Accept, AttemptId, Connect, EndpointIndex, Found, GoodbyeReason, Lookup, Message, Refuse,
    RefuseCode, ResetReason, SessionRef,
};

use super::Plane;
use super::sessions::Open;
use crate::attempt::{AfterRefusal, Attempt, AttemptState};
use crate::route::{Route, RouteId};
use crate::types::{ConnectFailure, Event, LinkId, SessionKey, Side};

impl<F> Plane<F> {
    /// Begins a session that an endpoint asks for.
    pub(super) fn connect(
        &mut self,
        key: SessionKey,
        to: Vec<SocketAddr>,
        target: EndpointIndex,
        deadline: Nanos,
        now: Nanos,
    ) {
        if to.is_empty() {
            self.tell_failure(key, ConnectFailure::Unreachable);
            return;
        }
        let full =
            self.attempts.len() >= self.config.max_attempts || self.attempt_for.contains_key(&key);
        let route = if full { None } else { self.route_for(to) };
        let Some(route_id) = route else {
            self.tell_failure(key, ConnectFailure::TooMany);
            return;
        };
        let id = AttemptId(self.fresh_id());
        self.attempts
            .insert(id, Attempt::new(key, route_id, target, deadline));
        self.attempt_for.insert(key, id);
        self.due.insert((deadline, id));
        if let Some(route) = self.routes.get_mut(&route_id) {
            route.attempts += 1;
            route.waiting.insert(id);
        }
        self.tend_route(route_id, now);
    }

    /// Sends an endpoint's offer to the endpoint that was found.
    pub(super) fn offer(&mut self, key: SessionKey, link: LinkId, side: Side<F>, now: Nanos) {
        let Some(id) = self.attempt_for.get(&key).copied() else {
            return;
        };
        let Some(attempt) = self.attempts.get_mut(&id) else {
            return;
        };
        if !attempt.on_offer(link) {
            return;
        }
        let target = attempt.found;
        let Some(local) = self.endpoints.get(&key.endpoint) else {
            return;
        };
        let uid = local.uid;
        let carries_fds = self.links.get(&link).is_some_and(|link| link.carries_fds);
        let sent = side.send_as(uid, carries_fds, |client, fds| {
            self.send(
                link,
                &Message::Connect(Connect {
                    attempt: id,
                    target,
                    client,
                }),
                fds,
            )
        });
        if !sent {
            self.fail_attempt(id, ConnectFailure::Refused(RefuseCode::BadParameters), now);
        }
    }

    /// Gives up a session that its endpoint no longer wants. If the peer grants it later, the plane
    /// answers with Disconnect (rule C4).
    pub(super) fn abandon(&mut self, key: SessionKey, now: Nanos) {
        match self.attempt_for.get(&key).copied() {
            Some(id) => {
                self.finish_attempt(id, now);
            }
            None => self.disconnect(key, CloseReason::Disconnected),
        }
    }

    pub(super) fn abandon_attempts_of(&mut self, endpoint: EndpointIndex, now: Nanos) {
        let of: Vec<SessionKey> = self
            .attempt_for
            .keys()
            .filter(|key| key.endpoint == endpoint)
            .copied()
            .collect();
        for key in of {
            self.abandon(key, now);
        }
    }

    pub(super) fn on_found(
        &mut self,
        link: LinkId,
        found: &Found,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        let Some(attempt) = self.attempt_over(link, found.attempt) else {
            return Ok(());
        };
        attempt
            .on_found(link, found.target, found.endpoint)
            .map_err(|_| GoodbyeReason::BadMessage)?;
        let (key, route) = (attempt.key, attempt.route);
        let peer = self
            .peer_over(link, found.endpoint, Some(found.target))
            .ok_or(GoodbyeReason::BadMessage)?;
        self.tell(
            key.endpoint,
            Event::Found {
                key,
                via: link,
                peer,
            },
        );
        self.tell_serving(link, key);
        self.on_lookup_answered(link);
        self.tend_route(route, now);
        Ok(())
    }

    pub(super) fn on_refuse(
        &mut self,
        link: LinkId,
        refuse: &Refuse<'_>,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        let (config, random) = (self.config, self.rng.next_u32());
        let Some(attempt) = self.attempt_over(link, refuse.attempt) else {
            return Ok(());
        };
        let before = attempt.state;
        let had_offer = attempt.has_offer();
        let after = attempt
            .on_refuse(link, refuse.code)
            .map_err(|_| GoodbyeReason::BadMessage)?;
        let (key, route, due) = (attempt.key, attempt.route, attempt.due());
        match after {
            AfterRefusal::Failed(failure) => self.fail_attempt(refuse.attempt, failure, now),
            AfterRefusal::Retry(retries) => {
                let until = now + config.backoff(retries, random);
                attempt.state = AttemptState::Backoff(until);
                let next = attempt.due();
                self.due.remove(&(due, refuse.attempt));
                self.due.insert((next, refuse.attempt));
                if had_offer {
                    let lost = false;
                    self.tell(key.endpoint, Event::OfferVoid { key, lost });
                }
                if let AttemptState::LookingUp(link) = before {
                    self.on_lookup_answered(link);
                }
                self.tend_route(route, now);
            }
        }
        Ok(())
    }

    pub(super) fn on_accept(
        &mut self,
        link: LinkId,
        accept: &Accept<'_>,
        fds: &mut Vec<F>,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        let side = self.take_side(link, &accept.server, fds)?;
        let remote = SessionRef {
            session: accept.server.session,
            token: accept.server.token,
        };
        let Some(attempt) = self.attempt_over(link, accept.attempt) else {
            // A second grant changes nothing if the session is already open.
            if !self.is_open_with(link, remote) {
                self.send(link, &Message::Disconnect(remote), Vec::new());
            }
            return Ok(());
        };
        attempt
            .on_accept(link, accept.server.endpoint)
            .map_err(|_| GoodbyeReason::BadMessage)?;
        let key = attempt.key;
        if !self.insert_session(key, Open::new(link, remote)) {
            self.send(link, &Message::Disconnect(remote), Vec::new());
            self.fail_attempt(
                accept.attempt,
                ConnectFailure::Refused(RefuseCode::Busy),
                now,
            );
            return Ok(());
        }
        self.tell(key.endpoint, Event::Accepted { key, side });
        self.finish_attempt(accept.attempt, now);
        Ok(())
    }

    /// Whether there is an open session over this connection that the other side calls `remote`.
    fn is_open_with(&self, link: LinkId, remote: SessionRef) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(crate::mutant::Mutant::SecondGrantEnds) {
            return false;
        }
        self.sessions
            .over(link)
            .any(|(_, open)| open.remote == remote)
    }

    /// Advances the attempts whose deadline has passed or whose wait is over.
    pub(super) fn poll_attempts(&mut self, now: Nanos) {
        while let Some((at, id)) = self.due.first().copied() {
            if at > now {
                return;
            }
            self.due.remove(&(at, id));
            let Some(attempt) = self.attempts.get_mut(&id) else {
                continue;
            };
            if now >= attempt.deadline {
                let route = self.routes.get(&attempt.route);
                let failure = match route {
                    Some(route) if route.full => ConnectFailure::Full,
                    _ => attempt.timeout(),
                };
                self.fail_attempt(id, failure, now);
                continue;
            }
            self.requeue(id);
            if let Some(route) = self.attempts.get(&id).map(|attempt| attempt.route) {
                self.tend_route(route, now);
            }
        }
    }

    /// Lets attempts use the link of their route, as long as the link has fewer look-ups than its
    /// limit.
    pub(super) fn pump(&mut self, route_id: RouteId, id: LinkId) {
        loop {
            let Some(link) = self.links.get_mut(&id) else {
                return;
            };
            if link.lookups >= self.config.max_lookups {
                return;
            }
            let Some(route) = self.routes.get_mut(&route_id) else {
                return;
            };
            let Some(attempt_id) = route.waiting.pop_first() else {
                return;
            };
            let Some(attempt) = self.attempts.get_mut(&attempt_id) else {
                continue;
            };
            link.lookups += 1;
            attempt.on_turn(id);
            let lookup = Lookup {
                attempt: attempt_id,
                target: attempt.target,
            };
            self.send(id, &Message::Lookup(lookup), Vec::new());
        }
    }

    /// Makes the attempts that used a lost link wait for the next one.
    pub(super) fn requeue_attempts_over(&mut self, id: LinkId) {
        let over: Vec<AttemptId> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.link() == Some(id))
            .map(|(id, _)| *id)
            .collect();
        for attempt_id in over {
            let Some(attempt) = self.attempts.get(&attempt_id) else {
                continue;
            };
            let (key, due) = (attempt.key, attempt.due());
            if attempt.has_offer() {
                let lost = true;
                self.tell(key.endpoint, Event::OfferVoid { key, lost });
            }
            self.due.remove(&(due, attempt_id));
            self.requeue(attempt_id);
        }
    }

    /// Fails the attempts over a route whose other side has no version in common with us, because
    /// waiting would not help.
    pub(super) fn fail_attempts_over(&mut self, route: RouteId, now: Nanos) {
        let over: Vec<AttemptId> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.route == route)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.fail_attempt(id, ConnectFailure::Refused(RefuseCode::Version), now);
        }
    }

    /// The attempt to which an answer belongs. Answers to attempts over other links, or to
    /// abandoned attempts, change nothing (rule C5).
    fn attempt_over(&mut self, link: LinkId, id: AttemptId) -> Option<&mut Attempt> {
        self.attempts
            .get_mut(&id)
            .filter(|attempt| attempt.link() == Some(link))
    }

    /// Makes the attempt wait for its turn again.
    fn requeue(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get_mut(&id) else {
            return;
        };
        attempt.state = AttemptState::Waiting;
        self.due.insert((attempt.deadline, id));
        if let Some(route) = self.routes.get_mut(&attempt.route) {
            route.waiting.insert(id);
        }
    }

    fn on_lookup_answered(&mut self, link: LinkId) {
        if let Some(link) = self.links.get_mut(&link) {
            link.lookups = link.lookups.saturating_sub(1);
        }
    }

    fn fail_attempt(&mut self, id: AttemptId, failure: ConnectFailure, now: Nanos) {
        if let Some(key) = self.finish_attempt(id, now) {
            self.tell_failure(key, failure);
        }
    }

    fn tell_failure(&mut self, key: SessionKey, failure: ConnectFailure) {
        self.tell(key.endpoint, Event::ConnectFailed { key, failure });
    }

    /// Removes an attempt from every table.
    fn finish_attempt(&mut self, id: AttemptId, now: Nanos) -> Option<SessionKey> {
        let attempt = self.attempts.remove(&id)?;
        self.attempt_for.remove(&attempt.key);
        self.due.remove(&(attempt.due(), id));
        if let AttemptState::LookingUp(link) = attempt.state {
            self.on_lookup_answered(link);
        }
        if let Some(route) = self.routes.get_mut(&attempt.route) {
            route.waiting.remove(&id);
            route.attempts -= 1;
        }
        self.tend_route(attempt.route, now);
        Some(attempt.key)
    }

    /// The route to these addresses, which it adds if there is none; `None` if there are too many
    /// routes.
    fn route_for(&mut self, to: Vec<SocketAddr>) -> Option<RouteId> {
        if let Some(id) = self.route_to.get(&to) {
            return Some(*id);
        }
        if self.routes.len() >= self.config.max_routes {
            return None;
        }
        let id = RouteId(self.fresh_id());
        self.route_to.insert(to.clone(), id);
        self.routes.insert(id, Route::new(to));
        Some(id)
    }

    /// Informs the peer that its session does not exist at this side.
    pub(super) fn reset_remote(&mut self, link: LinkId, session: SessionRef, reason: ResetReason) {
        self.send(link, &Message::Reset { session, reason }, Vec::new());
    }
}
