//! The sources of a channel's addresses: some addresses are fixed, others are looked up again and
//! again, by the system's resolver or by one of the program. Each look-up has a thread of its own,
//! and each source has at most one look-up at a time. So a look-up that hangs holds up neither a
//! call nor the look-up of another source. Called by `driver.rs` and `thread.rs`.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Finds the servers of a channel, for programs whose servers are not in the DNS. Closures that
/// return the same type are resolvers too.
///
/// ```
/// use std::io;
/// use std::net::SocketAddr;
/// use dunlin_hub::{Channel, ChannelError, Resolve};
///
/// /// One address a line.
/// struct File(&'static str);
///
/// impl Resolve for File {
///     fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
///         let text = std::fs::read_to_string(self.0)?;
///         let addresses = text.lines().map(|line| line.parse().map_err(io::Error::other));
///         addresses.collect()
///     }
/// }
///
/// fn open() -> Result<Channel, ChannelError> {
///     Channel::builder().resolver(File("/etc/greeters")).open()
/// }
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of all servers now. The channel calls this when it opens, every 30 s
    /// ([`ChannelBuilder::lookup`](crate::ChannelBuilder::lookup)), and soon after it has lost a
    /// session. It does so in a thread of its own, which this function may block.
    ///
    /// # Errors
    /// The addresses are not known now. The channel keeps those that it has, and calls this again
    /// within 1 s if it has none. An empty list or a panic has the same effect.
    fn resolve(&self) -> io::Result<Vec<SocketAddr>>;
}

impl<F: Fn() -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static> Resolve for F {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self()
    }
}

/// A resolver, of the program or of ours.
#[derive(Clone)]
pub(crate) struct Resolver(Arc<dyn Resolve>);

/// A name with a port, which the system's resolver looks up.
struct Name(String);

/// All sources of a channel's addresses.
#[derive(Debug)]
pub(crate) struct Sources {
    fixed: Vec<String>,
    moving: Vec<Source>,
}

/// A source whose addresses change.
#[derive(Debug)]
struct Source {
    resolver: Resolver,
    found: Vec<String>,
    is_under_way: bool,
}

/// A look-up that must begin: the index of its source, and the resolver.
pub(crate) struct LookUp {
    pub(crate) source: usize,
    resolver: Resolver,
}

impl Resolve for Name {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.to_socket_addrs()?.collect())
    }
}

impl Resolver {
    pub(crate) fn new(resolver: impl Resolve) -> Self {
        Self(Arc::new(resolver))
    }

    pub(crate) fn of_name(name: String) -> Self {
        Self::new(Name(name))
    }
}

impl Sources {
    pub(crate) fn new(fixed: Vec<String>, resolvers: Vec<Resolver>) -> Self {
        let source = |resolver| Source {
            resolver,
            found: Vec::new(),
            is_under_way: false,
        };
        Self {
            fixed,
            moving: resolvers.into_iter().map(source).collect(),
        }
    }

    /// The addresses that are known now.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        let found = self.moving.iter().flat_map(|source| &source.found);
        self.fixed.iter().chain(found).map(String::as_str)
    }

    /// Begins the look-ups of all sources that have none under way.
    pub(crate) fn begin(&mut self) -> Vec<LookUp> {
        let sources = self.moving.iter_mut().enumerate();
        let idle = sources.filter(|(_, source)| !source.is_under_way);
        idle.map(|(place, source)| {
            source.is_under_way = true;
            LookUp {
                source: place,
                resolver: source.resolver.clone(),
            }
        })
        .collect()
    }

    /// A look-up has ended. True if it has found addresses.
    pub(crate) fn on_end(&mut self, source: usize, found: Option<Vec<String>>) -> bool {
        let source = &mut self.moving[source];
        source.is_under_way = false;
        let has_found = found.is_some();
        source.found = found.unwrap_or_else(|| std::mem::take(&mut source.found));
        has_found
    }
}

impl LookUp {
    /// The addresses of the source; `None`: the look-up has found none. May take long.
    pub(crate) fn run(&self) -> Option<Vec<String>> {
        // A resolver is code of the program. If its panic ended this thread, the look-up would
        // never end, and the source would not be looked up again.
        let resolve = AssertUnwindSafe(|| self.resolver.0.resolve());
        let found = catch_unwind(resolve).ok()?.ok()?;
        let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
        (!found.is_empty()).then_some(found)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}
