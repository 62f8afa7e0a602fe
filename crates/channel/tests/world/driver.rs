//! The machine's driver in this world: links with windows and backlogs, attempts on their way, and
//! the ledger of calls.

use std::collections::{BTreeMap, VecDeque};

use dunlin_core::{CloseReason, Nanos};

use dunlin_channel::{
    Action, AddressId, AttemptId, CallEnd, CallId, Config, LinkId, Machine, Outcome, Terms,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Opens(LinkId),
    Lost(LinkId, CloseReason),
    Draining(LinkId),
    /// A request reaches its server.
    Arrives(AttemptId),
    /// The client sees an attempt's end.
    Ends(AttemptId, Outcome),
    /// The driver reports the end a second time.
    EndsAgain(AttemptId, Outcome),
    LookedUp,
}

#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) address: AddressId,
    pub(crate) server: usize,
    pub(crate) process: u64,
    pub(crate) endpoint: u32,
    pub(crate) is_open: bool,
    /// The machine knows that its server drains.
    pub(crate) is_draining: bool,
    pub(crate) backlog: VecDeque<AttemptId>,
    pub(crate) under_way: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) call: usize,
    pub(crate) link: LinkId,
    pub(crate) address: AddressId,
    pub(crate) process: u64,
    pub(crate) server: usize,
    pub(crate) is_sent: bool,
    /// The cancellation reaches the server before the request.
    pub(crate) is_dropped: bool,
    pub(crate) is_cancelled: bool,
}

/// A call. Its entry is never removed.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) terms: Terms,
    pub(crate) runs: u32,
    /// Number of attempts that the driver got.
    pub(crate) handed: u32,
    /// Number of attempts that were transmitted.
    pub(crate) sends: u32,
    /// Number of these that draining servers refused.
    pub(crate) refusals: u32,
    pub(crate) is_cancelled: bool,
    pub(crate) end: Option<CallEnd>,
    /// The time since which no attempt at the call has been in flight.
    pub(crate) idle: Option<Nanos>,
    /// The next attempt costs nothing.
    pub(crate) is_free: bool,
    /// The last attempt was lost with its server, and the call may not run twice: it ends at once.
    pub(crate) is_over: bool,
    pub(crate) answered_by: Option<AttemptId>,
}

pub(crate) struct Driver {
    pub(crate) machine: Machine,
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) attempts: BTreeMap<AttemptId, Attempt>,
    pub(crate) calls: Vec<Call>,
    pub(crate) by_id: BTreeMap<CallId, usize>,
    pub(crate) listed: Vec<String>,
    pub(crate) paid: u64,
    pub(crate) is_closed: bool,
    /// The time since which there has been an open link to a listed server that does not drain.
    pub(crate) ready_since: Option<Nanos>,
    digest: u64,
}

pub(crate) const BACKLOG: usize = 4;

impl Driver {
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        Self {
            machine: Machine::new(config, seed, Nanos::ZERO),
            links: BTreeMap::new(),
            attempts: BTreeMap::new(),
            calls: Vec::new(),
            by_id: BTreeMap::new(),
            listed: Vec::new(),
            paid: 0,
            is_closed: false,
            ready_since: None,
            digest: 0,
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Action> {
        self.note_ready(now);
        let action = self.machine.poll(now)?;
        let words = format!("{} {action:?}", now.0);
        self.digest = self.digest.rotate_left(9) ^ dunlin_channel::seed_of(&words);
        Some(action)
    }

    pub(crate) fn close(&mut self, now: Nanos) {
        self.is_closed = true;
        self.machine.close(now);
    }

    pub(crate) fn cancel(&mut self, call: usize, now: Nanos) {
        let call = &mut self.calls[call];
        if call.end.is_none() && !call.is_cancelled {
            call.is_cancelled = true;
            self.machine.on_cancel(call.id, now);
        }
    }

    pub(crate) fn links_to(&self, process: u64) -> Vec<LinkId> {
        let all = self.links.iter();
        all.filter(|(_, link)| link.process == process && link.is_open)
            .map(|(id, _)| *id)
            .collect()
    }

    /// An attempt that waits for another link to the same address, if none waits for `link`.
    pub(crate) fn waiting_beside(&self, link: LinkId) -> Option<AttemptId> {
        let own = self.links.get(&link).filter(|own| own.backlog.is_empty())?;
        let mut others = self.links.values();
        others
            .find(|it| it.address == own.address && !it.backlog.is_empty())
            .and_then(|it| it.backlog.front().copied())
    }

    /// Whether the link is open, to a listed address whose server does not drain.
    pub(crate) fn is_ready(&self, link: &Link) -> bool {
        let mut views = self.machine.addresses();
        let name = views.find(|view| view.id == link.address);
        let is_listed = name.is_some_and(|view| self.listed.iter().any(|it| it == view.name));
        let mates = || self.links.values().filter(|it| it.address == link.address);
        link.is_open && is_listed && mates().all(|mate| !mate.is_draining)
    }

    fn note_ready(&mut self, now: Nanos) {
        let is_ready = self.links.values().any(|link| self.is_ready(link));
        self.ready_since = is_ready.then(|| self.ready_since.unwrap_or(now));
    }
}
