//! The control plane's connections: in order, reliable, late, and broken by a crash.
//!
//! A connection whose direction has no path holds its messages back, as TCP does, and goes on
//! when the path is back. Invariant: messages from one port to another arrive in order; each is
//! meant for the process that lived on the port when it was sent. Called by `world`.

use std::collections::{BTreeMap, VecDeque};

use dunlin_core::Nanos;

use crate::net::PortId;
use crate::rng::Rng;
use crate::world::ProcessId;

/// What comes out of a connection.
#[derive(Debug)]
pub(super) enum Delivery<M> {
    /// A message.
    Message(M),
    /// The end: the other process is gone.
    Broken,
}

/// All connections.
#[derive(Debug)]
pub(super) struct Pipes<M> {
    index: BTreeMap<(PortId, PortId), usize>,
    pipes: Vec<Pipe<M>>,
    rng: Rng,
}

#[derive(Debug)]
struct Pipe<M> {
    from: PortId,
    to: PortId,
    items: VecDeque<Item<M>>,
    last: Nanos,
}

/// Something under way.
#[derive(Debug)]
pub(super) struct Item<M> {
    /// From whom, or whose end it is.
    pub(super) from: ProcessId,
    /// For whom.
    pub(super) to: ProcessId,
    pub(super) what: Delivery<M>,
    due: Nanos,
}

/// Range of the time that a message needs: a kernel's TCP within a rack, with its wake-ups.
const DELAY: (u64, u64) = (10_000, 400_000);
/// A connection without a path tries again after this time.
const RETRY: Nanos = Nanos::from_millis(1);

impl<M> Pipes<M> {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            index: BTreeMap::new(),
            pipes: Vec::new(),
            rng,
        }
    }

    /// Sends; returns the connection and when its first item is due, if nothing was under way.
    pub(super) fn send(
        &mut self,
        from: ProcessId,
        to: ProcessId,
        what: Delivery<M>,
        now: Nanos,
    ) -> Option<(usize, Nanos)> {
        let next = self.pipes.len();
        let ends = (from.port, to.port);
        let at = *self.index.entry(ends).or_insert(next);
        if at == next {
            let items = VecDeque::new();
            self.pipes.push(Pipe {
                from: ends.0,
                to: ends.1,
                items,
                last: Nanos::ZERO,
            });
        }
        let delay = Nanos(self.rng.log_between(DELAY.0, DELAY.1));
        let pipe = &mut self.pipes[at];
        pipe.last = pipe.last.max(now + delay);
        pipe.items.push_back(Item {
            from,
            to,
            what,
            due: pipe.last,
        });
        (pipe.items.len() == 1).then_some((at, pipe.last))
    }

    /// From where to where a connection goes.
    pub(super) fn ends(&self, pipe: usize) -> (PortId, PortId) {
        (self.pipes[pipe].from, self.pipes[pipe].to)
    }

    /// Takes the first item if there is a path; says when the next one is due.
    pub(super) fn take(
        &mut self,
        pipe: usize,
        open: bool,
        now: Nanos,
    ) -> (Option<Item<M>>, Option<Nanos>) {
        if !open {
            return (None, Some(now + RETRY));
        }
        let items = &mut self.pipes[pipe].items;
        let item = items.pop_front();
        (item, items.front().map(|next| next.due.max(now)))
    }
}
