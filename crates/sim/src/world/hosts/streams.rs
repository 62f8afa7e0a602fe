//! The control plane's connections: ordered, reliable, delayed, and broken by a crash, like TCP.
//!
//! While a direction of a connection has no path, or the host at its end is paused, its messages
//! wait. Invariant: the messages of one end arrive at the other end in order, or the other end
//! learns that the connection is gone; after that, no message arrives there. Called by `world`.

use std::collections::{BTreeMap, VecDeque};

use dunlin_core::Nanos;

use crate::world::ProcessId;
use crate::world::net::{Fd, PortId};
use crate::world::rng::Rng;

/// Content that travels from one end to the other.
#[derive(Debug)]
pub(super) enum Item {
    /// A request for a connection, to the process that listens.
    Dial,
    /// The request was accepted.
    Dialled,
    /// A message, with its descriptors.
    Frame(Vec<u8>, Vec<Fd>),
    /// The connection is gone, or was refused.
    Gone,
}

/// One direction of a connection, towards one of its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lane(usize);

/// A lane, and the time at which its first item is due.
pub(super) type Plan = Option<(Lane, Nanos)>;

/// All connections.
#[derive(Debug)]
pub(super) struct Streams {
    ends: Vec<End>,
    named: BTreeMap<(ProcessId, u64), Lane>,
    rng: Rng,
}

/// One end of a connection, with the items in transit to it. The two ends of a connection are
/// neighbours in the list.
#[derive(Debug)]
struct End {
    port: PortId,
    /// The process, and its name for the connection; `None` before the connection begins and after
    /// it has ended.
    owner: Option<(ProcessId, u64)>,
    /// Whether both ends are on one host, with no cable between them.
    local: bool,
    items: VecDeque<(Nanos, Item)>,
    last: Nanos,
}

/// Range of the time that a message needs: a kernel's TCP within a rack, with its wake-ups.
const DELAY: (u64, u64) = (10_000, 400_000);
/// A direction whose messages had to wait tries again after this time.
const RETRY: Nanos = Nanos::from_millis(1);

impl Lane {
    /// The other direction.
    const fn back(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl Streams {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            ends: Vec::new(),
            named: BTreeMap::new(),
            rng,
        }
    }

    /// Begins a connection for a process, which names it `name`.
    pub(super) fn dial(
        &mut self,
        from: ProcessId,
        name: u64,
        to: PortId,
        local: bool,
        now: Nanos,
    ) -> Plan {
        let near = Lane(self.ends.len());
        let end = |port, owner| End {
            port,
            owner,
            local,
            items: VecDeque::new(),
            last: Nanos::ZERO,
        };
        self.ends.push(end(from.port, Some((from, name))));
        self.ends.push(end(to, None));
        self.named.insert((from, name), near);
        self.push(near.back(), Item::Dial, now)
    }

    /// Sends a message of a process over a connection; does nothing if the connection is gone.
    pub(super) fn send(
        &mut self,
        from: ProcessId,
        name: u64,
        (frame, fds): (Vec<u8>, Vec<Fd>),
        now: Nanos,
    ) -> Plan {
        let near = self.named.get(&(from, name)).copied()?;
        self.push(near.back(), Item::Frame(frame, fds), now)
    }

    /// Closes a connection for a process, which gets no further events of it.
    pub(super) fn close(&mut self, from: ProcessId, name: u64, now: Nanos) -> Plan {
        let near = self.forget((from, name))?;
        self.push(near.back(), Item::Gone, now)
    }

    /// Accepts a connection for the listening process, which names it `name`.
    pub(super) fn accept(&mut self, lane: Lane, by: ProcessId, name: u64, now: Nanos) -> Plan {
        self.ends[lane.0].owner = Some((by, name));
        self.named.insert((by, name), lane);
        self.push(lane.back(), Item::Dialled, now)
    }

    /// Refuses the connection that arrived over this lane.
    pub(super) fn refuse(&mut self, lane: Lane, now: Nanos) -> Plan {
        self.push(lane.back(), Item::Gone, now)
    }

    /// The process at the other end of a connection of this process.
    pub(super) fn peer(&self, of: ProcessId, name: u64) -> Option<ProcessId> {
        let near = self.named.get(&(of, name))?;
        self.owner(near.back()).map(|(peer, _)| peer)
    }

    /// The connections of a process, by their names.
    pub(super) fn of(&self, process: ProcessId) -> Vec<u64> {
        let all = (process, 0)..=(process, u64::MAX);
        self.named.range(all).map(|((_, name), _)| *name).collect()
    }

    /// The ports at both ends of a lane, and whether the connection is local and needs no cable.
    pub(super) fn route(&self, lane: Lane) -> (PortId, PortId, bool) {
        let to = &self.ends[lane.0];
        (self.ends[lane.back().0].port, to.port, to.local)
    }

    /// The process at the end of the lane, and its name for the connection.
    pub(super) fn owner(&self, lane: Lane) -> Option<(ProcessId, u64)> {
        self.ends[lane.0].owner
    }

    /// Notes that the end knows that the connection is gone.
    pub(super) fn drop_end(&mut self, lane: Lane) {
        if let Some(owner) = self.ends[lane.0].owner {
            self.forget(owner);
        }
    }

    /// Takes the first item if the lane is open. Also returns when to call this next for the lane.
    pub(super) fn take(&mut self, lane: Lane, open: bool, now: Nanos) -> (Option<Item>, Plan) {
        if !open {
            return (None, Some((lane, now + RETRY)));
        }
        let items = &mut self.ends[lane.0].items;
        let item = items.pop_front().map(|(_, item)| item);
        (item, items.front().map(|(due, _)| (lane, (*due).max(now))))
    }

    fn forget(&mut self, owner: (ProcessId, u64)) -> Option<Lane> {
        let near = self.named.remove(&owner)?;
        self.ends[near.0].owner = None;
        Some(near)
    }

    fn push(&mut self, lane: Lane, item: Item, now: Nanos) -> Plan {
        let delay = Nanos(self.rng.log_between(DELAY.0, DELAY.1));
        let end = &mut self.ends[lane.0];
        end.last = end.last.max(now + delay);
        end.items.push_back((end.last, item));
        (end.items.len() == 1).then_some((lane, end.last))
    }
}
