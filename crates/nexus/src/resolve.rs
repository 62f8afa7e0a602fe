//! Where a client's servers are: an address, a name, or the result of a look-up by the program. A
//! look-up may take half a minute, so clients with an event loop run it in a thread of its own.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Finds servers. The system's resolver looks up names (`host:port`); a program whose servers are
/// not in the DNS has a resolver of its own. Closures that return the same type are resolvers too.
///
/// ```
/// use std::io;
/// use std::net::SocketAddr;
/// use dunlin_nexus::Resolve;
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
/// assert_eq!("127.0.0.1:31850".resolve()?.len(), 1);
/// # Ok::<(), io::Error>(())
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of all servers now. A client calls this in a thread that this function may
    /// block.
    ///
    /// # Errors
    /// The addresses are not known now. An empty list or a panic has the same effect.
    fn resolve(&self) -> io::Result<Vec<SocketAddr>>;

    /// Whether [`Self::resolve`] returns immediately, so that it needs no thread of its own.
    fn is_quick(&self) -> bool {
        false
    }
}

impl<F: Fn() -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static> Resolve for F {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self()
    }
}

impl Resolve for String {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.to_socket_addrs()?.collect())
    }

    fn is_quick(&self) -> bool {
        is_address(self)
    }
}

impl Resolve for &'static str {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.to_socket_addrs()?.collect())
    }

    fn is_quick(&self) -> bool {
        is_address(self)
    }
}

impl Resolve for SocketAddr {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![*self])
    }

    fn is_quick(&self) -> bool {
        true
    }
}

impl Resolve for Vec<SocketAddr> {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.clone())
    }

    fn is_quick(&self) -> bool {
        true
    }
}

/// Whether the text is an address, so that no name must be looked up.
fn is_address(text: &str) -> bool {
    text.parse::<SocketAddr>().is_ok()
}
