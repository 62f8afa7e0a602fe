//! Connections that other processes make: whether the plane accepts them, and which connections it
//! closes for them (rule C9). `places.rs` computes the shares.

use dunlin_core::Nanos;
use dunlin_wire::control::GoodbyeReason;

use super::Plane;
use crate::link::Link;
use crate::places::{Origin, Room};
use crate::types::LinkId;

impl<F> Plane<F> {
    /// Accepts a process that has connected. The process must soon send Hello, and then gets a
    /// place. If too many connections have not sent Hello, the origin with the most of these loses
    /// its oldest one.
    pub fn on_accepted(&mut self, origin: Origin, now: Nanos) -> LinkId {
        let id = LinkId(self.fresh_id());
        self.enter_link(id, Link::accepted(origin, now, &self.config));
        self.places.on_accepted(id, origin);
        let limit = self.config.max_half_open.max(1);
        if let Some(oldest) = self.places.half_open_above(limit) {
            self.counters.half_open_evicted += 1;
            self.close_link(oldest, GoodbyeReason::TooManyConnections, now);
        }
        id
    }

    /// Counts a process that has connected and was sent away, because the system has no free
    /// descriptor.
    pub const fn on_sent_away(&mut self) {
        self.counters.links_refused += 1;
    }

    /// Gives a place to an accepted connection that has sent Hello.
    ///
    /// # Errors
    /// There is no place, and no connection that may be closed for this one.
    pub(super) fn take_place(&mut self, id: LinkId, now: Nanos) -> Result<(), GoodbyeReason> {
        let Some(origin) = self.links.get(&id).and_then(|link| link.origin) else {
            return Ok(());
        };
        let closed = match self.places.room_for(origin, self.config.max_links) {
            Room::Free => None,
            Room::OfOwn => Some(self.idle_of(origin, now)),
            Room::Of(other) => Some(self.least_used_of(other, now)),
            Room::None => Some(None),
        };
        match closed {
            None => {}
            Some(Some(other)) => self.evict(other, now),
            Some(None) => {
                self.counters.links_refused += 1;
                return Err(GoodbyeReason::TooManyConnections);
            }
        }
        self.places.on_greeted(id, origin);
        Ok(())
    }

    fn evict(&mut self, id: LinkId, now: Nanos) {
        let is_unused = self.links.get(&id).is_some_and(Link::is_unused);
        let counter = if is_unused {
            &mut self.counters.idle_evicted
        } else {
            &mut self.counters.share_evicted
        };
        *counter += 1;
        self.close_link(id, GoodbyeReason::TooManyConnections, now);
    }

    /// The oldest idle connection of an origin. After Hello, a process has as much time to ask for
    /// a session as it had to send Hello: if its connection counted as idle immediately, a crowd of
    /// processes that connect again and again would end every handshake.
    fn idle_of(&self, origin: Origin, now: Nanos) -> Option<LinkId> {
        let settling = self.config.hello_timeout;
        let is_idle = |link: &Link| link.is_unused() && now.since(link.begun) >= settling;
        self.places
            .greeted_of(origin)
            .find(|id| self.links.get(id).is_some_and(is_idle))
    }

    /// The connection whose loss harms its origin least: the oldest idle one; if none is idle, the
    /// newest one, because the older ones were there before a flood.
    fn least_used_of(&self, origin: Origin, now: Nanos) -> Option<LinkId> {
        let is_unused = |id: &LinkId| self.links.get(id).is_some_and(Link::is_unused);
        let mut all = self.places.greeted_of(origin);
        self.idle_of(origin, now)
            .or_else(|| self.places.greeted_of(origin).find(is_unused))
            .or_else(|| all.next_back())
    }
}
