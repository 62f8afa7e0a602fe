//! Limits and facts that the threads of a process share.
//!
//! Counters are relaxed atomics, which a thread updates once for each read or write of a socket.
//! The list of clients has a lock, which is taken when a client arrives or leaves, and for
//! statistics. The thread that accepts a client posts the client's socket to the thread whose turn
//! it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dunlin_memcached::{ConnectionFacts, Ledger, Process, Users};
use dunlin_store::{MAX_VALUE, Seconds};
use mio::Waker;

use crate::floor::{Floor, FloorTicket};
use crate::stream::Stream;

/// Ticks a second in `/proc/self/stat`: `USER_HZ`, which is 100 on every architecture of Linux for
/// which this builds.
const TICKS: u64 = 100;

/// The options of a front end.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most clients at a time.
    pub max_connections: u64,
    /// The users that may connect; `None`: every client may.
    pub users: Option<Arc<Users>>,
    /// Bytes of long commands that have not arrived completely, of all clients together. While they
    /// have as many, only one client at a time can send more of a long command.
    pub incomplete: u64,
    /// If the clients have as many bytes as `incomplete` allows, one that has sent too little of
    /// its command for this number of seconds is disconnected.
    pub patience: u32,
    /// True if `flush_all` is refused.
    pub refuses_flush: bool,
    /// The longest value that a client may write, if that is shorter than the table's longest.
    pub most_value: Option<usize>,
    /// Memory for items, in bytes.
    pub memory: u64,
    /// Threads that serve.
    pub threads: u64,
    /// When the process started.
    pub started: Seconds,
    /// Further settings for `stats settings`, as name and value.
    pub settings: Vec<(&'static str, String)>,
}

impl Default for Options {
    /// memcached's 1024 connections, without authentication.
    fn default() -> Self {
        Self {
            max_connections: 1024,
            users: None,
            incomplete: 64 << 20,
            patience: 10,
            refuses_flush: false,
            most_value: None,
            memory: 0,
            threads: 1,
            started: Seconds(0),
            settings: Vec::new(),
        }
    }
}

/// Limits and facts of all threads.
#[derive(Debug)]
pub struct Hall {
    options: Options,
    floor: Floor,
    counts: Counts,
    guests: Mutex<BTreeMap<u64, Arc<Guest>>>,
    posts: Box<[Post]>,
}

/// Clients in transit to a thread.
#[derive(Default, Debug)]
struct Post {
    /// Wakes the thread, once it runs.
    waker: OnceLock<Waker>,
    arrivals: Mutex<Vec<(Stream, Arc<Guest>)>>,
}

#[derive(Default, Debug)]
struct Counts {
    open: AtomicU64,
    /// The number of the newest client. A reset leaves it.
    numbered: AtomicU64,
    total: AtomicU64,
    rejected: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    auth_attempts: AtomicU64,
    auth_failures: AtomicU64,
}

/// A client, for `stats conns`.
#[derive(Debug)]
pub(crate) struct Guest {
    number: u64,
    address: Option<SocketAddr>,
    last_command: AtomicU32,
}

impl Hall {
    /// The hall of a process that starts.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let posts = (0..options.threads).map(|_| Post::default());
        Self {
            posts: posts.collect(),
            floor: Floor::new(options.incomplete, options.patience),
            options,
            counts: Counts::default(),
            guests: Mutex::default(),
        }
    }

    pub(crate) fn users(&self) -> Option<Arc<Users>> {
        self.options.users.clone()
    }

    pub(crate) fn refuses_flush(&self) -> bool {
        self.options.refuses_flush
    }

    pub(crate) fn most_value(&self) -> usize {
        self.options.most_value.unwrap_or(MAX_VALUE)
    }

    /// The ledger of a table of this process.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let most = self.options.most_value;
        most.map_or_else(Ledger::default, Ledger::with_most_value)
    }

    /// Registers a client; `None` if there are too many.
    pub(crate) fn on_client(
        &self,
        address: Option<SocketAddr>,
        now: Seconds,
    ) -> Option<Arc<Guest>> {
        if self.counts.open.fetch_add(1, Relaxed) >= self.options.max_connections {
            self.counts.open.fetch_sub(1, Relaxed);
            self.counts.rejected.fetch_add(1, Relaxed);
            return None;
        }
        self.counts.total.fetch_add(1, Relaxed);
        let guest = Arc::new(Guest {
            number: self.counts.numbered.fetch_add(1, Relaxed) + 1,
            address,
            last_command: AtomicU32::new(now.0),
        });
        self.guests().insert(guest.number, Arc::clone(&guest));
        Some(guest)
    }

    /// Lets other threads post clients to this one, and wake it.
    pub(crate) fn on_thread(&self, thread: u16, waker: Waker) {
        if let Some(post) = self.posts.get(usize::from(thread)) {
            // The waker of a thread's first front stays here. A later front of the thread is not
            // woken, and takes its clients when it next looks for them.
            let _ = post.waker.set(waker);
        }
    }

    /// Posts a client to the thread whose turn it is. Returns the client if that thread is `own`,
    /// or does not run.
    pub(crate) fn post(
        &self,
        own: u16,
        stream: Stream,
        guest: Arc<Guest>,
    ) -> Option<(Stream, Arc<Guest>)> {
        let turn = usize::try_from(guest.number).unwrap_or(0) % self.posts.len().max(1);
        let post = self.posts.get(turn).filter(|_| turn != usize::from(own));
        let Some((post, waker)) = post.and_then(|post| Some((post, post.waker.get()?))) else {
            return Some((stream, guest));
        };
        post.arrivals().push((stream, guest));
        // If this fails, the thread takes the client after its longest wait.
        let _ = waker.wake();
        None
    }

    /// The clients that were posted to a thread.
    pub(crate) fn arrivals(&self, thread: u16) -> Vec<(Stream, Arc<Guest>)> {
        let post = self.posts.get(usize::from(thread));
        post.map_or(Vec::new(), |post| std::mem::take(&mut *post.arrivals()))
    }

    pub(crate) fn on_client_gone(&self, guest: &Guest) {
        self.guests().remove(&guest.number);
        self.counts.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn floor(&self) -> &Floor {
        &self.floor
    }

    /// Notes that a client has left the floor or the line, and wakes the thread of the client that
    /// may have the floor now.
    pub(crate) fn on_floor_left(&self, ticket: FloorTicket) {
        let next = self.floor.on_leave(ticket);
        let post = next.and_then(|seat| self.posts.get(usize::from(seat.thread)));
        if let Some(waker) = post.and_then(|post| post.waker.get()) {
            // If this fails, the thread sees it after its longest wait.
            let _ = waker.wake();
        }
    }

    pub(crate) fn on_read(&self, bytes: usize) {
        self.counts.read.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn on_written(&self, bytes: usize) {
        self.counts.written.fetch_add(bytes as u64, Relaxed);
    }

    /// Resets all counts except the number of open connections and the number of the newest client.
    pub(crate) fn on_reset(&self) {
        let counts = &self.counts;
        for count in [
            &counts.total,
            &counts.rejected,
            &counts.read,
            &counts.written,
            &counts.auth_attempts,
            &counts.auth_failures,
        ] {
            count.store(0, Relaxed);
        }
    }

    pub(crate) fn on_authentication(&self, is_known: bool) {
        self.counts.auth_attempts.fetch_add(1, Relaxed);
        let failures = u64::from(!is_known);
        self.counts.auth_failures.fetch_add(failures, Relaxed);
    }

    /// Facts for statistics.
    pub(crate) fn process(&self) -> Process {
        let (user_time, system_time) = processor_times();
        let read = |count: &AtomicU64| count.load(Relaxed);
        let guests = self.guests();
        Process {
            pid: std::process::id(),
            started: self.options.started,
            user_time,
            system_time,
            max_connections: self.options.max_connections,
            total_connections: read(&self.counts.total),
            rejected_connections: read(&self.counts.rejected),
            bytes_read: read(&self.counts.read),
            bytes_written: read(&self.counts.written),
            auth_attempts: read(&self.counts.auth_attempts),
            auth_failures: read(&self.counts.auth_failures),
            memory: self.options.memory,
            threads: self.options.threads,
            refuses_flush: self.options.refuses_flush,
            most_value: self.options.most_value.map(|most| most as u64),
            connections: guests.values().map(|guest| guest.facts()).collect(),
            settings: self.options.settings.clone(),
        }
    }

    fn guests(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Guest>>> {
        // No change of the list panics halfway, so it is whole even after a panic.
        let guests = self.guests.lock();
        guests.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post {
    fn arrivals(&self) -> MutexGuard<'_, Vec<(Stream, Arc<Guest>)>> {
        // No change of the list panics halfway, so it is whole even after a panic.
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    pub(crate) fn on_command(&self, now: Seconds) {
        self.last_command.store(now.0, Relaxed);
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn last_command(&self) -> Seconds {
        Seconds(self.last_command.load(Relaxed))
    }

    fn facts(&self) -> ConnectionFacts {
        ConnectionFacts {
            number: self.number,
            address: match self.address {
                Some(address) => format!("tcp:{address}"),
                None => "unix".to_owned(),
            },
            last_command: self.last_command(),
        }
    }
}

/// Processor time of this process, in user mode and in the kernel. Zero if the system does not
/// report it.
fn processor_times() -> (Duration, Duration) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses, which may contain spaces.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(11);
    let mut next = || -> Duration {
        let ticks: u64 = fields
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        Duration::from_millis(ticks * (1000 / TICKS))
    };
    (next(), next())
}

#[cfg(test)]
mod tests;
