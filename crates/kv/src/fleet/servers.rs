//! The servers of a fleet. Each keeps its place while it is listed or has operations in progress.
//! The place is also the client number in the tags of its calls.

use std::collections::BTreeMap;

use dunlin_channel::{AddressId, LinkId};
use dunlin_core::Session;

use super::server::Server;
use super::types::ServerId;
use crate::client::{MAX_CLIENTS, Options};

/// The most servers of a list; further ones are ignored. A channel's machine has the same limit.
pub(super) const MAX_SERVERS: usize = 1024;

// Servers that have left the list keep their places while their operations last.
const _: () = assert!(2 * MAX_SERVERS <= MAX_CLIENTS);
const _: () = assert!(MAX_SERVERS <= dunlin_channel::Config::DEFAULT.addresses);

#[derive(Default, Debug)]
pub(super) struct Servers {
    places: Vec<Option<Server>>,
    /// The number of servers that were ever listed.
    listed: u64,
    sessions: BTreeMap<Session, ServerId>,
}

impl Servers {
    pub(super) fn get(&self, id: ServerId) -> Option<&Server> {
        let server = self.places.get(usize::from(id.place))?.as_ref();
        server.filter(|server| server.id() == id)
    }

    pub(super) fn get_mut(&mut self, id: ServerId) -> Option<&mut Server> {
        let server = self.places.get_mut(usize::from(id.place))?.as_mut();
        server.filter(|server| server.id() == id)
    }

    /// The server whose client has this number.
    #[inline]
    pub(super) fn of_client(&self, number: u16) -> Option<ServerId> {
        let server = self.places.get(usize::from(number))?.as_ref();
        server.map(Server::id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ServerId, &Server)> {
        let servers = self.places.iter().flatten();
        servers.map(|server| (server.id(), server))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (ServerId, &mut Server)> {
        let servers = self.places.iter_mut().flatten();
        servers.map(|server| (server.id(), server))
    }

    /// The places in use, in order.
    pub(super) fn ids(&self) -> Vec<ServerId> {
        self.iter().map(|(id, _)| id).collect()
    }

    /// Lists a server, which may still have a place from an earlier list.
    pub(super) fn list(&mut self, name: &str, address: AddressId, options: Options) {
        if let Some((_, server)) = self.iter_mut().find(|(_, it)| &**it.name() == name) {
            return server.on_list(Some(address));
        }
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        // If all places are in use, because thousands of servers have just left, the server is not
        // listed.
        if place < MAX_CLIENTS
            && let Ok(number) = u16::try_from(place)
        {
            let id = ServerId {
                place: number,
                before: self.listed,
            };
            self.listed += 1;
            self.places[place] = Some(Server::new(id, name, address, options));
        }
    }

    /// Removes the servers that have left the list and have no operations in progress.
    pub(super) fn take_unused(&mut self) -> Vec<Server> {
        let unused = self.places.iter_mut();
        unused
            .filter_map(|place| place.take_if(|server| server.may_go()))
            .collect()
    }

    pub(super) fn at(&mut self, address: AddressId) -> Option<&mut Server> {
        let mut all = self.iter_mut();
        all.find_map(|(_, server)| (server.is_listed() && server.is_at(address)).then_some(server))
    }

    pub(super) fn of_link(&mut self, link: LinkId) -> Option<&mut Server> {
        let mut all = self.iter_mut();
        all.find_map(|(_, server)| server.has_link(link).then_some(server))
    }

    pub(super) fn on_session(&mut self, session: Session, server: ServerId) {
        self.sessions.insert(session, server);
    }

    pub(super) fn of_session(&self, session: Session) -> Option<ServerId> {
        self.sessions.get(&session).copied()
    }

    pub(super) fn forget(&mut self, session: Session) {
        self.sessions.remove(&session);
    }
}
