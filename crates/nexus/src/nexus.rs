//! The nexus: one per process. It listens for other processes, runs the control thread and the
//! worker threads, and makes endpoints (design §9).
//!
//! A [`Nexus`] is a handle; endpoints hold one too. When the last handle is dropped, the other
//! processes get Goodbye, and all threads are joined.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin_control::{HeartbeatConfig, Identity, Plane, PlaneConfig, PlaneCounters};
use dunlin_core::{Job, Nanos};
use dunlin_insight::Snapshot;
use dunlin_insight::writer::{Names, Page};
use dunlin_transport::networks::Networks;
use dunlin_wire::control::{BootId, Incarnation, Serving};

use crate::error::NexusError;
use crate::ffi;
use crate::limits;
use crate::mailbox::{Mailbox, Request};
use crate::publisher::names;
use crate::reactor::Reactor;
use crate::transports::Reach;
use crate::workers::{Pool, WorkerOptions};

/// The default port of a nexus.
pub const DEFAULT_PORT: u16 = 31_850;

/// The options of a nexus. [`Self::bind`] starts it.
///
/// ```
/// use std::time::Duration;
/// use dunlin_nexus::Nexus;
///
/// let nexus = Nexus::builder()
///     .failure_timeout(Duration::from_millis(500))
///     .workers(4)
///     .bind("127.0.0.1:0")?;
/// assert_ne!(nexus.address().port(), 0);
/// # Ok::<(), dunlin_nexus::NexusError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NexusBuilder {
    any_port: bool,
    without_unix: bool,
    hidden: bool,
    own: (&'static [&'static str], &'static [&'static str]),
    insight_tcp: InsightTcp,
    advertise: Option<IpAddr>,
    allow_peers: Networks,
    plane: PlaneConfig,
    workers: WorkerOptions,
}

/// The part of this process's memory file that peers on any host and of any user can read through
/// the control plane (rule C10). A process of this user can read the entire memory file directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InsightTcp {
    /// Nothing.
    #[default]
    Off,
    /// Counters, histograms and the table of sessions without the addresses of peers; no packets.
    Counters,
}

/// Ports that are tried if the first is taken.
const PORTS_TRIED: u16 = 100;

/// A running nexus. Clones are handles of the same nexus.
#[derive(Clone, Debug)]
pub struct Nexus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    reach: Reach,
    plane: PlaneConfig,
    requests: Arc<Mailbox<Request>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pool: Pool<Job>,
    page: Option<Arc<Page>>,
}

impl NexusBuilder {
    /// Uses one of the next hundred ports if the port is taken. By default that is an error.
    #[must_use]
    pub const fn any_port(mut self, any: bool) -> Self {
        self.any_port = any;
        self
    }

    /// Sets the number of worker threads for background handlers.
    #[must_use]
    pub const fn workers(mut self, threads: usize) -> Self {
        self.workers.threads = threads;
        self
    }

    /// Sets all options of worker threads.
    #[must_use]
    pub const fn worker_options(mut self, options: WorkerOptions) -> Self {
        self.workers = options;
        self
    }

    /// Sets the longest time from a peer's failure until its sessions fail.
    #[must_use]
    pub fn failure_timeout(mut self, timeout: Duration) -> Self {
        self.plane.heartbeat.timeout = timeout.into();
        self
    }

    /// Sets all options of the failure detector.
    #[must_use]
    pub const fn heartbeat(mut self, config: HeartbeatConfig) -> Self {
        self.plane.heartbeat = config;
        self
    }

    /// Sets all limits and times of the control plane.
    #[must_use]
    pub const fn limits(mut self, config: PlaneConfig) -> Self {
        self.plane = config;
        self
    }

    /// Makes no UNIX socket, so there is no shared memory with other processes.
    #[must_use]
    pub const fn without_unix(mut self, without: bool) -> Self {
        self.without_unix = without;
        self
    }

    /// Makes no memory file. In that file, `dunlin stats` and other tools find the counters of a
    /// process.
    #[must_use]
    pub const fn hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Sets the names of the program's own figures, which each endpoint may publish
    /// (`Rpc::publish_own`) and which tools show with its counters. Names consist of lower-case
    /// letters, digits and `_`.
    #[must_use]
    pub const fn own_figures(
        mut self,
        counters: &'static [&'static str],
        gauges: &'static [&'static str],
    ) -> Self {
        self.own = (counters, gauges);
        self
    }

    /// Chooses the part of the counters that `dunlin stats HOST:PORT` can read. Any process that
    /// can connect to the nexus can ask for them, so by default there is none.
    #[must_use]
    pub const fn insight_tcp(mut self, shown: InsightTcp) -> Self {
        self.insight_tcp = shown;
        self
    }

    /// Sets the address to which peers on other hosts send packets, if it differs from the address
    /// to which the nexus is bound, for example behind NAT.
    ///
    /// A nexus bound to the unspecified address (`0.0.0.0`, `[::]`) needs none: each peer gets
    /// the address that its control connection has at this end.
    #[must_use]
    pub const fn advertise(mut self, ip: IpAddr) -> Self {
        self.advertise = Some(ip);
        self
    }

    /// Sets the networks to which endpoints send packets even if the peer has connected from
    /// another address. The peer must first prove that packets reach it there (rule C13): such a
    /// session takes one more round trip to open, and fails if the proof does not come. Outside
    /// these networks, a peer's packets go only to the address of its control connection, or stay
    /// within this host if that is a UNIX socket. A session with a peer that offers another address
    /// is refused.
    ///
    /// ```
    /// use dunlin_nexus::Nexus;
    /// let peers = "10.1.0.0/16, 2001:db8::/32".parse()?;
    /// let builder = Nexus::builder().allow_peers(peers);
    /// # Ok::<(), dunlin_transport::networks::NoNetwork>(())
    /// ```
    #[must_use]
    pub fn allow_peers(mut self, networks: Networks) -> Self {
        self.allow_peers = networks;
        self
    }

    /// Starts the nexus at a host and port.
    ///
    /// # Errors
    /// The address is not a host and a port, no port is free, or the system refused.
    pub fn bind(self, address: impl ToSocketAddrs + std::fmt::Debug) -> Result<Nexus, NexusError> {
        let tcp = self.listen(&address)?;
        let address = tcp.local_addr()?;
        let (unix, unix_name) = if self.without_unix {
            (None, String::new())
        } else {
            unix()?
        };
        let us = Identity {
            boot_id: boot_id()?,
            incarnation: Incarnation(random()?),
            port: address.port(),
            unix_name,
        };
        tracing::info!(%address, incarnation = us.incarnation.0, "nexus listens");
        let limits = limits::within(self.plane, ffi::descriptor_limit());
        let plane = Plane::new(limits, us, random()?);
        let requests = Arc::new(Mailbox::new()?);
        let pool = Pool::new(self.workers)?;
        // A process also works without a memory file.
        let names = || Names {
            own_counters: self.own.0.to_vec(),
            own_gauges: self.own.1.to_vec(),
            ..names()
        };
        let page = (!self.hidden).then(|| Page::new(address, &names()).ok().map(Arc::new));
        let page = page.flatten();
        let shown = (page.clone(), self.insight_tcp);
        let reactor = Reactor::new(plane, tcp, unix, Arc::clone(&requests), shown)?;
        let thread = std::thread::Builder::new()
            .name("dunlin-nexus".into())
            .spawn(move || reactor.run())?;
        let thread = Mutex::new(Some(thread));
        let plane = self.plane;
        Ok(Nexus {
            inner: Arc::new(Inner {
                address,
                reach: Reach {
                    ip: address.ip(),
                    advertise: self.advertise,
                    allow_peers: self.allow_peers,
                },
                plane,
                requests,
                thread,
                pool,
                page,
            }),
        })
    }

    fn listen(
        &self,
        address: &(impl ToSocketAddrs + std::fmt::Debug),
    ) -> Result<TcpListener, NexusError> {
        let wrong = |source| NexusError::Address {
            address: format!("{address:?}").trim_matches('"').to_owned(),
            source,
        };
        let mut resolved = address.to_socket_addrs().map_err(wrong)?;
        let first = resolved
            .next()
            .ok_or_else(|| wrong(io::ErrorKind::NotFound.into()))?;
        let tries = if self.any_port && first.port() != 0 {
            PORTS_TRIED
        } else {
            1
        };
        let mut address = first;
        for offset in 0..tries {
            let Some(port) = first.port().checked_add(offset) else {
                break;
            };
            address.set_port(port);
            match TcpListener::bind(address) {
                Ok(listener) => return Ok(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && offset + 1 < tries => {}
                Err(source) => return Err(NexusError::Listen { address, source }),
            }
        }
        Err(NexusError::Listen {
            address,
            source: io::ErrorKind::AddrInUse.into(),
        })
    }
}

impl Nexus {
    /// Starts a nexus with default options. A port that is taken is an error; see
    /// [`NexusBuilder::any_port`].
    ///
    /// # Errors
    /// The address is not a host and a port, no port is free, or the system refused.
    pub fn bind(address: impl ToSocketAddrs + std::fmt::Debug) -> Result<Self, NexusError> {
        Self::builder().bind(address)
    }

    /// Begins a nexus with options.
    pub fn builder() -> NexusBuilder {
        NexusBuilder::default()
    }

    /// The address at which the nexus listens.
    pub fn address(&self) -> SocketAddr {
        self.inner.address
    }

    /// The counters of the control plane. `None` if the control thread has panicked.
    pub fn counters(&self) -> Option<PlaneCounters> {
        let (answer, counters) = sync_channel(1);
        self.requests().send(Request::Counters(answer));
        counters.recv_timeout(Duration::from_secs(10)).ok()
    }

    /// Announces the services of this process to all peers, and to later peers when they connect.
    /// After it returns, new requests for sessions are granted or refused accordingly. While the
    /// process drains, it refuses sessions. `dunlin`'s `Server` calls this for its endpoints; a
    /// nexus that announces nothing accepts every session. A peer gets at most eight announcements
    /// over one connection, and the eighth only if it announces a drain.
    pub fn serve(&self, serving: Serving) {
        let (answer, served) = sync_channel(1);
        self.requests().send(Request::Serve(serving, answer));
        // The control thread answers quickly; if it has panicked, no answer comes.
        let _ = served.recv_timeout(Duration::from_secs(10));
    }

    /// The state that `dunlin stats` would show now. `None`: the process is hidden, or the system
    /// has no memory files.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let mut file = self.page()?.file();
        Snapshot::read(&mut file).ok()
    }

    pub(crate) fn requests(&self) -> &Arc<Mailbox<Request>> {
        &self.inner.requests
    }

    pub(crate) fn pool(&self) -> &Pool<Job> {
        &self.inner.pool
    }

    /// The memory file in which endpoints publish; `None` if there is none.
    pub(crate) fn page(&self) -> Option<&Arc<Page>> {
        self.inner.page.as_ref()
    }

    /// The addresses at which endpoints receive and to which they may send.
    pub(crate) fn reach(&self) -> &Reach {
        &self.inner.reach
    }

    /// The time within which the detector finds a failed peer.
    pub(crate) fn failure_timeout(&self) -> Nanos {
        self.inner.plane.heartbeat.timeout
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.requests.send(Request::Stop);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the control thread panicked");
        }
    }
}

/// Makes a listener under a name that cannot be guessed, and returns that name in the form for
/// Hello.
fn unix() -> io::Result<(Option<UnixListener>, String)> {
    let secret: [u8; 16] = ffi::random_bytes()?;
    let name = format!("dunlin-{:032x}", u128::from_le_bytes(secret));
    let address = UnixAddr::from_abstract_name(&name)?;
    Ok((
        Some(UnixListener::bind_addr(&address)?),
        format!("\0{name}"),
    ))
}

/// Identifies this boot of this host. If the system has no such identifier, this process shares
/// memory with no peer.
fn boot_id() -> io::Result<BootId> {
    let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    match told.as_deref().and_then(parse_boot_id) {
        Some(id) => Ok(BootId(id)),
        None => Ok(BootId(ffi::random_bytes()?)),
    }
}

fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

pub(crate) fn random() -> io::Result<u64> {
    Ok(u64::from_le_bytes(ffi::random_bytes()?))
}
