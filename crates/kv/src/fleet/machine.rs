//! The fleet's state, and the methods that the owner of its endpoint calls.

use std::collections::VecDeque;

use dunlin_channel::{Action, AddressView as ServerView, Config, Machine, Opened};
use dunlin_core::{CloseReason, Cx, Done, Nanos, Session, SessionEvent};

use super::jobs::{Get, Job, Places};
use super::ring::Ring;
use super::server::{Change, Server};
use super::servers::{MAX_SERVERS, Servers};
use super::types::{FleetEnd, FleetOptions, ServerId, Wish};
use crate::client::{Options, client_of};
use crate::wire::Map;

/// A client of several servers. An endpoint has one fleet or one [`Client`](crate::Client), because
/// two would take the ends of each other's calls.
#[derive(Debug)]
pub struct Fleet {
    pub(super) options: FleetOptions,
    machine: Machine,
    pub(super) servers: Servers,
    pub(super) ring: Ring,
    pub(super) jobs: Places<Job>,
    pub(super) gets: Places<Get>,
    pub(super) ends: VecDeque<FleetEnd>,
    /// Sessions that no server wants any more, and that are still to be ended.
    strays: Vec<Session>,
    wants_names: bool,
}

impl Fleet {
    /// Makes a fleet without servers. `seed` spreads the times at which servers are tried again.
    #[must_use]
    pub fn new(options: FleetOptions, seed: u64, now: Nanos) -> Self {
        let config = Config {
            lookup: options.lookup,
            ..Config::DEFAULT
        };
        // The servers' clients share the seed. Their numbers make their pauses differ.
        let client = Options {
            seed,
            ..options.client
        };
        Self {
            options: FleetOptions { client, ..options },
            machine: Machine::new(config, seed, now),
            servers: Servers::default(),
            ring: Ring::new([]),
            jobs: Places::default(),
            gets: Places::default(),
            ends: VecDeque::new(),
            strays: Vec::new(),
            wants_names: false,
        }
    }

    // Questions.

    /// The listed server that owns a key.
    #[must_use]
    pub fn owner(&self, key: &[u8]) -> Option<ServerId> {
        self.ring.owner(dunlin_store::route(key))
    }

    /// The listed servers.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerId> {
        let listed = self.servers.iter().filter(|(_, server)| server.is_listed());
        listed.map(|(id, _)| id).collect()
    }

    /// The name of a server in the list.
    #[must_use]
    pub fn name(&self, server: ServerId) -> Option<&str> {
        self.servers.get(server).map(|server| &**server.name())
    }

    /// Whether no session with a server is open, because the last one was lost or none could be
    /// made. Operations for such a server end at once, unless the program wants them to wait.
    #[must_use]
    pub fn is_down(&self, server: ServerId) -> bool {
        let server = self.servers.get(server);
        server.is_some_and(Server::is_down)
    }

    /// Whether a server is down, or its partition with this key: the last session with it was lost,
    /// or none could be made. Operations on the key at this server end at once, unless the program
    /// wants them to wait.
    #[must_use]
    pub fn is_key_down(&self, server: ServerId, key: &[u8]) -> bool {
        let server = self.servers.get(server);
        server.is_some_and(|it| it.is_down() || it.client().is_key_down(key))
    }

    /// The map of a server, once it is known.
    #[must_use]
    pub fn map(&self, server: ServerId) -> Option<&Map> {
        self.servers.get(server)?.client().map()
    }

    /// The state of each listed address, with its last error.
    pub fn addresses(&self) -> impl Iterator<Item = ServerView<'_>> {
        self.machine.addresses()
    }

    /// The number of operations that have not ended. A get of many keys counts once, and once more
    /// for each server that has not answered it.
    #[must_use]
    pub const fn under_way(&self) -> usize {
        self.jobs.live() + self.gets.live()
    }

    /// Takes the next end of an operation.
    pub fn next_end(&mut self) -> Option<FleetEnd> {
        self.ends.pop_front()
    }

    /// The time at which [`Self::on_time`] or [`Self::wish`] has work; [`Nanos::MAX`] if never.
    #[must_use]
    pub fn next_wakeup(&self) -> Nanos {
        if !self.ends.is_empty() || !self.strays.is_empty() {
            return Nanos::ZERO;
        }
        let servers = self.servers.iter().map(|(_, server)| server.next_wakeup());
        let machine = self.machine.next_wakeup().unwrap_or(Nanos::MAX);
        servers.min().unwrap_or(Nanos::MAX).min(machine)
    }

    // Events of the list.

    /// Takes a new list of servers. A server that is listed twice counts once. Operations at a
    /// server that is no longer listed go on; new ones go to the keys' new owners.
    ///
    /// Items do not move with their keys. A server that leaves the list keeps its items. If it
    /// comes back, gets find those old values, although clients may since have written new ones at
    /// other owners. So flush or restart a server before it comes back to a list.
    pub fn on_list<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, now: Nanos) {
        let names: Vec<&str> = names.into_iter().take(MAX_SERVERS).collect();
        self.machine.on_addresses(names.iter().copied(), now);
        for (_, server) in self.servers.iter_mut() {
            server.on_list(None);
        }
        for view in self.machine.addresses() {
            if names.contains(&view.name) {
                self.servers.list(view.name, view.id, self.options.client);
            }
        }
        let listed = self.servers.iter().filter(|(_, server)| server.is_listed());
        self.ring = Ring::new(listed.map(|(id, server)| (&**server.name(), id)));
    }

    /// Notes that a look-up has failed. The list stays as it is.
    pub fn on_lookup_failed(&mut self, now: Nanos) {
        self.machine.on_lookup_failed(now);
    }

    // Wishes, and events of sessions.

    /// An action that the owner of the endpoint must take now.
    pub fn wish(&mut self, now: Nanos) -> Option<Wish> {
        self.obey(now);
        if std::mem::take(&mut self.wants_names) {
            return Some(Wish::LookUp);
        }
        let mut all = self.servers.iter_mut();
        all.find_map(|(server, it)| {
            let endpoint = it.wish(now)?;
            Some(Wish::Session { server, endpoint })
        })
    }

    /// Notes the session that the owner is making for a wish. If its server has left meanwhile,
    /// [`Self::on_time`] ends the session.
    pub fn on_connecting(&mut self, server: ServerId, endpoint: u16, session: Session) {
        let it = self.servers.get_mut(server);
        match it.is_some_and(|it| it.drive().takes(endpoint, session)) {
            true => self.servers.on_session(session, server),
            false => self.strays.push(session),
        }
    }

    /// Notes that a wish for a session cannot be granted now.
    pub fn on_refused(&mut self, server: ServerId, endpoint: u16, cx: &mut Cx<'_>) {
        if let Some(it) = self.servers.get_mut(server) {
            it.on_refused(endpoint, cx.now());
        }
        self.settle(server, cx);
    }

    /// Takes an event of a session. Ignores events of sessions that are not the fleet's.
    pub fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        let (SessionEvent::Connected(session)
        | SessionEvent::Accepted(session)
        | SessionEvent::Closed { session, .. }) = event;
        let Some(server) = self.servers.of_session(session) else {
            return;
        };
        if matches!(event, SessionEvent::Closed { .. }) {
            self.servers.forget(session);
        }
        if let Some(it) = self.servers.get_mut(server) {
            if let SessionEvent::Closed { reason, .. } = event {
                it.on_closed(session, reason);
            }
            it.drive().on_session(event, cx);
        }
        self.settle(server, cx);
    }

    /// Takes the end of a call of the endpoint. Returns it if the call is not this fleet's.
    #[inline]
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        let server = client_of(done.tag).and_then(|number| self.servers.of_client(number));
        let Some(server) = server else {
            return Some(done);
        };
        let Some(it) = self.servers.get_mut(server) else {
            return Some(done);
        };
        let other = it.drive().on_done(done, cx);
        self.settle(server, cx);
        other
    }

    /// Does the work that is due. The owner calls it before it waits, and when
    /// [`Self::next_wakeup`] has come.
    pub fn on_time(&mut self, cx: &mut Cx<'_>) {
        self.obey(cx.now());
        for server in self.servers.ids() {
            if let Some(it) = self.servers.get_mut(server)
                && it.next_wakeup() <= cx.now()
            {
                it.drive().on_time(cx);
            }
            self.settle(server, cx);
        }
        for mut unused in self.servers.take_unused() {
            unused.drive().close(cx);
        }
        for stray in self.strays.drain(..) {
            // If it has already ended, there is nothing to do.
            let _ = cx.disconnect(stray);
        }
    }

    // Internals.

    /// Carries out the actions of the machine. They only make and end links, because the machine
    /// has no calls.
    fn obey(&mut self, now: Nanos) {
        while let Some(action) = self.machine.poll(now) {
            match action {
                Action::Connect { link, address, .. } => match self.servers.at(address) {
                    Some(server) => server.on_connect(link),
                    None => self.machine.on_closed(link, CloseReason::Refused, now),
                },
                Action::Disconnect { link } => {
                    if let Some(server) = self.servers.of_link(link) {
                        server.on_disconnect();
                    }
                }
                Action::LookUp => self.wants_names = true,
                Action::Send { .. } | Action::Cancel { .. } | Action::End { .. } => {
                    unreachable!("no call was begun")
                }
            }
        }
    }

    /// Reports changes of a server's link to the machine, and takes the ends of the server's
    /// operations.
    #[inline]
    pub(super) fn settle(&mut self, id: ServerId, cx: &mut Cx<'_>) {
        let Some(server) = self.servers.get_mut(id) else {
            return;
        };
        if let Some(change) = server.change() {
            let opened = Opened {
                // Two names of one process in the list count as two servers, each with its own
                // keys.
                server: id.place.into(),
                endpoint: 0,
                endpoints: 1,
                window: u32::MAX,
                draining: false,
            };
            match change {
                Change::Opened(link) => self.machine.on_opened(link, &opened, cx.now()),
                Change::Closed(link, reason) => self.machine.on_closed(link, reason, cx.now()),
            }
        }
        self.take_ends(id, cx);
    }
}
