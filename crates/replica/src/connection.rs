//! A blocking client with an endpoint of its own: each operation is one call. A program that needs
//! many operations in flight drives the client's machine itself.

use dunlin_nexus::{ConnectOptions, EndpointBuilder, EndpointError, Open, Rpc};

use std::time::Duration;

use crate::client::{Change, Client, ClientOptions, Error, Token};
use crate::wire::{Answer, Compare, Event, Found, Write};

/// A connection to a cluster.
///
/// ```
/// use dunlin_core::Nanos;
/// use dunlin_nexus::{ConnectOptions, Nexus};
/// use dunlin_replica::{
///     ClientOptions, Compare, Connection, Driver, Member, Members, Options, Replica, Write,
/// };
/// use dunlin_transport::shm::Shm;
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicBool, Ordering};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let address = nexus.address().to_string();
/// let members = Members::new([Member { id: 17, address: address.clone() }])?;
/// # let stop = Arc::new(AtomicBool::new(false));
/// # let (stopped, server_nexus) = (stop.clone(), nexus.clone());
/// let server = std::thread::spawn(move || {
///     let mut replica = Replica::new(17, Options::DEFAULT);
///     replica.on_bootstrap(members).unwrap();
/// #   let nexus = server_nexus;
///     let endpoint = nexus.endpoint_builder::<Shm>().index(0);
///     let mut driver = Driver::new(endpoint, replica, ConnectOptions::default()).unwrap();
/// #   while !stopped.load(Ordering::Relaxed) {
///     driver.turn(Nanos::MAX);
/// #   }
/// });
///
/// let endpoint = nexus.endpoint_builder::<Shm>().index(9);
/// let mut cluster = Connection::open(endpoint, [address], ClientOptions::DEFAULT)?;
/// let version = cluster.put(b"name", b"dunlin")?;
/// assert_eq!(cluster.get(b"name")?, Some((version, b"dunlin".to_vec())));
/// assert_eq!(cluster.compare_and_set(b"name", 1, b"x")?, Err(version));
/// assert_eq!(cluster.delete(b"name")?, version);
///
/// let write = |key, value| Write::Put { key, value, lifetime: 0 };
/// let both = [write(b"user/1", b"a"), write(b"user/2", b"b")];
/// let free = [Compare { key: b"user/1", version: 0 }];
/// assert!(cluster.transact(&free, &both)?.is_ok());
/// assert_eq!(cluster.transact(&free, &both)?, Err(0), "the first compare does not fit");
/// let (items, more) = cluster.range(b"user/", b"", 10)?;
/// assert_eq!((items.len(), more), (2, false));
/// # stop.store(true, Ordering::Relaxed);
/// # server.join().unwrap();
/// # Ok(())
/// # }
/// ```
pub struct Connection<T: Open> {
    rpc: Rpc<T, Client>,
    connect: ConnectOptions,
    tokens: u64,
}

impl<T: Open> Connection<T> {
    /// Makes an endpoint, and begins to connect to the replicas at these addresses. Each operation
    /// waits for a leader until its deadline.
    ///
    /// # Errors
    /// The endpoint cannot be made.
    pub fn open(
        endpoint: EndpointBuilder<T>,
        addresses: impl IntoIterator<Item = String>,
        options: ClientOptions,
    ) -> Result<Self, EndpointError> {
        Self::open_with(endpoint, addresses, options, ConnectOptions::default())
    }

    /// Like [`Self::open`], with options for the sessions.
    ///
    /// # Errors
    /// The endpoint cannot be made.
    pub fn open_with(
        endpoint: EndpointBuilder<T>,
        addresses: impl IntoIterator<Item = String>,
        options: ClientOptions,
        connect: ConnectOptions,
    ) -> Result<Self, EndpointError> {
        let mut rpc: Rpc<T, Client> = endpoint.build(Client::new(addresses, options))?;
        rpc.on_completion(|client, done, cx| {
            if let Some(other) = client.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        rpc.on_session(|client, event, cx| client.on_session(event, cx));
        Ok(Self {
            rpc,
            connect,
            tokens: 0,
        })
    }

    /// Reads the version and value of a key.
    ///
    /// # Errors
    /// [`Error`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin_get(key, token, None, &mut cx)?;
        match self.wait(token)? {
            Answer::Found(version, value) => Ok(Some((version, value))),
            _ => Ok(None),
        }
    }

    /// Writes a key, and returns its version.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the write may happen.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<u64, Error> {
        match self.change(key, Change::Put(value.to_vec()))? {
            Answer::Written(version) => Ok(version),
            _ => Err(Error::Incompatible),
        }
    }

    /// Removes a key, and returns the version that it had, or 0 if it had no item.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the key may be removed.
    pub fn delete(&mut self, key: &[u8]) -> Result<u64, Error> {
        match self.change(key, Change::Delete)? {
            Answer::Deleted(version) => Ok(version),
            _ => Err(Error::Incompatible),
        }
    }

    /// Writes a key if its item has the expected version; 0 stands for no item. Returns the new
    /// version, or the item's actual version as an error.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the write may happen.
    pub fn compare_and_set(
        &mut self,
        key: &[u8],
        version: u64,
        value: &[u8],
    ) -> Result<Result<u64, u64>, Error> {
        match self.change(key, Change::CompareAndSet(version, value.to_vec()))? {
            Answer::Written(version) => Ok(Ok(version)),
            Answer::Differs(version) => Ok(Err(version)),
            _ => Err(Error::Incompatible),
        }
    }

    /// Writes a key for a time, and returns its version. The log's time counts: it passes only
    /// while the cluster has a leader, so the item may stay longer, but is never removed early.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the write may happen.
    pub fn put_for(&mut self, key: &[u8], value: &[u8], time: Duration) -> Result<u64, Error> {
        let lifetime = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match self.change(key, Change::PutFor(lifetime, value.to_vec()))? {
            Answer::Written(version) => Ok(version),
            _ => Err(Error::Incompatible),
        }
    }

    /// Makes all writes, if all keys have the versions that the compares name (0: no item). Returns
    /// the version of the written items, or as an error the position of the first compare that
    /// fails.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the writes may happen, all or none.
    pub fn transact(
        &mut self,
        compares: &[Compare<'_>],
        writes: &[Write<'_>],
    ) -> Result<Result<u64, u64>, Error> {
        match self.change(b"", Change::transaction(compares, writes))? {
            Answer::Written(version) => Ok(Ok(version)),
            Answer::Conflict(place) => Ok(Err(place)),
            _ => Err(Error::Incompatible),
        }
    }

    /// Reads items whose keys begin with `prefix`, in key order: at most `limit` of them, and only
    /// keys greater than `after` unless that is empty. Also returns whether there may be more. The
    /// items of one call are a snapshot. An answer has about 64 KiB, so it may have fewer items
    /// than `limit`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn range(
        &mut self,
        prefix: &[u8],
        after: &[u8],
        limit: u32,
    ) -> Result<(Vec<Found>, bool), Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin_range((prefix, after), limit, token, None, &mut cx)?;
        match self.wait(token)? {
            Answer::Items { more, items } => Ok((items, more)),
            _ => Err(Error::Incompatible),
        }
    }

    /// Waits for changes of keys that begin with `prefix`. `from` is the index of the first log
    /// entry whose changes count: 1 above the version of the last change that the program has seen,
    /// or 0 for changes from now on. Returns the changes, or none after a short wait, and the index
    /// for the next call. The inner `Err` means that the cluster has forgotten some of the changes;
    /// it still has all changes from the index in the error on. The program should then read the
    /// range, and watch from that index.
    ///
    /// # Errors
    /// [`Error`].
    pub fn watch(
        &mut self,
        prefix: &[u8],
        from: u64,
    ) -> Result<Result<(Vec<Event>, u64), u64>, Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin_watch(prefix, from, token, None, &mut cx)?;
        match self.wait(token)? {
            Answer::Events { next, events } => Ok(Ok((events, next))),
            Answer::Forgotten(first) => Ok(Err(first)),
            _ => Err(Error::Incompatible),
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn change(&mut self, key: &[u8], change: Change) -> Result<Answer, Error> {
        let token = self.token();
        let (client, mut cx) = self.rpc.with();
        client.begin_change(key, change, token, None, &mut cx)?;
        self.wait(token)
    }

    /// Runs until an operation has ended.
    fn wait(&mut self, token: Token) -> Result<Answer, Error> {
        loop {
            self.turn();
            while let Some(end) = self.rpc.app_mut().next_end() {
                if end.token == token {
                    return end.result;
                }
            }
        }
    }

    fn turn(&mut self) {
        self.rpc.iterate(Client::next_wakeup);
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        let now = cx.now();
        while let Some(address) = self.rpc.app_mut().wish(now) {
            match self.rpc.connect_with(address.as_str(), &self.connect) {
                Ok(session) => self.rpc.app_mut().on_connecting(&address, session),
                Err(_) => self.rpc.app_mut().on_refused(&address, now),
            }
        }
    }
}
