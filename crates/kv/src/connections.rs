//! A blocking client of several servers, with an endpoint of its own: each operation is one call. A
//! program that needs many operations in flight drives the fleet itself.

use std::time::Duration;

use dunlin_core::{Cx, Nanos};
use dunlin_nexus::{ConnectOptions, EndpointBuilder, Open, Rpc};
use dunlin_store::Delta;

use crate::client::{Found, Item, Reply, Token};
use crate::connection::{ConnectionError, draw_seed};
use crate::directory::Directory;
use crate::error::Error;
use crate::fleet::{Fleet, FleetEnd, FleetOptions, ServerError, ServerId, WhenDown, Wish};
use crate::wire::{Figures, HotKeys, Map, Request, Store, Whole};

/// Time between two look-ups of names.
const LOOKUP: Nanos = Nanos::from_secs(30);

/// An attempt to reach a server fails after this time, so that operations for it can end.
const ATTEMPT: Duration = Duration::from_secs(1);

/// How often a look-up under way is polled.
const GLANCE: Nanos = Nanos::from_millis(5);

/// Connections to several servers, over which the keys are spread.
///
/// An entry of the list is `HOST:PORT`, which is one server, or `dns+HOST:PORT`, where each address
/// of the name is a server. A server's name in the list decides which keys it owns, so all clients
/// must have the same names; their order does not matter. An item stays at its server when the list
/// changes, as [`Fleet::on_list`] explains.
///
/// ```no_run
/// use dunlin_kv::{Connections, FleetOptions, Store};
/// use dunlin_nexus::Nexus;
/// use dunlin_transport::auto::Auto;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nexus = Nexus::bind("0.0.0.0:0")?;
/// let endpoint = nexus.endpoint_builder::<Auto>();
/// let servers = ["10.0.0.1:31850", "10.0.0.2:31850", "10.0.0.3:31850"];
/// let mut kv = Connections::open(endpoint, servers, FleetOptions::DEFAULT)?;
/// kv.store(&Store::set(b"name", b"dunlin"))?;
/// assert_eq!(kv.get(b"name")?.expect("it was written").value(), b"dunlin");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connections<T: Open> {
    rpc: Rpc<T, Fleet>,
    directory: Directory,
    connect: ConnectOptions,
    tokens: u64,
}

impl<T: Open> Connections<T> {
    /// Makes an endpoint, and begins to connect to the servers.
    ///
    /// # Errors
    /// [`ConnectionError`]: the list is empty, no entry has an address, or a name after `dns+` has
    /// none, so that the owners of keys are unknown.
    pub fn open<'a>(
        endpoint: EndpointBuilder<T>,
        servers: impl IntoIterator<Item = &'a str>,
        options: FleetOptions,
    ) -> Result<Self, ConnectionError> {
        Self::open_with(endpoint, servers, options, ConnectOptions::default())
    }

    /// Like [`Self::open`], with options for the sessions. The fleet chooses their endpoints.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open_with<'a>(
        endpoint: EndpointBuilder<T>,
        servers: impl IntoIterator<Item = &'a str>,
        options: FleetOptions,
        connect: ConnectOptions,
    ) -> Result<Self, ConnectionError> {
        let directory = Directory::open(servers).map_err(ConnectionError::Address)?;
        let lookup = directory.may_change().then_some(LOOKUP);
        let options = FleetOptions {
            lookup: options.lookup.or(lookup),
            ..options
        };
        let built = endpoint.build(Fleet::new(options, draw_seed(), Nanos::ZERO));
        let mut rpc: Rpc<T, Fleet> = built.map_err(ConnectionError::Endpoint)?;
        rpc.on_completion(|fleet, done, cx| {
            if let Some(other) = fleet.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        rpc.on_session(|fleet, event, cx| fleet.on_session(event, cx));
        let patience = match options.when_down {
            WhenDown::Wait => connect.patience,
            WhenDown::Fail | WhenDown::Miss => connect.patience.min(ATTEMPT),
        };
        let mut connections = Self {
            rpc,
            directory,
            connect: ConnectOptions {
                patience,
                ..connect
            },
            tokens: 0,
        };
        connections.list();
        Ok(connections)
    }

    // Operations on keys.

    /// Reads the item of a key.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Found>, ServerError> {
        Ok(self.run(&Request::Get { key })?.found()?)
    }

    /// Reads the items of `keys`, in the same order. All servers that own some of them are asked at
    /// the same time.
    /// The error of an item is [`Error::MessageTooLong`], if its value fits into no message of its
    /// server.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn get_many(
        &mut self,
        keys: &[&[u8]],
    ) -> Result<Vec<Result<Option<Item>, Error>>, ServerError> {
        let token = self.token();
        let (fleet, mut cx) = self.rpc.with();
        fleet.begin_multi(keys, token, None, &mut cx)?;
        Ok(self.wait(token)?.items()?)
    }

    /// Writes an item, and returns its version.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the write may have happened.
    pub fn store(&mut self, store: &Store<'_>) -> Result<u64, ServerError> {
        Ok(self.run(&Request::Write(*store))?.written()?)
    }

    /// Deletes an item, if it has the given version. With `None`, deletes any version.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the item may have been deleted.
    pub fn delete(&mut self, key: &[u8], if_version: Option<u64>) -> Result<(), ServerError> {
        self.run(&Request::Delete { key, if_version }).map(|_| ())
    }

    /// Changes a counter, and returns its number and version.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the counter may have changed.
    pub fn count(&mut self, key: &[u8], delta: Delta) -> Result<(u64, u64), ServerError> {
        self.count_with(key, delta, None)
    }

    /// Like [`Self::count`], but only if the item has this version: [`Error::VersionDiffers`]
    /// otherwise.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] the counter may have changed.
    pub fn count_if(
        &mut self,
        key: &[u8],
        delta: Delta,
        version: u64,
    ) -> Result<(u64, u64), ServerError> {
        self.count_with(key, delta, Some(version))
    }

    /// Makes an item expire `lifetime` seconds from now, or never if `lifetime` is 0.
    ///
    /// # Errors
    /// [`ServerError`]; after [`Error::Unknown`] it may have changed.
    pub fn touch(&mut self, key: &[u8], lifetime: u32) -> Result<(), ServerError> {
        self.run(&Request::Touch { key, lifetime }).map(|_| ())
    }

    // Operations on servers.

    /// The listed servers.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerId> {
        self.rpc.app().servers()
    }

    /// The name of a server in the list; empty if it has left the list.
    #[must_use]
    pub fn name(&self, server: ServerId) -> String {
        self.rpc.app().name(server).unwrap_or_default().to_owned()
    }

    /// The map of a server.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn map(&mut self, server: ServerId) -> Result<Map, ServerError> {
        // A server sends its map before it answers any request.
        self.run_whole(server, 0, Whole::Figures)?;
        let map = self.rpc.app().map(server).cloned();
        Ok(map.ok_or(Error::Unavailable)?)
    }

    /// The figures of each partition of a server.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn figures(&mut self, server: ServerId) -> Result<Vec<Figures>, ServerError> {
        (0..self.map(server)?.partitions())
            .map(|partition| {
                Ok(self
                    .run_whole(server, partition, Whole::Figures)?
                    .figures()?)
            })
            .collect()
    }

    /// The keys that clients read most, for each partition of a server.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn hot_keys(&mut self, server: ServerId) -> Result<Vec<HotKeys>, ServerError> {
        (0..self.map(server)?.partitions())
            .map(|partition| Ok(self.run_whole(server, partition, Whole::Hot)?.hot()?))
            .collect()
    }

    /// Reads keys of a server's partition from a place on, like
    /// [`Connection::scan`](crate::Connection::scan).
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn scan(
        &mut self,
        server: ServerId,
        partition: u16,
        place: u64,
    ) -> Result<(Vec<Vec<u8>>, Option<u64>), ServerError> {
        Ok(self
            .run_whole(server, partition, Whole::Scan(place))?
            .keys()?)
    }

    /// Flushes each partition of each server in turn, like
    /// [`Connection::flush`](crate::Connection::flush) for one server.
    ///
    /// # Errors
    /// [`ServerError`]; some partitions may have been flushed.
    pub fn flush(&mut self, delay: u32) -> Result<(), ServerError> {
        for server in self.servers() {
            for partition in 0..self.map(server)?.partitions() {
                self.run_whole(server, partition, Whole::Flush(delay))?;
            }
        }
        Ok(())
    }

    // For programs that begin operations themselves.

    /// The fleet and its endpoint's context, for programs that begin operations themselves. After
    /// [`Self::turn`], [`Fleet::next_end`] returns the results of such operations. Their tokens
    /// must be below 2^63.
    pub fn with(&mut self) -> (&mut Fleet, Cx<'_>) {
        self.rpc.with()
    }

    /// The time of the endpoint's clock.
    pub fn now(&mut self) -> Nanos {
        self.rpc.now()
    }

    /// Runs one iteration of the endpoint. If there is nothing to do, it blocks, but not beyond
    /// `limit`. Afterwards the fleet has the results of operations that ended.
    pub fn turn(&mut self, limit: Nanos) {
        let limit = match self.directory.is_busy() {
            true => limit.min(self.rpc.now() + GLANCE),
            false => limit,
        };
        self.rpc.iterate(|fleet| fleet.next_wakeup().min(limit));
        match self.directory.poll() {
            Some(true) => self.list(),
            Some(false) => {
                let now = self.rpc.now();
                self.rpc.app_mut().on_lookup_failed(now);
            }
            None => {}
        }
        let (fleet, mut cx) = self.rpc.with();
        fleet.on_time(&mut cx);
        let now = cx.now();
        while let Some(wish) = self.rpc.app_mut().wish(now) {
            match wish {
                Wish::LookUp => self.directory.begin(),
                Wish::Session { server, endpoint } => self.connect(server, endpoint),
            }
        }
    }

    // Internals.

    fn list(&mut self) {
        let servers = self.directory.servers();
        let now = self.rpc.now();
        let names = servers.iter().map(String::as_str);
        self.rpc.app_mut().on_list(names, now);
    }

    fn connect(&mut self, server: ServerId, endpoint: u16) {
        let addresses = self.directory.addresses(&self.name(server));
        let options = ConnectOptions {
            endpoint: Some(endpoint),
            ..self.connect
        };
        let made = match addresses.is_empty() {
            true => None,
            false => self.rpc.connect_with(&addresses[..], &options).ok(),
        };
        let (fleet, mut cx) = self.rpc.with();
        match made {
            Some(session) => fleet.on_connecting(server, endpoint, session),
            None => fleet.on_refused(server, endpoint, &mut cx),
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(1 << 63 | self.tokens)
    }

    fn count_with(
        &mut self,
        key: &[u8],
        delta: Delta,
        if_version: Option<u64>,
    ) -> Result<(u64, u64), ServerError> {
        let request = Request::Count {
            key,
            delta,
            if_version,
        };
        Ok(self.run(&request)?.counted()?)
    }

    fn run(&mut self, request: &Request<'_>) -> Result<Reply, ServerError> {
        let token = self.token();
        let (fleet, mut cx) = self.rpc.with();
        fleet.begin(request, token, None, &mut cx)?;
        self.wait(token)
    }

    fn run_whole(
        &mut self,
        server: ServerId,
        partition: u16,
        whole: Whole,
    ) -> Result<Reply, ServerError> {
        let token = self.token();
        let (fleet, mut cx) = self.rpc.with();
        fleet.begin_whole((server, partition), whole, token, None, &mut cx)?;
        self.wait(token)
    }

    /// Runs until an operation has ended. Drops the results of other operations, so a program that
    /// uses [`Self::with`] takes its results before it calls anything that waits.
    fn wait(&mut self, token: Token) -> Result<Reply, ServerError> {
        loop {
            while let Some(end) = self.rpc.app_mut().next_end() {
                let FleetEnd {
                    token: other,
                    result,
                } = end;
                if other == token {
                    return result;
                }
            }
            self.turn(Nanos::MAX);
        }
    }
}
