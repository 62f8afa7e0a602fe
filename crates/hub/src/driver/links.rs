//! The links of a channel: the trunks that it shares, the attempts that wait for room there, and
//! the reasons for which links ended.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use dunlin_channel::{
    AddressId, AddressView, AttemptId, Facts, LinkId, Member, Opened, Reason, State, TrunkId,
};
use dunlin_core::{CloseReason, Nanos, RpcError};
use dunlin_nexus::{ConnectError, PeerServing};
use dunlin_wire::Ran;
use dunlin_wire::control::Serving;

use super::{Around, Driver, put};
use crate::board::{AddressState, ChannelState};
use crate::error::AddressError;
use crate::trunks::{self, Loss};

#[derive(Debug)]
struct Link {
    id: LinkId,
    address: AddressId,
    trunk: TrunkId,
    is_open: bool,
    waiting: VecDeque<AttemptId>,
}

/// The ends of the links to an address.
#[derive(Clone, Copy, Debug)]
struct Ends {
    address: AddressId,
    count: u32,
    /// The reason for the last one.
    error: AddressError,
    /// The number of endpoints that the server has announced last.
    endpoints: Option<u16>,
}

#[derive(Debug)]
pub(super) struct Links {
    /// The links, by their index.
    all: Vec<Option<Link>>,
    /// The ends of links, by the index of the address.
    ends: Vec<Option<Ends>>,
    /// The number of attempts that wait for any link.
    waiting: usize,
}

impl Links {
    pub(super) const fn new() -> Self {
        Self {
            all: Vec::new(),
            ends: Vec::new(),
            waiting: 0,
        }
    }

    fn get(&self, id: LinkId) -> Option<&Link> {
        let link = self.all.get(id.index())?.as_ref();
        link.filter(|link| link.id == id)
    }

    fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        let link = self.all.get_mut(id.index())?.as_mut();
        link.filter(|link| link.id == id)
    }

    fn remove(&mut self, id: LinkId) -> Option<Link> {
        let link = self.all.get_mut(id.index())?;
        let link = link.take_if(|link| link.id == id)?;
        self.waiting -= link.waiting.len();
        Some(link)
    }

    pub(super) fn trunk(&self, id: LinkId) -> Option<TrunkId> {
        self.get(id).map(|link| link.trunk)
    }

    pub(super) fn wait(&mut self, id: LinkId, attempt: AttemptId) {
        if let Some(link) = self.get_mut(id) {
            link.waiting.push_back(attempt);
            self.waiting += 1;
        }
    }

    pub(super) fn next_waiting(&mut self, id: LinkId) -> Option<AttemptId> {
        let next = self.get_mut(id)?.waiting.pop_front();
        self.waiting -= usize::from(next.is_some());
        next
    }

    pub(super) fn has_waiting(&self, id: LinkId) -> bool {
        self.get(id).is_some_and(|link| !link.waiting.is_empty())
    }

    pub(super) fn stop_waiting(&mut self, id: LinkId, attempt: AttemptId) {
        if let Some(link) = self.get_mut(id) {
            let before = link.waiting.len();
            link.waiting.retain(|waiting| *waiting != attempt);
            let gone = before - link.waiting.len();
            self.waiting -= gone;
        }
    }

    /// If no attempt waits for link `id`: an attempt that waits for another link to the same
    /// server.
    pub(super) fn waiting_beside(&self, id: LinkId) -> Option<AttemptId> {
        if self.waiting == 0 {
            return None;
        }
        let own = self.get(id).filter(|link| link.waiting.is_empty())?;
        let mut others = self.all.iter().flatten();
        others
            .find(|it| it.address == own.address && !it.waiting.is_empty())
            .and_then(|it| it.waiting.front().copied())
    }

    fn on_error(&mut self, address: AddressId, error: AddressError, endpoints: Option<u16>) {
        let before = self.ends(address);
        let ends = Ends {
            address,
            count: before.map_or(1, |it| it.count.wrapping_add(1)),
            error,
            endpoints: endpoints.or(before.and_then(|it| it.endpoints)),
        };
        put(&mut self.ends, address.index(), ends);
    }

    fn ends(&self, address: AddressId) -> Option<Ends> {
        let ends = self.ends.get(address.index()).copied().flatten();
        ends.filter(|ends| ends.address == address)
    }

    /// The number of links to an address that have ended.
    fn failures(&self, address: AddressId) -> u32 {
        self.ends(address).map_or(0, |ends| ends.count)
    }

    /// The last error of an address, in more detail than the machine has.
    fn error(&self, view: &AddressView<'_>) -> Option<AddressError> {
        let reason = match view.last_error? {
            Reason::Draining => return Some(AddressError::Draining),
            Reason::Closed(reason) => reason,
        };
        let ends = self.ends(view.id);
        Some(ends.map_or(AddressError::Session(reason), |ends| ends.error))
    }
}

/// Events of links.
impl Driver {
    /// The name of a link among all channels of the thread.
    pub(super) const fn member(&self, link: LinkId) -> Member {
        (self.id, link)
    }

    /// The first session of a link's trunk is ready.
    pub(crate) fn on_connected(&mut self, id: LinkId, facts: &Facts, around: &mut Around<'_>) {
        let Some(link) = self.links.get_mut(id).filter(|link| !link.is_open) else {
            return;
        };
        link.is_open = true;
        let (address, said) = (link.address, facts.said);
        let view = self.machine.addresses().find(|view| view.id == address);
        let mut server = DefaultHasher::new();
        view.map(|view| view.name).hash(&mut server);
        let opened = Opened {
            // If the process announces its services, two addresses of the process count as one
            // server.
            server: said.map_or_else(|| server.finish(), |said| said.process),
            endpoint: facts.endpoint.into(),
            endpoints: said.map_or(1, |said| said.serving.endpoints.into()),
            window: facts.window,
            draining: said.is_some_and(|said| said.serving.draining),
        };
        self.machine.on_opened(id, &opened, around.now);
        self.spread(id, around);
    }

    /// The server of a link has announced its services.
    pub(crate) fn on_serving(&mut self, id: LinkId, said: &PeerServing, now: Nanos) {
        // A link that is not open gets the services when it opens.
        if self.links.get(id).is_some_and(|link| link.is_open) {
            let Serving {
                draining,
                endpoints,
                ..
            } = said.serving;
            self.machine.on_serving(id, draining, endpoints.into(), now);
        }
    }

    /// The trunk of a link has broken, or could not be made.
    pub(crate) fn on_closed(&mut self, id: LinkId, loss: &Loss, around: &mut Around<'_>) {
        let Some(link) = self.links.remove(id) else {
            return;
        };
        self.links
            .on_error(link.address, loss.error, loss.endpoints);
        self.machine.on_closed(id, loss.reason, around.now);
        self.end_waiting(link, loss.reason, around.now);
    }

    fn end_waiting(&mut self, link: Link, reason: CloseReason, now: Nanos) {
        for attempt in link.waiting {
            self.never_sent(attempt, RpcError::SessionClosed(reason, Ran::No), now);
        }
    }

    pub(super) fn connect(
        &mut self,
        id: LinkId,
        address: AddressId,
        endpoint: Option<u32>,
        around: &mut Around<'_>,
    ) {
        let view = self.machine.addresses().find(|view| view.id == address);
        let Some(name) = view.map(|view| Box::<str>::from(view.name)) else {
            return;
        };
        let endpoint = match endpoint {
            Some(endpoint) => u16::try_from(endpoint).unwrap_or(u16::MAX - 1),
            None => self.any_endpoint(address, &name, around),
        };
        let place = (name, endpoint);
        let ends = &mut trunks::Ends(around.rpc);
        match around.trunks.join(place, self.member(id), ends) {
            Ok((trunk, facts)) => {
                let link = Link {
                    id,
                    address,
                    trunk,
                    is_open: false,
                    waiting: VecDeque::new(),
                };
                put(&mut self.links.all, id.index(), link);
                if let Some(facts) = facts {
                    self.on_connected(id, &facts, around);
                }
            }
            Err(error) => {
                let error = match error {
                    ConnectError::Failed(failure) => Some(AddressError::Connect(failure)),
                    ConnectError::Open(error) => Some(AddressError::Local(error)),
                    _ => None,
                };
                if let Some(error) = error {
                    self.links.on_error(address, error, None);
                }
                self.machine.on_closed(id, CloseReason::Refused, around.now);
            }
        }
    }

    /// The endpoint of a server for this channel's first link: the one that the channel names. If
    /// it names none, and the server has announced how many endpoints serve, different channels
    /// take different endpoints, and a channel tries another one after each link that has ended.
    /// Without an announcement, it is the first endpoint. A server announces its endpoints even if
    /// the endpoint of the link does not answer, so a stuck thread does not keep a channel from the
    /// others.
    fn any_endpoint(&self, address: AddressId, server: &str, around: &Around<'_>) -> u16 {
        if let Some(endpoint) = self.endpoint {
            return endpoint;
        }
        let announced = around.trunks.endpoints_of(server);
        let endpoints = announced.or(self.links.ends(address).and_then(|it| it.endpoints));
        let endpoints = endpoints.unwrap_or(1);
        let most = u16::try_from(self.endpoints_per_server).unwrap_or(u16::MAX);
        let endpoints = u32::from(endpoints.min(most).max(1));
        let turn = self.id.wrapping_add(self.links.failures(address));
        u16::try_from(turn % endpoints).unwrap_or(0)
    }

    pub(super) fn disconnect(&mut self, id: LinkId, around: &mut Around<'_>) {
        if let Some(link) = self.links.remove(id) {
            let member = self.member(id);
            let ends = &mut trunks::Ends(around.rpc);
            around.trunks.leave(link.trunk, member, ends);
            self.end_waiting(link, CloseReason::Disconnected, around.now);
        }
    }

    /// The state of the channel.
    pub(super) fn state(&self) -> ChannelState {
        let addresses = self.machine.addresses().map(|view| AddressState {
            address: view.name.to_owned(),
            state: view.state,
            last_error: self.links.error(&view),
        });
        let unknown = self
            .sources
            .unknown()
            .map(|(name, has_failed)| AddressState {
                address: name.to_owned(),
                state: State::Connecting,
                last_error: has_failed.then_some(AddressError::Name),
            });
        ChannelState {
            state: self.machine.state(),
            addresses: addresses.chain(unknown).collect(),
        }
    }

    pub(super) fn show(&mut self) {
        self.shown = Some(self.machine.version());
        self.board.show(self.state());
    }
}

#[cfg(test)]
mod tests;
