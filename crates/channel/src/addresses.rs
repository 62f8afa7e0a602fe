//! The addresses of a channel with their links: which are ready, and when the channel tries other
//! addresses again.
//!
//! Invariants: each listed address without a link has a time for its next try; `ready` holds each
//! address that may be picked, but only the first of those that lead to the same process.

use std::collections::VecDeque;

use dunlin_core::{CloseReason, Nanos, Rng};

use crate::address::{Address, Link};
use crate::config::Config;
use crate::counters::Counters;
use crate::handle::{AddressId, Handle, LinkId};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::pace::Load;
use crate::pick::{Ready, seed_of};
use crate::slab::Slab;
use crate::timers::Timers;
use crate::types::{Action, AddressView, Opened, Reason, State};

/// The other parts that these events need.
pub(crate) struct Around<'a> {
    pub(crate) config: &'a Config,
    pub(crate) rng: &'a mut Rng,
    pub(crate) actions: &'a mut VecDeque<Action>,
    pub(crate) counters: &'a mut Counters,
    pub(crate) now: Nanos,
}

#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    all: Slab<AddressId, Address>,
    links: Slab<LinkId, Link>,
    /// All addresses, in the order of their names.
    by_name: Vec<AddressId>,
    ready: Vec<Ready>,
    /// When the channel tries an address that has no link.
    tries: Timers,
    version: u64,
}

impl Addresses {
    pub(crate) fn new() -> Self {
        Self {
            all: Slab::new(),
            links: Slab::new(),
            by_name: Vec::new(),
            ready: Vec::new(),
            tries: Timers::new(),
            version: 0,
        }
    }

    // Questions.

    pub(crate) fn ready(&self) -> &[Ready] {
        &self.ready
    }

    pub(crate) fn load(&self, id: AddressId) -> Load {
        self.all.get(id).map_or(Load::NONE, Address::load)
    }

    /// True if a request may go over this link now.
    pub(crate) fn may_send(&self, link: LinkId) -> bool {
        let link = self.links.get(link).filter(|link| link.open().is_some());
        let address = link.and_then(|link| self.all.get(link.address()));
        address.is_some_and(|address| !address.is_retiring())
    }

    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn next_wakeup(&self) -> Option<Nanos> {
        self.tries.next()
    }

    /// All addresses that are listed or in use.
    pub(crate) fn views(&self) -> impl Iterator<Item = AddressView<'_>> {
        let view = |id| self.all.get(id).map(|address| address.view(id));
        self.all.handles().filter_map(view)
    }

    pub(crate) fn state(&self) -> State {
        let (mut listed, mut served, mut well, mut fresh) = (0, 0, 0, 0);
        for id in self.all.handles() {
            let address = self.all.get(id).filter(|address| address.is_listed());
            let Some(address) = address else { continue };
            let state = address.state();
            listed += 1;
            served += u32::from(matches!(state, State::Ready | State::Degraded));
            well += u32::from(state == State::Ready);
            fresh += u32::from(state == State::Connecting);
        }
        match (served, fresh) {
            (0, 0) if listed > 0 => State::Gone,
            (0, _) => State::Connecting,
            _ if well == listed => State::Ready,
            _ => State::Degraded,
        }
    }

    // Events of the list.

    /// Takes a new list of addresses.
    pub(crate) fn on_list<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        around: &mut Around<'_>,
    ) {
        let before = self.by_name.clone();
        let mut listed = Vec::new();
        for name in names {
            if listed.len() < around.config.addresses {
                listed.push(self.list(name, around.now));
            }
        }
        for id in before {
            if listed.contains(&id) {
                continue;
            }
            #[cfg(feature = "mutants")]
            if around.config.shows(Mutant::UnlistedPicked) {
                continue;
            }
            if let Some(address) = self.all.get_mut(id) {
                address.on_listed(false);
                self.retire(id, around);
            }
        }
        self.refresh();
    }

    fn list(&mut self, name: &str, now: Nanos) -> AddressId {
        let name_of = |id: &AddressId| self.all.get(*id).map_or("", Address::name);
        let at = match self.by_name.binary_search_by_key(&name, name_of) {
            Ok(at) => {
                let id = self.by_name[at];
                if let Some(address) = self.all.get_mut(id) {
                    address.on_listed(true);
                }
                return id;
            }
            Err(at) => at,
        };
        let id = self.all.insert(Address::new(name, seed_of(name)));
        self.by_name.insert(at, id);
        self.tries.set(id.parts().0, Some(now));
        id
    }

    // Events of links.

    /// Connects to an address that is due, if it has no link; [`Self::choose`] opens further links.
    /// False if no address is due.
    pub(crate) fn try_one(&mut self, around: &mut Around<'_>) -> bool {
        let Some(index) = self.tries.due(around.now) else {
            return false;
        };
        let has_none = |id: &AddressId| self.all.get(*id).is_some_and(|it| it.links().is_empty());
        if let Some(id) = self.all.at(index).filter(has_none) {
            self.connect(id, None, around);
        }
        true
    }

    pub(crate) fn on_opened(&mut self, link: LinkId, opened: &Opened, around: &mut Around<'_>) {
        let Some(entry) = self.links.get_mut(link).filter(|it| it.open().is_none()) else {
            around.counters.stale += 1;
            return;
        };
        entry.on_opened(opened, around.now);
        let id = entry.address();
        if let Some(address) = self.all.get_mut(id) {
            address.on_opened(opened);
        }
        match opened.draining {
            true => self.on_draining(id, true, around),
            false => self.refresh(),
        }
    }

    /// Handles a link that could not be opened, or was lost. True if it was open.
    pub(crate) fn on_closed(
        &mut self,
        link: LinkId,
        reason: CloseReason,
        around: &mut Around<'_>,
    ) -> bool {
        #[cfg(feature = "mutants")]
        let is_open = self.links.get(link).is_some_and(|it| it.open().is_some());
        #[cfg(feature = "mutants")]
        if around.config.shows(Mutant::DeadPicked) && is_open {
            return false;
        }
        let Some(entry) = self.links.remove(link) else {
            around.counters.stale += 1;
            return false;
        };
        let (id, open) = (entry.address(), entry.open());
        let was_open = open.is_some();
        let counter = match was_open {
            true => &mut around.counters.losses,
            false => &mut around.counters.connect_failures,
        };
        *counter += 1;
        let lasted = open.map(|open| around.now.since(open.since));
        let is_settled = lasted.is_some_and(|lasted| lasted >= around.config.settled);
        if let Some(address) = self.all.get_mut(id) {
            address.on_disconnect(link, was_open);
            address.on_failure(Reason::Closed(reason), is_settled);
            let pause = around
                .config
                .reconnect
                .pause(address.failures(), around.rng);
            address.on_pause(around.now + pause);
            self.after_link(id, around.now + pause);
        }
        #[cfg(feature = "mutants")]
        if around.config.shows(Mutant::ReconnectForgotten)
            && self
                .all
                .get(id)
                .is_some_and(|address| address.failures() > 1)
        {
            self.tries.set(id.parts().0, None);
        }
        self.refresh();
        was_open
    }

    /// Takes the state that the server at the other end of `link` reports.
    pub(crate) fn on_serving(
        &mut self,
        link: LinkId,
        draining: bool,
        endpoints: u32,
        around: &mut Around<'_>,
    ) {
        let Some(id) = self.links.get(link).map(Link::address) else {
            around.counters.stale += 1;
            return;
        };
        if let Some(address) = self.all.get_mut(id) {
            address.on_endpoints(endpoints);
        }
        self.on_draining(id, draining, around);
    }

    /// The server at the other end of `link` has refused a request because it drains.
    pub(crate) fn on_shutting_down(&mut self, link: LinkId, around: &mut Around<'_>) {
        // If the link is gone, its process may be gone as well.
        if let Some(id) = self.links.get(link).map(Link::address) {
            self.on_draining(id, true, around);
        }
    }

    /// The server at `id` drains, or has stopped draining.
    fn on_draining(&mut self, id: AddressId, draining: bool, around: &mut Around<'_>) {
        #[cfg(feature = "mutants")]
        if around.config.shows(Mutant::DrainingPicked) {
            return self.refresh();
        }
        let Some(address) = self.all.get_mut(id) else {
            return;
        };
        let begins = draining && !address.is_draining();
        address.on_draining(draining);
        if begins {
            around.counters.drains += 1;
            self.retire(id, around);
        }
        self.refresh();
    }

    // Events of attempts.

    /// Chooses an open link for an attempt at `id`, to `endpoint` if that is given. If there is no
    /// such link, or the best one is full, begins to open another one.
    pub(crate) fn choose(
        &mut self,
        id: AddressId,
        endpoint: Option<u32>,
        around: &mut Around<'_>,
    ) -> Option<LinkId> {
        let address = self.all.get(id)?;
        let fits = |link: &LinkId| {
            let entry = self.links.get(*link)?;
            let open = entry.open()?;
            let is_there = endpoint.is_none_or(|endpoint| open.endpoint == endpoint);
            is_there.then_some((entry.outstanding(), *link, open.window))
        };
        let best = address.links().iter().filter_map(fits).min();
        let is_full = best.is_none_or(|(outstanding, _, window)| outstanding >= window);
        if is_full && self.may_grow(address, endpoint, best.is_some(), around) {
            let endpoint = endpoint.or_else(|| self.least_used(address, around.config));
            let count = |endpoint| self.links_to(address, endpoint);
            if endpoint.map_or(0, count) < around.config.links_per_endpoint {
                self.connect(id, endpoint, around);
            }
        }
        best.map(|(_, link, _)| link)
    }

    /// The link to `id` with the fewest outstanding attempts, if one has room for an attempt at
    /// `endpoint`.
    pub(crate) fn with_room(&self, id: AddressId, endpoint: Option<u32>) -> Option<LinkId> {
        let address = self.all.get(id).filter(|it| !it.is_retiring())?;
        let fits = |link: &LinkId| {
            let entry = self.links.get(*link)?;
            let open = entry.open()?;
            let is_there = endpoint.is_none_or(|endpoint| open.endpoint == endpoint);
            let has_room = entry.outstanding() < open.window;
            (is_there && has_room).then_some((entry.outstanding(), *link))
        };
        let best = address.links().iter().filter_map(fits).min();
        best.map(|(_, link)| link)
    }

    /// Moves an attempt to another link of its address.
    pub(crate) fn on_move(&mut self, from: LinkId, to: LinkId) {
        if let Some(link) = self.links.get_mut(from) {
            link.on_attempt_end();
        }
        if let Some(link) = self.links.get_mut(to) {
            link.on_attempt();
        }
    }

    /// Whether the channel may open another link to a server. `has_one`: it has open links to the
    /// endpoint, all of which are full.
    fn may_grow(
        &self,
        address: &Address,
        endpoint: Option<u32>,
        has_one: bool,
        around: &Around<'_>,
    ) -> bool {
        let entries = || {
            address
                .links()
                .iter()
                .filter_map(|link| self.links.get(*link))
        };
        let is_coming = entries().any(|link| {
            let is_there = endpoint.is_none_or(|endpoint| link.leads_to(endpoint));
            is_there && link.open().is_none()
        });
        let has_room = address.links().len() < around.config.links_per_server;
        address.may_have_more(around.now) && !is_coming && (has_room || !has_one)
    }

    /// The endpoint to which the fewest links lead, among those that the channel uses when a call
    /// names none.
    fn least_used(&self, address: &Address, config: &Config) -> Option<u32> {
        let count = address.endpoints().min(config.endpoints_per_server);
        (0..count).min_by_key(|endpoint| self.links_to(address, *endpoint))
    }

    /// The number of links that lead to this endpoint of a server.
    fn links_to(&self, address: &Address, endpoint: u32) -> usize {
        let entries = address
            .links()
            .iter()
            .filter_map(|link| self.links.get(*link));
        entries.filter(|link| link.leads_to(endpoint)).count()
    }

    pub(crate) fn on_attempt(&mut self, id: AddressId, link: LinkId) {
        if let Some(address) = self.all.get_mut(id) {
            address.on_attempt();
        }
        if let Some(link) = self.links.get_mut(link) {
            link.on_attempt();
        }
    }

    /// The server at `id` has answered an attempt after `span`. See `Pace::on_answer`.
    pub(crate) fn on_answer(&mut self, id: AddressId, span: Nanos, outstanding: u32) {
        if let Some(address) = self.all.get_mut(id) {
            address.on_answer(span, outstanding);
        }
    }

    pub(crate) fn on_attempt_end(&mut self, id: AddressId, link: LinkId, around: &mut Around<'_>) {
        if let Some(link) = self.links.get_mut(link) {
            link.on_attempt_end();
        }
        let Some(address) = self.all.get_mut(id) else {
            return;
        };
        address.on_attempt_end();
        if address.is_retiring() {
            self.retire(id, around);
            self.refresh();
        }
    }

    /// Ends all links.
    pub(crate) fn close(&mut self, around: &mut Around<'_>) {
        let open: Vec<LinkId> = self.links.handles().collect();
        for link in open {
            around.actions.push_back(Action::Disconnect { link });
        }
        *self = Self {
            version: self.version + 1,
            ..Self::new()
        };
    }

    // Inside.

    fn connect(&mut self, id: AddressId, endpoint: Option<u32>, around: &mut Around<'_>) {
        let link = self.links.insert(Link::new(id, endpoint));
        if let Some(address) = self.all.get_mut(id) {
            address.on_connect(link);
        }
        around.counters.connects += 1;
        around.actions.push_back(Action::Connect {
            link,
            address: id,
            endpoint,
        });
    }

    /// Ends the idle links of a retiring address.
    fn retire(&mut self, id: AddressId, around: &mut Around<'_>) {
        let Some(address) = self.all.get_mut(id) else {
            return;
        };
        let mut at = 0;
        while let Some(link) = address.links().get(at).copied() {
            let entry = self.links.get(link);
            let is_idle = entry.is_none_or(|entry| entry.outstanding() == 0);
            #[cfg(feature = "mutants")]
            let is_idle = is_idle || around.config.shows(Mutant::DrainCutsOff);
            if !is_idle {
                at += 1;
                continue;
            }
            let entry = self.links.remove(link);
            let was_open = entry.is_some_and(|entry| entry.open().is_some());
            address.on_disconnect(link, was_open);
            around.actions.push_back(Action::Disconnect { link });
        }
        let pause = around.config.reconnect.pause(1, around.rng);
        self.after_link(id, around.now + pause);
    }

    /// Handles the loss of a link: tries the address again at `then`. But if the link was the last
    /// one and the address is not listed, removes the address.
    fn after_link(&mut self, id: AddressId, then: Nanos) {
        let Some(address) = self.all.get_mut(id) else {
            return;
        };
        if !address.links().is_empty() {
            if !address.is_retiring() {
                self.tries.set(id.parts().0, Some(then));
            }
        } else if address.is_listed() {
            if address.is_draining() {
                address.on_drained();
            }
            self.tries.set(id.parts().0, Some(then));
        } else if self.all.remove(id).is_some() {
            self.tries.set(id.parts().0, None);
            self.by_name.retain(|other| *other != id);
        }
    }

    /// Updates which addresses may be picked.
    fn refresh(&mut self) {
        self.version += 1;
        self.ready.clear();
        for id in self.all.handles() {
            let address = self.all.get(id).filter(|address| address.may_be_picked());
            let Some(address) = address else { continue };
            let server = address.server();
            if self.ready.iter().all(|other| other.server != server) {
                let seed = address.seed();
                self.ready.push(Ready { id, seed, server });
            }
        }
    }
}
