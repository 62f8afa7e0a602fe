//! One address: its links, its outstanding requests, and its state.
//!
//! | state | links | next state |
//! |---|---|---|
//! | connecting | none open, nothing failed | a link opens: ready; fails: gone |
//! | ready | open ones | a link is lost: degraded; the last one: gone |
//! | degraded | open ones | a link opens: ready; the last one is lost: gone |
//! | gone | none open, or the server drains | a link opens: ready |
//!
//! Invariant: an address that is retiring (its server drains, or it is not listed) gets no new
//! link and no new attempt.

use dunlin_core::Nanos;

use crate::handle::{AddressId, LinkId};
use crate::pace::{Load, Pace};
use crate::types::{AddressView, Opened, Reason, State};

/// A link that is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) since: Nanos,
    pub(crate) endpoint: u32,
    pub(crate) window: u32,
}

/// One link.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    address: AddressId,
    /// The endpoint that the channel asked for.
    wanted: Option<u32>,
    open: Option<Open>,
    outstanding: u32,
}

impl Link {
    pub(crate) const fn new(address: AddressId, wanted: Option<u32>) -> Self {
        Self {
            address,
            wanted,
            open: None,
            outstanding: 0,
        }
    }

    pub(crate) const fn address(&self) -> AddressId {
        self.address
    }

    pub(crate) const fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    pub(crate) const fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Whether the link leads to `endpoint`, or will once it opens.
    pub(crate) fn leads_to(&self, endpoint: u32) -> bool {
        let there = self.open.map(|open| open.endpoint).or(self.wanted);
        there == Some(endpoint)
    }

    pub(crate) const fn on_opened(&mut self, opened: &Opened, now: Nanos) {
        self.open = Some(Open {
            since: now,
            endpoint: opened.endpoint,
            window: opened.window,
        });
    }

    pub(crate) const fn on_attempt(&mut self) {
        self.outstanding += 1;
    }

    pub(crate) const fn on_attempt_end(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
}

/// One address.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    name: Box<str>,
    seed: u64,
    is_listed: bool,
    is_draining: bool,
    /// The last link could not be opened or was lost, and no link has opened since.
    is_troubled: bool,
    links: Vec<LinkId>,
    open: u32,
    outstanding: u32,
    pace: Pace,
    /// Failures in a row.
    failures: u32,
    /// Until this time, the channel opens no further link to this server if it has one already.
    more_from: Nanos,
    /// The process at the address, and the number of its endpoints that serve.
    server: (u64, u32),
    last_error: Option<Reason>,
}

impl Address {
    pub(crate) fn new(name: &str, seed: u64) -> Self {
        Self {
            name: name.into(),
            seed,
            is_listed: true,
            is_draining: false,
            is_troubled: false,
            links: Vec::new(),
            open: 0,
            outstanding: 0,
            pace: Pace::new(),
            failures: 0,
            more_from: Nanos::ZERO,
            server: (0, 1),
            last_error: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn links(&self) -> &[LinkId] {
        &self.links
    }

    pub(crate) const fn load(&self) -> Load {
        Load {
            outstanding: self.outstanding,
            pace: self.pace,
        }
    }

    pub(crate) const fn server(&self) -> u64 {
        self.server.0
    }

    pub(crate) const fn endpoints(&self) -> u32 {
        self.server.1
    }

    pub(crate) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub(crate) const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// True if the address gets no new link and no new attempt.
    pub(crate) const fn is_retiring(&self) -> bool {
        self.is_draining || !self.is_listed
    }

    pub(crate) const fn may_be_picked(&self) -> bool {
        self.open > 0 && !self.is_retiring()
    }

    pub(crate) fn may_have_more(&self, now: Nanos) -> bool {
        !self.is_retiring() && now >= self.more_from
    }

    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) const fn state(&self) -> State {
        match (self.may_be_picked(), self.is_troubled) {
            (true, false) => State::Ready,
            (true, true) => State::Degraded,
            (false, _) if self.failures == 0 && !self.is_draining => State::Connecting,
            (false, _) => State::Gone,
        }
    }

    pub(crate) fn view(&self, id: AddressId) -> AddressView<'_> {
        AddressView {
            id,
            name: &self.name,
            state: self.state(),
            last_error: self.last_error,
            outstanding: self.outstanding,
            links: self.open,
        }
    }

    pub(crate) const fn on_listed(&mut self, is_listed: bool) {
        self.is_listed = is_listed;
    }

    pub(crate) fn on_connect(&mut self, link: LinkId) {
        self.links.push(link);
    }

    pub(crate) const fn on_opened(&mut self, opened: &Opened) {
        self.open += 1;
        self.is_troubled = false;
        if self.server.0 != opened.server {
            self.pace = Pace::new();
        }
        self.server = (opened.server, opened.endpoints);
    }

    pub(crate) const fn on_endpoints(&mut self, endpoints: u32) {
        self.server.1 = endpoints;
    }

    /// The server has begun to drain, or has stopped draining.
    pub(crate) const fn on_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
        if is_draining {
            self.last_error = Some(Reason::Draining);
        }
    }

    /// Removes a link that this side has ended.
    pub(crate) fn on_disconnect(&mut self, link: LinkId, was_open: bool) {
        self.links.retain(|other| *other != link);
        self.open -= u32::from(was_open);
    }

    /// Counts a failed link. If the link had `settled`, earlier failures no longer count.
    pub(crate) fn on_failure(&mut self, reason: Reason, settled: bool) {
        let before = if settled { 0 } else { self.failures };
        self.failures = before.saturating_add(1);
        self.is_troubled = true;
        self.last_error = Some(reason);
    }

    pub(crate) const fn on_pause(&mut self, until: Nanos) {
        self.more_from = until;
    }

    /// The draining server's last link has ended. A later process at this address is a new one,
    /// which does not drain.
    pub(crate) const fn on_drained(&mut self) {
        self.is_draining = false;
        self.is_troubled = true;
        self.failures = 1;
    }

    pub(crate) const fn on_attempt(&mut self) {
        self.outstanding += 1;
    }

    pub(crate) const fn on_attempt_end(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    pub(crate) fn on_answer(&mut self, span: Nanos, outstanding: u32) {
        self.pace.on_answer(span, outstanding);
    }
}
