//! A blocking client with an endpoint of its own: each operation is one call. A program that needs
//! many operations in flight drives the client's machine itself.

use std::net::{SocketAddr, ToSocketAddrs};
use std::{fmt, io};

use dunlin_core::{Counters, Cx, Nanos};
use dunlin_nexus::{ConnectOptions, EndpointBuilder, EndpointError, Open, Rpc};
use dunlin_store::Delta;

use crate::client::{Client, End, Found, Item, Options, Reply, Token};
use crate::error::Error;
use crate::wire::{Figures, Map, Request, Store, Whole};

/// A connection to one server.
///
/// ```
/// use dunlin_kv::store::{Config, Mode, Region, Seed, Table};
/// use dunlin_kv::{Connection, Map, Options, Partition, Store, serve};
/// use dunlin_nexus::{Nexus, Rpc};
/// use dunlin_transport::shm::Shm;
/// # use std::sync::atomic::{AtomicBool, Ordering};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let address = nexus.address();
/// # let stop = std::sync::Arc::new(AtomicBool::new(false));
/// # let stopped = stop.clone();
/// # let server_nexus = nexus.clone();
/// let server = std::thread::spawn(move || {
///     let config = Config { mode: Mode::Cache, seed: Seed::new([17, 4]), first_version: 1 };
///     let table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
///     let partition = Partition::new(table, Map::new(7, Mode::Cache, [0]).unwrap(), 0);
/// #   let nexus = server_nexus;
///     let mut rpc: Rpc<Shm, Partition> = nexus.endpoint(partition).unwrap();
///     serve(&mut rpc);
///     rpc.run_until(|_| stopped.load(Ordering::Relaxed));
/// });
///
/// let endpoint = nexus.endpoint_builder::<Shm>().index(9);
/// let mut kv = Connection::open(endpoint, address, Options::DEFAULT)?;
/// let version = kv.store(&Store::set(b"name", b"dunlin"))?;
/// let item = kv.get(b"name")?.expect("it was written");
/// assert_eq!((item.value(), item.version()), (&b"dunlin"[..], version));
/// # stop.store(true, Ordering::Relaxed);
/// # server.join().unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connection<T: Open> {
    rpc: Rpc<T, Client>,
    addresses: Vec<SocketAddr>,
    connect: ConnectOptions,
    tokens: u64,
}

/// A connection cannot be opened.
#[derive(Debug)]
pub enum ConnectionError {
    /// The text is not an address, or its name cannot be resolved.
    Address(io::Error),
    /// The endpoint cannot be made.
    Endpoint(EndpointError),
}

impl<T: Open> Connection<T> {
    /// Makes an endpoint, and begins to connect to the server whose nexus is at `address`. Each
    /// operation waits for a session until its deadline.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open(
        endpoint: EndpointBuilder<T>,
        address: impl ToSocketAddrs,
        options: Options,
    ) -> Result<Self, ConnectionError> {
        Self::open_with(endpoint, address, options, ConnectOptions::default())
    }

    /// Like [`Self::open`], with options for the sessions. The client chooses their endpoints.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open_with(
        endpoint: EndpointBuilder<T>,
        address: impl ToSocketAddrs,
        options: Options,
        connect: ConnectOptions,
    ) -> Result<Self, ConnectionError> {
        let addresses = address
            .to_socket_addrs()
            .map_err(ConnectionError::Address)?;
        let options = Options {
            seed: draw_seed(),
            ..options
        };
        let built = endpoint.build(Client::new(options));
        let mut rpc: Rpc<T, Client> = built.map_err(ConnectionError::Endpoint)?;
        rpc.on_completion(|client, done, cx| {
            if let Some(other) = client.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        rpc.on_session(|client, event, cx| client.on_session(event, cx));
        Ok(Self {
            rpc,
            addresses: addresses.collect(),
            connect,
            tokens: 0,
        })
    }

    /// Reads the item of a key.
    ///
    /// # Errors
    /// [`Error`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Found>, Error> {
        self.run(&Request::Get { key })?.found()
    }

    /// Reads the items of `keys`, in the same order. The keys may belong to different partitions.
    /// The error of an item is [`Error::MessageTooLong`], if its value fits into no message of its
    /// server.
    ///
    /// # Errors
    /// [`Error`].
    pub fn get_many(&mut self, keys: &[&[u8]]) -> Result<Vec<Result<Option<Item>, Error>>, Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin_multi(keys, token, None, &mut cx)?;
        self.wait(token)?.items()
    }

    /// Writes an item, and returns its version.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the write may have happened.
    pub fn store(&mut self, store: &Store<'_>) -> Result<u64, Error> {
        self.run(&Request::Write(*store))?.written()
    }

    /// Deletes an item, if it has the given version. With `None`, deletes any version.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the item may have been deleted.
    pub fn delete(&mut self, key: &[u8], if_version: Option<u64>) -> Result<(), Error> {
        self.run(&Request::Delete { key, if_version }).map(|_| ())
    }

    /// Changes a counter, and returns its number and version.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the counter may have changed.
    pub fn count(&mut self, key: &[u8], delta: Delta) -> Result<(u64, u64), Error> {
        self.count_with(key, delta, None)
    }

    /// Like [`Self::count`], but only if the item has this version: [`Error::VersionDiffers`]
    /// otherwise.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the counter may have changed.
    pub fn count_if(
        &mut self,
        key: &[u8],
        delta: Delta,
        version: u64,
    ) -> Result<(u64, u64), Error> {
        self.count_with(key, delta, Some(version))
    }

    /// Makes an item expire `lifetime` seconds from now, or never if `lifetime` is 0.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] it may have changed.
    pub fn touch(&mut self, key: &[u8], lifetime: u32) -> Result<(), Error> {
        self.run(&Request::Touch { key, lifetime }).map(|_| ())
    }

    /// The server's map.
    ///
    /// # Errors
    /// [`Error`] if no server answers before the client's deadline.
    pub fn map(&mut self) -> Result<Map, Error> {
        // The server sends the map before it answers any request.
        self.run_whole(0, Whole::Figures)?;
        self.rpc.app().map().cloned().ok_or(Error::Unavailable)
    }

    /// The figures of each partition.
    ///
    /// # Errors
    /// [`Error`].
    pub fn figures(&mut self) -> Result<Vec<Figures>, Error> {
        let partitions = self.map()?.partitions();
        (0..partitions)
            .map(|partition| self.run_whole(partition, Whole::Figures)?.figures())
            .collect()
    }

    /// Reads keys of a partition from a place on. Returns them with the next place, or with `None`
    /// at the end. A scan begins at place 0. It shows each item that exists during the whole scan,
    /// some of them twice if the table grows meanwhile.
    ///
    /// # Errors
    /// [`Error`]. After a restart of the server, earlier places are meaningless.
    pub fn scan(
        &mut self,
        partition: u16,
        place: u64,
    ) -> Result<(Vec<Vec<u8>>, Option<u64>), Error> {
        self.run_whole(partition, Whole::Scan(place))?.keys()
    }

    /// Flushes each partition in turn. A partition deletes, `delay` seconds after it gets the
    /// request, all items written before that moment.
    ///
    /// # Errors
    /// [`Error`]; some partitions may have been flushed.
    pub fn flush(&mut self, delay: u32) -> Result<(), Error> {
        for partition in 0..self.map()?.partitions() {
            self.run_whole(partition, Whole::Flush(delay))?;
        }
        Ok(())
    }

    /// The machine and its endpoint, for programs that begin operations themselves. [`Self::turn`]
    /// brings the ends of such operations. Their tokens must be below 2^63.
    pub fn with(&mut self) -> (&mut Client, Cx<'_>) {
        self.rpc.with()
    }

    /// Runs one iteration of the endpoint. If there is nothing to do, it blocks, but not beyond
    /// `limit`. Afterwards the machine has the results of operations that ended.
    pub fn turn(&mut self, limit: Nanos) {
        self.rpc.iterate(|client| client.next_wakeup().min(limit));
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        let now = cx.now();
        while let Some(index) = self.rpc.app_mut().wish(now) {
            let options = ConnectOptions {
                endpoint: Some(index),
                ..self.connect
            };
            match self.rpc.connect_with(&self.addresses[..], &options) {
                Ok(session) => self.rpc.app_mut().on_connecting(index, session),
                Err(_) => self.rpc.app_mut().on_refused(index, now),
            }
        }
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.rpc.counters()
    }

    /// The time of the endpoint's clock.
    pub fn now(&mut self) -> Nanos {
        self.rpc.now()
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
    ) -> Result<(u64, u64), Error> {
        let request = Request::Count {
            key,
            delta,
            if_version,
        };
        self.run(&request)?.counted()
    }

    fn run(&mut self, request: &Request<'_>) -> Result<Reply, Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin(request, token, None, &mut cx)?;
        self.wait(token)
    }

    fn run_whole(&mut self, partition: u16, whole: Whole) -> Result<Reply, Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin_whole(partition, whole, token, None, &mut cx)?;
        self.wait(token)
    }

    /// Runs until an operation has ended. Drops the results of other operations, so a program that
    /// uses [`Self::with`] takes its results before it calls anything that waits.
    fn wait(&mut self, token: Token) -> Result<Reply, Error> {
        loop {
            self.turn(Nanos::MAX);
            while let Some(End {
                token: other,
                result,
            }) = self.rpc.app_mut().next_end()
            {
                if other == token {
                    return result;
                }
            }
        }
    }
}

/// A seed from the system, for the times of repeats.
pub(crate) fn draw_seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(error) => write!(f, "the address cannot be resolved: {error}"),
            Self::Endpoint(error) => write!(f, "the endpoint cannot be made: {error}"),
        }
    }
}

impl std::error::Error for ConnectionError {}
