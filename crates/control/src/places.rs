//! The places of connections that other processes have made: their number, their origins, and the
//! choice of the origin that must give one up (rule C9).
//!
//! A connection that has sent Hello has one of `max_links` places. Up to three quarters of the
//! places go to the first connections, whatever their origins. Beyond that, all present origins
//! have the same share. An origin above its share gets no more places and, when all are taken,
//! gives some up to origins below their share. So a host that takes as many places as it can locks
//! out no other host, and many processes with one address may use all places if no other origin is
//! present. Requests that wait for a proof have places of the same kind (rule C13).
//!
//! Owned and called by `plane`.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr};

use dunlin_core::ordered::{Map, Set};

use super::types::LinkId;

/// The origin of a connection. The kernel reports it, so no peer can choose it. All connections of
/// one origin share that origin's places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// A process of this host, over the UNIX socket, by its id.
    Process(u32),
    /// Processes of this process's user, over TCP, if the kernel does not name the process.
    OwnUser,
    /// The processes of another user of this host, over TCP.
    User(u32),
    /// Processes of this host, over TCP, if the kernel does not name their user.
    UnknownUser,
    /// A host, or the hosts that share its address.
    V4(Ipv4Addr),
    /// The hosts of an IPv6 network, by the first 64 bits of their addresses: a host can choose the
    /// other bits.
    V6(u64),
}

impl Origin {
    /// The origin of a TCP connection from another host.
    pub fn of_host(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => Self::V6(u64::try_from(ip.to_bits() >> 64).unwrap_or_default()),
        }
    }

    /// Whether the origin is, according to the kernel, on this host and of this user. Only such a
    /// process can share memory with this one.
    pub(super) const fn is_own(self) -> bool {
        matches!(self, Self::Process(_) | Self::OwnUser)
    }

    /// Whether this is the origin of a connection over the UNIX socket, which carries descriptors.
    pub(super) const fn carries_fds(self) -> bool {
        matches!(self, Self::Process(_))
    }
}

/// The answer to a connection that needs a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// There is a place.
    Free,
    /// The connection's own origin already has its share: one of its idle connections must end, or
    /// there is no place.
    OfOwn,
    /// Another origin has more than its share: one of its connections must end.
    Of(Origin),
    /// All places are taken, and no origin has more than its share.
    None,
}

/// Accepted connections by their origins.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Connections that have not sent Hello.
    half_open: Shares<LinkId>,
    greeted: Shares<LinkId>,
}

/// Places of one kind, and the origins that have them. Later holders have greater names.
#[derive(Debug)]
pub(super) struct Shares<K> {
    of: Map<Origin, Set<K>>,
    count: usize,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self {
            of: Map::new(),
            count: 0,
        }
    }
}

impl Places {
    /// Notes that a process has connected.
    pub(super) fn on_accepted(&mut self, link: LinkId, origin: Origin) {
        self.half_open.insert(link, origin);
    }

    /// Notes that a connection has sent Hello, and gives it a place.
    pub(super) fn on_greeted(&mut self, link: LinkId, origin: Origin) {
        self.half_open.remove(link, origin);
        self.greeted.insert(link, origin);
    }

    /// Notes that the connection has ended.
    pub(super) fn on_end(&mut self, link: LinkId, origin: Origin) {
        self.half_open.remove(link, origin);
        self.greeted.remove(link, origin);
    }

    /// The connection to close if more than `limit` have not sent Hello: the oldest such connection
    /// of the origin that has the most of them.
    pub(super) fn half_open_above(&self, limit: usize) -> Option<LinkId> {
        if self.half_open.count <= limit {
            return None;
        }
        let (_, links) = self.half_open.largest(|_| true)?;
        links.first().copied()
    }

    /// Whether one of `limit` places can go to one more connection of this origin.
    pub(super) fn room_for(&self, newcomer: Origin, limit: usize) -> Room {
        self.greeted.room_for(newcomer, limit)
    }

    /// The connections of an origin that have a place, oldest first.
    pub(super) fn greeted_of(&self, origin: Origin) -> impl DoubleEndedIterator<Item = LinkId> {
        self.greeted.held_by(origin)
    }
}

impl<K: Copy + Ord> Shares<K> {
    /// Gives a place to one more holder of this origin.
    pub(super) fn insert(&mut self, name: K, origin: Origin) {
        if self.of.get_or_insert(origin, Set::new()).insert(name) {
            self.count += 1;
        }
    }

    /// Takes the place back. False if there was none.
    pub(super) fn remove(&mut self, name: K, origin: Origin) -> bool {
        let Some(names) = self.of.get_mut(&origin) else {
            return false;
        };
        let held = names.remove(&name);
        self.count -= usize::from(held);
        if names.is_empty() {
            self.of.remove(&origin);
        }
        held
    }

    /// Whether one of `limit` places can go to one more holder of this origin.
    pub(super) fn room_for(&self, newcomer: Origin, limit: usize) -> Room {
        let all = self.count + 1;
        if all * 4 <= limit * 3 {
            return Room::Free;
        }
        let of_own = self.count_of(newcomer) + 1;
        let present = self.of.len() + usize::from(of_own == 1);
        let share = (limit / present).max(1);
        if of_own > share {
            return Room::OfOwn;
        }
        if all <= limit {
            return Room::Free;
        }
        match self.largest(|origin| origin != newcomer) {
            Some((origin, names)) if names.len() > share => Room::Of(origin),
            _ => Room::None,
        }
    }

    /// The holders of an origin's places, oldest first.
    pub(super) fn held_by(&self, origin: Origin) -> impl DoubleEndedIterator<Item = K> {
        self.of
            .get(&origin)
            .into_iter()
            .flat_map(Set::iter)
            .copied()
    }

    #[cfg(test)]
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn count_of(&self, origin: Origin) -> usize {
        self.of.get(&origin).map_or(0, Set::len)
    }

    /// The origin with the most places; among equals, the one with the oldest holder.
    fn largest(&self, which: impl Fn(Origin) -> bool) -> Option<(Origin, &Set<K>)> {
        let origins = self.of.iter().filter(|(origin, _)| which(**origin));
        let rank = |names: &Set<K>| (names.len(), Reverse(names.first().copied()));
        let largest = origins.max_by_key(|(_, names)| rank(names));
        largest.map(|(origin, names)| (*origin, names))
    }
}

#[cfg(test)]
mod tests;
