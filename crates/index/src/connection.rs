//! A blocking client with an endpoint of its own: each operation is one call or, for long scans,
//! several. A program that needs many operations in flight uses [`Client`].

use std::fmt;
use std::net::SocketAddr;

use dunlin_core::{Nanos, Session};
use dunlin_nexus::{ConnectOptions, EndpointBuilder, EndpointError, Open, Rpc};

use crate::client::{Client, End, Token};
use crate::error::Error;
use crate::index::Total;
use crate::range::{Direction, Range};
use crate::wire::{Answer, Request, Scan, ScanAnswer, What};

/// A connection to one server.
///
/// ```
/// use dunlin_index::{Connection, Direction, Index, Range, serve};
/// use dunlin_nexus::{Nexus, Rpc};
/// use dunlin_transport::shm::Shm;
/// # use std::sync::atomic::{AtomicBool, Ordering};
/// # use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nexus = Nexus::builder().workers(1).bind("127.0.0.1:0")?;
/// let address = nexus.address();
/// # let stop = std::sync::Arc::new(AtomicBool::new(false));
/// # let (stopped, server_nexus) = (stop.clone(), nexus.clone());
/// let server = std::thread::spawn(move || {
///     let index = Index::new();
/// #   let nexus = server_nexus;
///     let mut rpc: Rpc<Shm, Index> = nexus.endpoint(index.clone()).unwrap();
///     serve(&mut rpc, &index);
///     rpc.run_until(|_| stopped.load(Ordering::Relaxed));
/// });
///
/// let endpoint = nexus.endpoint_builder::<Shm>().index(9);
/// let mut index = Connection::open(endpoint, address, Duration::from_secs(5))?;
/// index.put(b"b", b"2")?;
/// index.put(b"a", b"1")?;
/// assert_eq!(index.get(b"a")?, Some(b"1".to_vec()));
/// let mut keys = Vec::new();
/// index.scan(Range::ALL, Direction::Backward, 10, |key, _| keys.push(key.to_vec()))?;
/// assert_eq!(keys, [b"b", b"a"]);
/// # stop.store(true, Ordering::Relaxed);
/// # server.join().unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connection<T: Open> {
    rpc: Rpc<T, Client>,
    server: SocketAddr,
    connect: ConnectOptions,
    timeout: Nanos,
    session: Option<Session>,
}

/// The place at which a scan continues: after the last key that was shown.
pub type Cursor = Option<Vec<u8>>;

/// A connection cannot be opened.
#[derive(Debug)]
pub struct ConnectionError(EndpointError);

impl<T: Open> Connection<T> {
    /// Makes an endpoint for the server whose nexus is at `server`. An operation, and each part of
    /// a long scan, may take as long as `timeout`.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open(
        endpoint: EndpointBuilder<T>,
        server: SocketAddr,
        timeout: std::time::Duration,
    ) -> Result<Self, ConnectionError> {
        let connect = ConnectOptions {
            patience: timeout,
            ..ConnectOptions::default()
        };
        Self::open_with(endpoint, server, timeout, connect)
    }

    /// Like [`Self::open`], with options for the session, which may for instance select another
    /// endpoint of the server than the first.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open_with(
        endpoint: EndpointBuilder<T>,
        server: SocketAddr,
        timeout: std::time::Duration,
        connect: ConnectOptions,
    ) -> Result<Self, ConnectionError> {
        let built = endpoint.build(Client::default());
        let mut rpc: Rpc<T, Client> = built.map_err(ConnectionError)?;
        rpc.on_completion(|client, done, cx| {
            if let Some(other) = client.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        Ok(Self {
            rpc,
            server,
            connect,
            timeout: timeout.into(),
            session: None,
        })
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// [`Error`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self.run(&Request::Get { key })?.answer()? {
            Answer::Found(value) => Ok(Some(value.to_vec())),
            Answer::Missing => Ok(None),
            _ => Err(Error::Incompatible),
        }
    }

    /// Writes an item.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the write may have happened.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        match self.run(&Request::Put { key, value })?.answer()? {
            Answer::Written => Ok(()),
            _ => Err(Error::Incompatible),
        }
    }

    /// Deletes an item. False: there was none.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unknown`] the item may have been deleted.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        match self.run(&Request::Delete { key })?.answer()? {
            Answer::Written => Ok(true),
            Answer::Missing => Ok(false),
            _ => Err(Error::Incompatible),
        }
    }

    /// Calls `show` with up to `limit` items of a range in order, and returns the place at which
    /// another scan continues ([`Range::after`]), if there may be more. One request returns up to
    /// 64 KiB; between the requests of a long scan, other clients may write.
    ///
    /// # Errors
    /// [`Error`]; `show` may already have been called for some items.
    pub fn scan(
        &mut self,
        range: Range<'_>,
        direction: Direction,
        limit: u32,
        mut show: impl FnMut(&[u8], &[u8]),
    ) -> Result<Cursor, Error> {
        let (mut last, mut left) = (None::<Vec<u8>>, limit);
        loop {
            let rest = match &last {
                Some(last) => range.after(last, direction),
                None => range,
            };
            let scan = Scan {
                range: rest,
                what: What::Items(direction),
                limit: left,
            };
            let end = self.run_scan(&scan)?;
            let answer = end.scanned()?;
            let ScanAnswer::Items { more, count, .. } = answer else {
                return Err(Error::Incompatible);
            };
            left = left.checked_sub(count).ok_or(Error::Incompatible)?;
            let mut at = last;
            for entry in answer.entries() {
                // A server that showed the same keys again would keep clients busy for ever.
                let is_next = at
                    .as_ref()
                    .is_none_or(|at| follows(entry.key, at, direction));
                if !is_next || !range.contains(entry.key) {
                    return Err(Error::Incompatible);
                }
                show(entry.key, entry.value);
                at = Some(entry.key.to_vec());
            }
            if !more {
                return Ok(None);
            }
            // An answer that promises more items has at least one.
            if count == 0 {
                return Err(Error::Incompatible);
            }
            last = at;
            if left == 0 {
                return Ok(last);
            }
        }
    }

    /// Counts the items of a range, up to `limit` of them, and adds up their numbers.
    ///
    /// # Errors
    /// [`Error`].
    pub fn total(&mut self, range: Range<'_>, limit: u32) -> Result<Total, Error> {
        let scan = Scan {
            range,
            what: What::Total,
            limit,
        };
        match self.run_scan(&scan)?.scanned()? {
            ScanAnswer::Total(total) => Ok(total),
            _ => Err(Error::Incompatible),
        }
    }

    fn run(&mut self, request: &Request<'_>) -> Result<End, Error> {
        request.check().map_err(Error::of_status)?;
        let deadline = self.rpc.now() + self.timeout;
        let session = self.connected()?;
        let (client, mut cx) = self.rpc.with();
        client.begin(session, request, Token(0), deadline, &mut cx)?;
        Ok(self.wait())
    }

    fn run_scan(&mut self, scan: &Scan<'_>) -> Result<End, Error> {
        scan.check().map_err(Error::of_status)?;
        let deadline = self.rpc.now() + self.timeout;
        let session = self.connected()?;
        let (client, mut cx) = self.rpc.with();
        client.begin_scan(session, scan, Token(0), deadline, &mut cx)?;
        Ok(self.wait())
    }

    /// Returns an open session, and waits for it if necessary.
    fn connected(&mut self) -> Result<Session, Error> {
        let is_open =
            |rpc: &Rpc<T, Client>, session| rpc.session_info(session).is_ok_and(|info| info.open);
        if let Some(session) = self.session.filter(|it| is_open(&self.rpc, *it)) {
            return Ok(session);
        }
        let session = self.rpc.connect_with(self.server, &self.connect);
        let session = session.map_err(|_| Error::Unavailable)?;
        let connected = self.rpc.wait_connected(session);
        connected.map_err(|_| Error::Unavailable)?;
        self.session = Some(session);
        Ok(session)
    }

    /// Runs until the operation has ended.
    fn wait(&mut self) -> End {
        loop {
            self.rpc.run_once();
            if let Some(end) = self.rpc.app_mut().next_end() {
                return end;
            }
        }
    }
}

/// Whether a scan in this direction shows `key` after `last`.
fn follows(key: &[u8], last: &[u8], direction: Direction) -> bool {
    match direction {
        Direction::Forward => key > last,
        Direction::Backward => key < last,
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the endpoint cannot be made: {}", self.0)
    }
}

impl std::error::Error for ConnectionError {}
