//! The hub: a nexus and the endpoint threads that send the calls of channels. A process has one,
//! which starts with its first channel and ends with its last; a program may start others.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;

use dunlin_mailbox::Mailbox;
use dunlin_nexus::{EndpointBuilder, Nexus, NexusBuilder};
use dunlin_transport::auto::Auto;

use crate::error::HubError;
use crate::figures::{COUNTERS, GAUGES};
use crate::inbox::Post;
use crate::orders::{Order, Orders};
use crate::plan::ChannelOptions;
use crate::thread::Thread;

/// Any free port, on all addresses of this host.
const LISTEN: &str = "0.0.0.0:0";

/// The most calls that have not ended, over all channels of a thread.
const CALLS: u32 = 1 << 20;

/// A nexus and endpoint threads, shared by channels. Clones are handles of the same hub. Its
/// threads end once the last handle and the last channel are dropped.
///
/// ```
/// use dunlin_hub::Hub;
///
/// let hub = Hub::builder().listen("127.0.0.1:0").threads(2).start()?;
/// let channel = hub.channel().address("127.0.0.1:31850").open()?;
/// # drop(channel);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    threads: Vec<Running>,
    options: ChannelOptions,
    /// Number of channels made so far.
    channels: AtomicU32,
    nexus: Nexus,
}

struct Running {
    post: Arc<Post>,
    handle: Option<JoinHandle<()>>,
}

/// Changes the options of an endpoint.
type Endpoint = Arc<dyn Fn(EndpointBuilder<Auto>) -> EndpointBuilder<Auto> + Send + Sync>;

/// The options of a new hub.
#[must_use]
pub struct HubBuilder {
    listen: String,
    nexus: NexusBuilder,
    options: ChannelOptions,
    endpoint: Endpoint,
}

impl HubBuilder {
    /// Sets the address at which its nexus listens. By default it is any free port on all addresses
    /// of this host, so that servers anywhere can be reached. With `127.0.0.1:0`, only servers on
    /// this host can be reached.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = address.into();
        self
    }

    /// Sets the options of its nexus. The nexus always shows the figures of the channels.
    pub fn nexus(mut self, nexus: NexusBuilder) -> Self {
        self.nexus = nexus;
        self
    }

    /// Sets the options of its endpoints.
    pub fn endpoint(
        mut self,
        change: impl Fn(EndpointBuilder<Auto>) -> EndpointBuilder<Auto> + Send + Sync + 'static,
    ) -> Self {
        self.endpoint = Arc::new(change);
        self
    }

    /// Sets the number of endpoint threads, at least one. A channel belongs to one of them.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// Sets all options that an operator tunes. A channel uses the options for channels unless it
    /// is opened with other ones.
    pub fn options(mut self, options: ChannelOptions) -> Self {
        self.options = options;
        self
    }

    /// Starts the hub.
    ///
    /// # Errors
    /// The nexus, an endpoint or a thread could not be started.
    pub fn start(self) -> Result<Hub, HubError> {
        let nexus = self.nexus.own_figures(COUNTERS, GAUGES);
        let nexus = nexus.bind(self.listen.as_str());
        let nexus = nexus.map_err(HubError::Nexus)?;
        let mut inner = Inner {
            threads: Vec::new(),
            options: self.options,
            channels: AtomicU32::new(0),
            nexus,
        };
        // If one thread does not start, dropping `inner` ends the others.
        for _ in 0..self.options.threads.max(1) {
            inner.threads.push(spawn(&inner.nexus, &self.endpoint)?);
        }
        Ok(Hub {
            inner: Arc::new(inner),
        })
    }
}

impl Hub {
    /// Begins a hub of the program's own.
    pub fn builder() -> HubBuilder {
        HubBuilder {
            listen: LISTEN.to_owned(),
            nexus: Nexus::builder(),
            options: ChannelOptions::default(),
            endpoint: Arc::new(|builder| builder),
        }
    }

    /// The options that its channels have unless they are opened with others.
    pub(crate) fn options(&self) -> ChannelOptions {
        self.inner.options
    }

    /// The nexus of this hub.
    pub fn nexus(&self) -> &Nexus {
        &self.inner.nexus
    }

    /// The hub of the process.
    pub(crate) fn of_process() -> Result<Self, HubError> {
        static HUB: Mutex<Weak<Inner>> = Mutex::new(Weak::new());
        // Dropped after the lock is released: the drop of a hub's last handle waits for its
        // threads.
        let before;
        let mut hub = HUB.lock().unwrap_or_else(PoisonError::into_inner);
        before = hub.upgrade();
        let is_alive = |inner: &&Arc<Inner>| !inner.threads.iter().any(Running::has_ended);
        if let Some(inner) = before.as_ref().filter(is_alive).cloned() {
            return Ok(Self { inner });
        }
        let started = Self::builder().start()?;
        *hub = Arc::downgrade(&started.inner);
        Ok(started)
    }

    /// Assigns a number and a thread to a new channel.
    pub(crate) fn place(&self) -> (u32, Arc<Post>) {
        let id = self.inner.channels.fetch_add(1, Ordering::Relaxed);
        let threads = &self.inner.threads;
        let thread = &threads[id as usize % threads.len()];
        (id, Arc::clone(&thread.post))
    }
}

fn spawn(nexus: &Nexus, endpoint: &Endpoint) -> Result<Running, HubError> {
    let orders = Orders::default();
    let mailbox = Mailbox::new(orders.doorbell.clone(), CALLS);
    let post = Arc::new(Post { mailbox, orders });
    let (nexus, endpoint, ours) = (nexus.clone(), Arc::clone(endpoint), Arc::clone(&post));
    let (report, started) = mpsc::sync_channel(1);
    let thread = move || {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        match Thread::new(endpoint(nexus.endpoint_builder()), &ours, seed) {
            Ok(mut thread) => {
                // The thread that starts the hub waits for this.
                let _ = report.send(Ok(()));
                drop((endpoint, nexus, ours));
                thread.run();
            }
            Err(error) => drop(report.send(Err(error))),
        }
    };
    let handle = std::thread::Builder::new()
        .name("dunlin-hub".into())
        .spawn(thread)
        .map_err(HubError::Thread)?;
    let running = Running {
        post,
        handle: Some(handle),
    };
    match started.recv() {
        Ok(Ok(())) => Ok(running),
        Ok(Err(error)) => Err(HubError::Endpoint(error)),
        Err(_) => Err(HubError::Endpoint(dunlin_nexus::EndpointError::NexusGone)),
    }
}

impl Running {
    /// True after a panic of the thread.
    fn has_ended(&self) -> bool {
        self.post.orders.is_closed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.post.orders.send(Order::Stop);
        let Some(handle) = self.handle.take() else {
            return;
        };
        // A thread of the hub may drop the last handle, in a waker. It cannot join itself, and ends
        // without a join.
        if handle.thread().id() != std::thread::current().id() {
            // The calls of the thread have ended, whether it has panicked or not.
            let _ = handle.join();
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("nexus", &self.inner.nexus.address())
            .field("threads", &self.inner.threads.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HubBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubBuilder")
            .field("listen", &self.listen)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
