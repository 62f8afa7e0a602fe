//! An async client of several servers, with one channel to each endpoint. Any task of any runtime
//! may call, and clones share the channels. A channel handles sessions, repeats and deadlines;
//! these files choose the channel for a key, by the rules of a fleet.
//!
//! Invariants: an operation ends in the same way as the same operation of a
//! [`Fleet`](crate::Fleet); no task holds a lock while it waits; an operation keeps the list of
//! servers with which it began.
//!
//! | file | what it owns |
//! |---|---|
//! | `list.rs` | the servers that are listed now |
//! | `shared.rs` | the state that all clones of a client share |
//! | `server.rs` | a server: its channels and its map, and calls of it |
//! | `keyed.rs` | operations on one key |
//! | `many.rs` | gets of many keys |
//! | `whole.rs` | figures, flushes and scans of whole servers |

mod keyed;
mod list;
mod many;
mod server;
mod shared;
mod whole;

use std::sync::Arc;
use std::time::Duration;

use dunlin_hub::Hub;
use dunlin_store::Delta;

use crate::client::{Found, Item, Reply, check};
use crate::connection::ConnectionError;
use crate::error::Error;
use crate::fleet::{FleetOptions, ServerError, WhenDown};
use crate::wire::{Request, Store};
use list::Lists;
use many::all;
use server::{Failed, Server};
use shared::Shared;

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

impl Channels {
    /// Begins to connect to the servers, without waiting for the connections. An entry is
    /// `HOST:PORT`, which is one server, or `dns+HOST:PORT`, where each address of the name is a
    /// server. All clients must use the same server names; their order does not matter.
    ///
    /// This call looks up names after `dns+`, and waits for the result. Later look-ups run every
    /// `options.lookup`, or every 30 s, in a thread that the next operation starts. Items stay at
    /// their servers when the list changes, as [`Fleet::on_list`](crate::Fleet::on_list) explains.
    /// The channels look up the hosts of all other entries.
    ///
    /// # Errors
    /// [`ConnectionError::Address`]: the list is empty, an entry is not a host and a port, or a
    /// name after `dns+` has no address, so that the owners of keys are unknown.
    pub fn open<'a>(
        hub: &Hub,
        servers: impl IntoIterator<Item = &'a str>,
        options: FleetOptions,
    ) -> Result<Self, ConnectionError> {
        let patience = match options.when_down {
            WhenDown::Wait => options.client.deadline.into(),
            WhenDown::Fail | WhenDown::Miss => PATIENCE,
        };
        let lists = Lists::open(
            servers,
            hub.channel().patience(patience),
            options.client.first_endpoint,
            options.lookup.map(Duration::from),
        );
        let lists = lists.map_err(ConnectionError::Address)?;
        Ok(Self {
            shared: Arc::new(Shared::new(options, lists)),
        })
    }

    /// Reads the item of a key.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Item>, ServerError> {
        let found = self.run(&Request::Get { key }).await?.found()?;
        Ok(found.map(Found::into_item))
    }

    /// Reads the items of `keys`, in the same order. All servers that own some of them are asked at
    /// the same time.
    /// The error of an item is [`Error::MessageTooLong`], if its value fits into no message of its
    /// server.
    ///
    /// # Errors
    /// [`ServerError`] of one of the servers.
    pub async fn get_many(
        &self,
        keys: &[&[u8]],
    ) -> Result<Vec<Result<Option<Item>, Error>>, ServerError> {
        let list = self.shared.list();
        let mut groups: Vec<(&Arc<Server>, Vec<usize>)> = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            check(&Request::Get { key })?;
            let owner = list.owner(key).ok_or(Error::Unavailable)?;
            let group = groups.iter_mut().find(|(it, _)| Arc::ptr_eq(it, owner));
            match group {
                Some((_, group)) => group.push(at),
                None => groups.push((owner, vec![at])),
            }
        }
        let asked = groups.iter().map(|(server, group)| async {
            let keys: Vec<&[u8]> = group.iter().map(|at| keys[*at]).collect();
            let items = self.shared.many(server, &keys).await;
            items.map_err(|failed| server.error(failed.into()))
        });
        let mut items = vec![Ok(None); keys.len()];
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

    /// Deletes an item, if it has the given version. With `None`, deletes any version.
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
        self.count_with(key, delta, None).await
    }

    /// Like [`Self::count`], but only if the item has this version: [`Error::VersionDiffers`]
    /// otherwise.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the counter may have changed.
    pub async fn count_if(
        &self,
        key: &[u8],
        delta: Delta,
        version: u64,
    ) -> Result<(u64, u64), ServerError> {
        self.count_with(key, delta, Some(version)).await
    }

    /// Makes an item expire `lifetime` seconds from now, or never if `lifetime` is 0.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] it may have changed.
    pub async fn touch(&self, key: &[u8], lifetime: u32) -> Result<(), ServerError> {
        let touched = self.run(&Request::Touch { key, lifetime }).await;
        touched.map(|_| ())
    }

    async fn count_with(
        &self,
        key: &[u8],
        delta: Delta,
        if_version: Option<u64>,
    ) -> Result<(u64, u64), ServerError> {
        let request = Request::Count {
            key,
            delta,
            if_version,
        };
        Ok(self.run(&request).await?.counted()?)
    }

    async fn run(&self, request: &Request<'_>) -> Result<Reply, ServerError> {
        check(request)?;
        let list = self.shared.list();
        let server = list.owner(request.key()).ok_or(Error::Unavailable)?;
        match self.shared.keyed(server, request).await {
            Err(Failed::Down)
                if matches!(request, Request::Get { .. }) && self.shared.misses(server).await =>
            {
                Ok(Reply::Missing)
            }
            result => result.map_err(|failed| server.error(failed.into())),
        }
    }
}
