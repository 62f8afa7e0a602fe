//! The servers that are listed now. `HOST:PORT` is one server, whose channels look up its name.
//! Each address of `dns+HOST:PORT` is a separate server, as in a [`Directory`].
//!
//! The client has no task of its own. An operation that finds a look-up due starts it in a thread,
//! and a later operation takes its result. Operations in flight keep the servers with which they
//! began.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dunlin_hub::{ChannelBuilder, ChannelError};

use super::server::Server;
use crate::directory::{Directory, EACH};
use crate::fleet::Ring;

/// Time between two look-ups, unless the options set another.
const LOOKUP: Duration = Duration::from_secs(30);

/// Listed servers, and a ring that finds the owner of a key among them.
#[derive(Debug)]
pub(super) struct List {
    pub(super) servers: Vec<Arc<Server>>,
    ring: Ring<usize>,
}

/// The list of servers, which look-ups change.
#[derive(Debug)]
pub(super) struct Lists {
    /// Opens channels to new addresses.
    builder: ChannelBuilder,
    /// The index of the endpoint at which each server is first asked for its map.
    first: u16,
    /// Servers that always stay listed.
    fixed: Vec<String>,
    lookup: Duration,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    list: Arc<List>,
    /// Names whose addresses are servers; `None` if the list has no such name.
    directory: Option<Directory>,
    /// The time of the next look-up.
    due: Instant,
}

impl List {
    fn new(servers: Vec<Arc<Server>>) -> Arc<Self> {
        let names = servers.iter().enumerate();
        let ring = Ring::new(names.map(|(at, server)| (server.name(), at)));
        Arc::new(Self { servers, ring })
    }

    /// The owner of a key; `None`: no server is listed.
    pub(super) fn owner(&self, key: &[u8]) -> Option<&Arc<Server>> {
        let owner = self.ring.owner(dunlin_store::route(key))?;
        Some(&self.servers[owner])
    }

    /// The server with this name.
    pub(super) fn named(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|it| it.name() == name)
    }
}

impl Lists {
    /// Opens channels to all servers. Looks up the names after `dns+`, and waits for the result.
    ///
    /// # Errors
    /// An entry is not a host and a port, the list is empty, or a name after `dns+` has no address,
    /// so that the owners of keys are unknown.
    pub(super) fn open<'a>(
        entries: impl IntoIterator<Item = &'a str>,
        builder: ChannelBuilder,
        first: u16,
        lookup: Option<Duration>,
    ) -> std::io::Result<Self> {
        let (many, fixed): (Vec<&str>, Vec<&str>) =
            entries.into_iter().partition(|it| it.starts_with(EACH));
        let directory = match (many.is_empty(), fixed.is_empty()) {
            (true, false) => None,
            // `Directory::open` reports a list without any server as an error.
            _ => Some(Directory::open(many)?),
        };
        let lists = Self {
            builder,
            first,
            fixed: fixed.into_iter().map(str::to_owned).collect(),
            lookup: lookup.unwrap_or(LOOKUP),
            now: Mutex::new(Now {
                list: List::new(Vec::new()),
                directory,
                due: Instant::now(),
            }),
        };
        {
            let mut now = lists.lock();
            lists.rebuild(&mut now).map_err(std::io::Error::other)?;
            now.due = Instant::now() + lists.lookup;
        }
        Ok(lists)
    }

    /// The present servers. Starts a look-up that is due, and takes the result of a finished one.
    pub(super) fn current(&self) -> Arc<List> {
        let mut now = self.lock();
        let Some(directory) = &mut now.directory else {
            return Arc::clone(&now.list);
        };
        let ended = directory.poll();
        let is_idle = !directory.is_busy();
        if ended == Some(true) {
            // If the hub has ended, a new channel cannot be opened and its server is not listed.
            // Calls to the other servers would not run then either.
            let _ = self.rebuild(&mut now);
        }
        let time = Instant::now();
        if is_idle && time >= now.due {
            now.due = time + self.lookup;
            if let Some(directory) = &mut now.directory {
                directory.begin();
            }
        }
        Arc::clone(&now.list)
    }

    /// Makes a new list, which keeps servers of the previous list that are still listed.
    fn rebuild(&self, now: &mut Now) -> Result<(), ChannelError> {
        let found = now.directory.as_ref().map(Directory::servers);
        let mut names = self.fixed.clone();
        names.extend(found.unwrap_or_default());
        names.sort_unstable();
        names.dedup();
        let server = |name: &String| match now.list.named(name) {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let builder = self.builder.clone().address(name.as_str());
                Server::open(name, builder, self.first).map(Arc::new)
            }
        };
        let servers = names.iter().map(server);
        now.list = List::new(servers.collect::<Result<_, ChannelError>>()?);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
