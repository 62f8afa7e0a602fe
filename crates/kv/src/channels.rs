//! An async client of several servers, over one channel for each endpoint: any task of any runtime
//! may call, and clones share the channels. A channel decides about sessions, repeats and
//! deadlines; these files decide which channel gets a key, as a fleet does.
//!
//! Invariants: an operation ends as the same operation of a [`Fleet`](crate::Fleet) does; no task
//! holds a lock while it waits.
//!
//! | file | what it owns |
//! |---|---|
//! | `server.rs` | a server: its channels and its map, and calls of it |
//! | `keyed.rs` | operations on one key |
//! | `many.rs` | gets of many keys |

mod keyed;
mod many;
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dunlin_hub::{ChannelError, Hub};
use dunlin_store::{Delta, Mode};

use crate::client::{Found, Item, Reply, check};
use crate::error::Error;
use crate::fleet::{FleetOptions, Ring, ServerError, WhenDown};
use crate::wire::{Request, Store};
use many::all;
use server::Server;

/// How long a call waits for a server that may still be connecting.
const PATIENCE: Duration = Duration::from_secs(1);

/// Channels to several servers, over which the keys are spread.
///
/// ```no_run
/// use dunlin_hub::Hub;
/// use dunlin_kv::{Channels, FleetOptions, Store};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let hub = Hub::builder().start()?;
/// let kv = Channels::open(&hub, ["10.0.0.1:31850", "10.0.0.2:31850"], FleetOptions::DEFAULT)?;
/// kv.store(&Store::set(b"name", b"dunlin")).await?;
/// let item = kv.get(b"name").await?.expect("it was written");
/// assert_eq!(item.value, b"dunlin");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Channels {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: FleetOptions,
    servers: Vec<Server>,
    ring: Ring<usize>,
}

impl Channels {
    /// Begins to connect to each server, `HOST:PORT`, and does not wait until it has connected. All
    /// clients must name the servers alike; their order does not matter. Names are looked up as
    /// channels do it; `options.lookup` is not used.
    ///
    /// # Errors
    /// An entry is not a host and a port.
    pub fn open<'a>(
        hub: &Hub,
        servers: impl IntoIterator<Item = &'a str>,
        options: FleetOptions,
    ) -> Result<Self, ChannelError> {
        let patience = match options.when_down {
            WhenDown::Wait => options.client.deadline.into(),
            WhenDown::Fail | WhenDown::Miss => PATIENCE,
        };
        let open = |name: &'a str| {
            let builder = hub.channel().address(name).patience(patience);
            Server::open(name, builder, options.client.first_endpoint)
        };
        let servers: Vec<Server> = servers
            .into_iter()
            .map(open)
            .collect::<Result<_, ChannelError>>()?;
        let names = servers.iter().enumerate();
        let ring = Ring::new(names.map(|(at, server)| (server.name(), at)));
        let shared = Shared {
            options,
            ring,
            servers,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The item of a key.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Item>, ServerError> {
        let found = self.run(&Request::Get { key }).await?.found()?;
        Ok(found.map(Found::into_item))
    }

    /// The items of `keys`, in the same order. All servers that own some of them are asked at the
    /// same time.
    ///
    /// # Errors
    /// [`ServerError`], of one of the servers.
    pub async fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Item>>, ServerError> {
        let mut groups: Vec<(&Server, Vec<usize>)> = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            check(&Request::Get { key })?;
            let owner = self.shared.owner(key)?;
            let group = groups.iter_mut().find(|(it, _)| std::ptr::eq(*it, owner));
            match group {
                Some((_, group)) => group.push(at),
                None => groups.push((owner, vec![at])),
            }
        }
        let asked = groups.iter().map(|(server, group)| async {
            let keys: Vec<&[u8]> = group.iter().map(|at| keys[*at]).collect();
            let items = self.shared.many(server, &keys).await;
            items.map_err(|error| server.error(error))
        });
        let mut items = vec![None; keys.len()];
        for ((_, group), found) in groups.iter().zip(all(asked).await) {
            for (at, item) in group.iter().zip(found?) {
                items[*at] = item;
            }
        }
        Ok(items)
    }

    /// Writes an item, and returns its version.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the write may have happened.
    pub async fn store(&self, store: &Store<'_>) -> Result<u64, ServerError> {
        Ok(self.run(&Request::Write(*store)).await?.written()?)
    }

    /// Deletes an item, if it has the given version (or any, with `None`).
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the item may have been deleted.
    pub async fn delete(&self, key: &[u8], if_version: Option<u64>) -> Result<(), ServerError> {
        let deleted = self.run(&Request::Delete { key, if_version }).await;
        deleted.map(|_| ())
    }

    /// Changes a counter, and returns its number and version.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the counter may have changed.
    pub async fn count(&self, key: &[u8], delta: Delta) -> Result<(u64, u64), ServerError> {
        let request = Request::Count {
            key,
            delta,
            if_version: None,
        };
        Ok(self.run(&request).await?.counted()?)
    }

    /// Makes an item expire `lifetime` seconds from now, or never if `lifetime` is 0.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] it may have changed.
    pub async fn touch(&self, key: &[u8], lifetime: u32) -> Result<(), ServerError> {
        let touched = self.run(&Request::Touch { key, lifetime }).await;
        touched.map(|_| ())
    }

    async fn run(&self, request: &Request<'_>) -> Result<Reply, ServerError> {
        check(request)?;
        let server = self.shared.owner(request.key())?;
        match self.shared.keyed(server, request).await {
            Err(Error::Unavailable)
                if matches!(request, Request::Get { .. }) && self.shared.misses(server).await =>
            {
                Ok(Reply::Missing)
            }
            result => result.map_err(|error| server.error(error)),
        }
    }
}

impl Shared {
    fn owner(&self, key: &[u8]) -> Result<&Server, ServerError> {
        let owner = self.ring.owner(dunlin_store::route(key));
        let owner = owner.ok_or(Error::Unavailable)?;
        Ok(&self.servers[owner])
    }

    /// Whether a get for a server that is down finds nothing, as it does if the server is a cache.
    /// The mode of a server that was never reached is that of the others. If none was reached yet,
    /// this asks all of them; without an answer, the get fails.
    async fn misses(&self, server: &Server) -> bool {
        if self.options.when_down != WhenDown::Miss {
            return false;
        }
        let known = || {
            let others = || self.servers.iter().find_map(Server::mode);
            server.mode().or_else(others)
        };
        if known().is_none() {
            let deadline = self.deadline();
            all(self.servers.iter().map(|it| self.map(it, deadline))).await;
        }
        known() == Some(Mode::Cache)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from(self.options.client.deadline)
    }
}
