//! All control connections of the process: the stream of each link, and the total number of bytes
//! that wait to be sent.
//!
//! Invariants: `waiting` is the sum over the streams; each stream in the table is in the reactor's
//! epoll under its token, with the interest that it wants. Owned and called by `reactor.rs`.

use std::os::fd::OwnedFd;

use dunlin_control::LinkId;
use dunlin_core::ordered::Map;

use crate::ffi::Epoll;
use crate::stream::{Broken, MAX_WAITING, READ_TURN, Stream};

/// The epoll token of link 0; the token of link `n` is `n` more.
pub(crate) const LINKS: u64 = 16;

/// While more bytes than this wait over all connections, a connection is read only if at most
/// [`SCARCE`] bytes wait on it. So all peers that do not read cost at most this much memory
/// together, and a little more for each of them.
const MAX_WAITING_IN_ALL: usize = 16 << 20;

/// See [`MAX_WAITING_IN_ALL`]. One answer of the longest kind fits.
const SCARCE: usize = 4 << 10;

/// Bytes that a connection may read in its turn while [`MAX_WAITING_IN_ALL`] is exceeded. If all
/// bytes of a [`READ_TURN`] were questions, their answers would be 230 KiB for each connection; a
/// turn of this length causes at most two answers.
const SCARCE_TURN: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Map<LinkId, Stream>,
    waiting: usize,
}

impl Streams {
    /// Adds a connection.
    ///
    /// # Errors
    /// The kernel cannot watch it; it is closed.
    pub(crate) fn enter(
        &mut self,
        link: LinkId,
        stream: Stream,
        epoll: &Epoll,
    ) -> Result<(), Broken> {
        let added = epoll.add(stream.raw(), link.0 + LINKS, stream.interest);
        added.map_err(|_| Broken)?;
        self.waiting += stream.waiting();
        self.streams.insert(link, stream);
        Ok(())
    }

    pub(crate) fn remove(&mut self, link: LinkId) -> Option<Stream> {
        let stream = self.streams.remove(&link)?;
        self.waiting -= stream.waiting();
        Some(stream)
    }

    /// A connection to read from.
    pub(crate) fn get_mut(&mut self, link: LinkId) -> Option<&mut Stream> {
        self.streams.get_mut(&link)
    }

    /// The number of bytes that a connection may read in its turn; 0 if too many bytes wait to be
    /// sent on it: the kernel may have reported it before those bytes were queued.
    pub(crate) fn turn(&self, link: LinkId) -> usize {
        let (stream, most) = (self.streams.get(&link), most(self.waiting));
        match stream.is_some_and(|stream| !stream.has_more_waiting_than(most)) {
            true if most == SCARCE => SCARCE_TURN,
            true => READ_TURN,
            false => 0,
        }
    }

    /// Queues a frame; drops it if the connection is gone.
    pub(crate) fn queue(
        &mut self,
        link: LinkId,
        frame: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<(), Broken> {
        if let Some(stream) = self.streams.get_mut(&link) {
            stream.queue(frame, fds)?;
            self.waiting += frame.len();
        }
        Ok(())
    }

    /// Sends as much as a connection's socket takes, and updates the events for which the kernel
    /// watches.
    pub(crate) fn flush(&mut self, link: LinkId, epoll: &Epoll) -> Result<(), Broken> {
        let Some(stream) = self.streams.get_mut(&link) else {
            return Ok(());
        };
        let before = stream.waiting();
        let flushed = stream.flush();
        self.waiting -= before - stream.waiting();
        flushed?;
        let wants = stream.wants(most(self.waiting));
        if wants != stream.interest {
            stream.interest = wants;
            let modified = epoll.modify(stream.raw(), link.0 + LINKS, wants);
            modified.map_err(|_| Broken)?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        debug_assert!(!self.streams.is_empty() || self.waiting == 0);
        self.streams.is_empty()
    }
}

/// The most bytes that may wait on a connection that is still read, if `in_all` bytes wait over all
/// connections.
const fn most(in_all: usize) -> usize {
    if in_all > MAX_WAITING_IN_ALL {
        SCARCE
    } else {
        MAX_WAITING
    }
}
