//! Places where clients connect, and their listeners.
//!
//! Only the server's user may connect to its UNIX socket, as in memcached. Its file is removed with
//! the listener. A file that another process has left is replaced, but only if it is a socket at
//! which no server answers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream, UnixListener};
use rustix::net::sockopt;

use crate::stream::Stream;

/// After this idle time, our kernel probes the client's kernel.
const KEEP_IDLE: Duration = Duration::from_secs(60);

/// The time between two probes, and how many may stay unanswered.
const KEEP_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_COUNT: u32 = 6;

/// A place where clients connect: `HOST:PORT`, or the path of a UNIX socket, which has a slash.
///
/// ```
/// use dunlin_front::DoorAddress;
///
/// assert_eq!("127.0.0.1:11211".parse(), Ok(DoorAddress::Tcp("127.0.0.1:11211".into())));
/// assert_eq!("/run/cache".parse(), Ok(DoorAddress::Unix("/run/cache".into())));
/// assert!("11211".parse::<DoorAddress>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DoorAddress {
    /// A host and a port. Port 0 selects a free port.
    Tcp(String),
    /// The path of a UNIX socket.
    Unix(PathBuf),
}

/// A listener.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
}

#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

/// The error for a place at which no listener can be opened.
#[derive(Debug)]
pub struct DoorError {
    place: DoorAddress,
    cause: io::Error,
}

impl FromStr for DoorAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('/') {
            return Ok(Self::Unix(text.into()));
        }
        let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        match port {
            Some(Ok(_)) => Ok(Self::Tcp(text.to_owned())),
            _ => Err("neither HOST:PORT nor the path of a socket, which contains a slash"),
        }
    }
}

impl fmt::Display for DoorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Door {
    /// Opens a listener.
    ///
    /// # Errors
    /// Another process listens there, or the system refuses the place.
    pub fn open(place: &DoorAddress) -> Result<Self, DoorError> {
        let opened = match place {
            DoorAddress::Tcp(address) => open_tcp(address),
            DoorAddress::Unix(path) => open_unix(path),
        };
        match opened {
            Ok(listener) => Ok(Self { listener }),
            Err(cause) => {
                let place = place.clone();
                Err(DoorError { place, cause })
            }
        }
    }

    /// The address that clients use.
    #[must_use]
    pub fn place(&self) -> DoorAddress {
        match &self.listener {
            Listener::Tcp(_, address) => DoorAddress::Tcp(address.to_string()),
            Listener::Unix(_, path) => DoorAddress::Unix(path.clone()),
        }
    }

    /// Accepts the next client, and its address if it has one.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match &self.listener {
            Listener::Tcp(listener, _) => {
                let (stream, from) = listener.accept()?;
                // Each answer is complete when it is written, so the kernel should send it at once.
                // The call fails if the client is gone.
                let _ = stream.set_nodelay(true);
                let _ = keep_alive(&stream);
                Ok((Stream::Tcp(stream), Some(from)))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), None))
            }
        }
    }

    pub(crate) fn source(&mut self) -> &mut dyn mio::event::Source {
        match &mut self.listener {
            Listener::Tcp(listener, _) => listener,
            Listener::Unix(listener, _) => listener,
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = &self.listener {
            // Another process may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes the kernel probe an idle client, and end its connection if it has vanished.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_COUNT)
}

fn open_tcp(address: &str) -> io::Result<Listener> {
    let mut refusal = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => {
                let address = listener.local_addr()?;
                return Ok(Listener::Tcp(listener, address));
            }
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

fn open_unix(path: &Path) -> io::Result<Listener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        other => other?,
    };
    let listener = Listener::Unix(listener, path.to_owned());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    Ok(listener)
}

/// Whether the path is a socket at which no server answers.
fn is_left_over(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let answer = std::os::unix::net::UnixStream::connect(path);
    is_socket && answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl fmt::Display for DoorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match self.cause.kind() {
            io::ErrorKind::AddrInUse => write!(f, "another server listens at {place}"),
            _ => write!(f, "cannot listen at {place}"),
        }
    }
}

impl std::error::Error for DoorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
