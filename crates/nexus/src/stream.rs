//! One control connection as bytes: frames collected on the way in, queued on the way out, and the
//! descriptors that go with them.
//!
//! Invariants: nothing blocks; what the other side can make grow is bounded by [`MAX_FRAME`] on
//! the way in, by [`MAX_QUEUED`] on the way out and by [`MAX_FDS`] descriptors; a stream that
//! failed stays failed. Called by `reactor.rs`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use dunlin_wire::control::{MAX_FRAME, frame_len};

use crate::ffi::Interest;
use crate::ffi::socket::{self, MAX_FDS};

/// Most bytes that wait to be sent. A peer that lets so many wait does not read.
const MAX_QUEUED: usize = 4 << 20;

/// Most bytes that are read from one stream before the others have their turn.
const READ_TURN: usize = 64 << 10;

/// One connection.
#[derive(Debug)]
pub(crate) struct Stream {
    fd: OwnedFd,
    /// The connection is being made.
    connecting: bool,
    input: Vec<u8>,
    /// Descriptors that came and belong to no frame yet.
    fds: Vec<OwnedFd>,
    output: VecDeque<Piece>,
    queued: usize,
    /// The events that the kernel waits for, as the reactor has asked.
    pub(crate) interest: Interest,
}

/// A frame on its way out.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

/// The stream is at its end, broken, or wrong: close it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken;

impl Stream {
    /// A connection that is made, or being made.
    pub(crate) fn new(fd: OwnedFd, connecting: bool) -> Self {
        let interest = if connecting {
            Interest::Write
        } else {
            Interest::Read
        };
        Self {
            fd,
            connecting,
            input: Vec::new(),
            fds: Vec::new(),
            output: VecDeque::new(),
            queued: 0,
            interest,
        }
    }

    /// The descriptor to wait for.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) const fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// The events to wait for now.
    pub(crate) fn wants(&self) -> Interest {
        if self.connecting {
            Interest::Write
        } else if self.output.is_empty() {
            Interest::Read
        } else {
            Interest::ReadWrite
        }
    }

    /// The attempt to connect has ended.
    pub(crate) fn on_connected(&mut self) -> Result<(), Broken> {
        socket::connect_result(self.fd.as_fd()).map_err(|_| Broken)?;
        self.connecting = false;
        Ok(())
    }

    /// Reads what is there and gives each whole frame, with the descriptors that came with it or
    /// before it, to `on_frame`, which takes those that belong to the frame and says whether to
    /// go on.
    ///
    /// Ends early when the stream has had its turn; the rest is still there then.
    pub(crate) fn read(
        &mut self,
        mut on_frame: impl FnMut(&[u8], &mut Vec<OwnedFd>) -> bool,
    ) -> Result<(), Broken> {
        let mut chunk = [0; 4096];
        let mut taken = 0;
        while taken < READ_TURN {
            let got = match socket::receive(self.fd.as_fd(), &mut chunk, &mut self.fds) {
                Ok(0) => return Err(Broken),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Broken),
            };
            taken += got;
            self.input.extend_from_slice(&chunk[..got]);
            if !self.cut(&mut on_frame)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// From now on the stream counts as one whose peer lets all that may wait wait.
    #[cfg(test)]
    pub(crate) const fn fill(&mut self) {
        self.queued = MAX_QUEUED;
    }

    /// Queues a frame.
    pub(crate) fn queue(&mut self, bytes: Vec<u8>, fds: Vec<OwnedFd>) -> Result<(), Broken> {
        self.queued += bytes.len();
        if self.queued > MAX_QUEUED {
            return Err(Broken);
        }
        self.output.push_back(Piece {
            bytes,
            sent: 0,
            fds,
        });
        Ok(())
    }

    /// Sends what can be sent now.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        if self.connecting {
            return Ok(());
        }
        while let Some(piece) = self.output.front_mut() {
            match socket::send(self.fd.as_fd(), &piece.bytes[piece.sent..], &piece.fds) {
                Ok(sent) => {
                    // The descriptors went with the first byte; the receiver has its own now.
                    piece.fds.clear();
                    piece.sent += sent;
                    self.queued -= sent;
                    if piece.sent == piece.bytes.len() {
                        self.output.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken),
            }
        }
        Ok(())
    }

    /// Cuts the input into frames. False if the receiver does not want more.
    fn cut(
        &mut self,
        on_frame: &mut impl FnMut(&[u8], &mut Vec<OwnedFd>) -> bool,
    ) -> Result<bool, Broken> {
        let mut at = 0;
        while let Some(length) = frame_len(&self.input[at..]).map_err(|_| Broken)? {
            let frame = &self.input[at..at + length];
            at += length;
            if !on_frame(frame, &mut self.fds) {
                return Ok(false);
            }
        }
        self.input.drain(..at);
        debug_assert!(self.input.len() < MAX_FRAME);
        // Descriptors come with the first byte of their frame: without a frame begun, they
        // belong to none, and no frame has more than this.
        let limit = if self.input.is_empty() { 0 } else { MAX_FDS };
        if self.fds.len() > limit {
            Err(Broken)
        } else {
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests;
