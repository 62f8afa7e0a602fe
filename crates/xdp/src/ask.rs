//! A process without privilege asks the daemon of `setup` for bound sockets.
//!
//! Each request has a connection of its own. The daemon keeps the connection of an endpoint, and
//! removes the endpoint's entries when the connection closes. Called by `queue` and `open`.

pub(crate) mod message;

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ffi::descriptors;
use crate::socket::explain;
use message::{ANSWER, Claim, QueueId, Request, Wish, read_answer};

/// Longest time for an answer of the daemon, which may wait until a queue becomes free.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest time to wait until the daemon has removed the entries of an endpoint that ends.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// The daemon at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Client(PathBuf);

/// The entries that the daemon keeps for an endpoint. Dropping this value removes them.
#[derive(Debug)]
pub(crate) struct Lease {
    stream: UnixStream,
    rule: Option<bool>,
}

impl Client {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The socket of a queue, with a region of `frames` frames in this memory.
    ///
    /// # Errors
    /// The daemon's refusal; `OutOfMemory` if this user may have fewer frames; the kernel's error
    /// if there is no daemon.
    pub(crate) fn queue(
        &self,
        place: QueueId,
        memory: BorrowedFd<'_>,
        frames: u32,
    ) -> io::Result<OwnedFd> {
        let wish = Wish::Queue { frames };
        // The connection of a queue ends at once.
        Ok(self.ask(Request { place, wish }, memory)?.0)
    }

    /// The socket of an endpoint, at the queue whose socket is `host`. Packets are steered to it
    /// from now on.
    ///
    /// # Errors
    /// The daemon's refusal; the kernel's error if there is no daemon.
    pub(crate) fn endpoint(
        &self,
        place: QueueId,
        host: BorrowedFd<'_>,
        entries: u32,
        claim: Claim,
    ) -> io::Result<(OwnedFd, Lease)> {
        let wish = Wish::Endpoint { entries, claim };
        self.ask(Request { place, wish }, host)
    }

    fn ask(&self, request: Request, descriptor: BorrowedFd<'_>) -> io::Result<(OwnedFd, Lease)> {
        let path = self.0.display();
        let stream = UnixStream::connect(&self.0).map_err(|error| {
            let what = format!("no `dunlin xdp-setup` answers at {path} (the option xdp.setup)");
            explain(error, &what)
        })?;
        let (socket, rule) = exchange(&stream, request, descriptor).map_err(|error| {
            let why = format!("`dunlin xdp-setup` at {path}: {error}");
            io::Error::new(error.kind(), why)
        })?;
        Ok((socket, Lease { stream, rule }))
    }
}

impl Lease {
    /// Whether the device puts the endpoint's packets into the endpoint's queue; `None` if the
    /// table does not let the daemon ask for that.
    pub(crate) fn rule(&self) -> Option<bool> {
        self.rule
    }
}

/// Sends a request with a descriptor over a new connection; returns the descriptor in the answer,
/// and whether a rule of the device leads to it, as [`Lease::rule`] does.
pub(crate) fn exchange(
    stream: &UnixStream,
    request: Request,
    descriptor: BorrowedFd<'_>,
) -> io::Result<(OwnedFd, Option<bool>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    descriptors::send(stream.as_fd(), &request.to_bytes(), &[descriptor])?;
    let mut room = [0; ANSWER];
    let (len, sockets) = descriptors::receive(stream.as_fd(), &mut room)?;
    let rule = read_answer(&room[..len])?;
    let socket = sockets.into_iter().next();
    Ok((socket.ok_or(io::ErrorKind::InvalidData)?, rule))
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The daemon removes the entries when it reads the end, and then closes its side. If it has
        // ended, so have the entries.
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = self.stream.set_read_timeout(Some(LAST_PATIENCE));
        let _ = self.stream.read(&mut [0]);
    }
}
