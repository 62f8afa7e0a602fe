//! The servers that are listed now. `HOST:PORT` is one server, whose name its channels look up;
//! each address of `dns+HOST:PORT` is a server of its own, as in a [`Directory`].
//!
//! The client has no task of its own: an operation that finds a look-up due begins it, in a thread,
//! and a later operation takes its result. Operations that are under way keep the servers with
//! which they began.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dunlin_hub::{ChannelBuilder, ChannelError};

use super::server::Server;
use crate::directory::{Directory, EACH};
use crate::fleet::Ring;

/// Time between two look-ups, unless the program has chosen another.
const LOOKUP: Duration = Duration::from_secs(30);

/// Listed servers, and the owners of keys among them.
#[derive(Debug)]
pub(super) struct List {
    pub(super) servers: Vec<Arc<Server>>,
    ring: Ring<usize>,
}

/// The list, which look-ups change.
#[derive(Debug)]
pub(super) struct Lists {
    /// Opens channels, to addresses that it does not have yet.
    builder: ChannelBuilder,
    /// The endpoint of each server that is asked for the map first.
    first: u16,
    /// Servers that stay listed.
    fixed: Vec<String>,
    lookup: Duration,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    list: Arc<List>,
    /// Names whose addresses are servers; `None`: the list has none.
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
    /// Opens channels to all servers. Looks names after `dns+` up, and waits for that.
    ///
    /// # Errors
    /// An entry is not a host and a port, the list is empty, or a name after `dns+` has no address,
    /// so that it is not known which servers own the keys.
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
            // A list without any server is an error there.
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

    /// The servers now. Begins a look-up that is due, and takes the result of one that has ended.
    pub(super) fn current(&self) -> Arc<List> {
        let mut now = self.lock();
        let Some(directory) = &mut now.directory else {
            return Arc::clone(&now.list);
        };
        let ended = directory.poll();
        let is_idle = !directory.is_busy();
        if ended == Some(true) {
            // A server whose channel cannot be opened, because the hub has ended, stays away. Then
            // no call of the others would run either.
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

    /// Makes the list anew, with the servers of the one before that are still listed.
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
