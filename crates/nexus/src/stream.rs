//! One control connection as bytes: collects received frames, queues frames to send, and stores the
//! descriptors that belong to them.
//!
//! Invariants: nothing blocks; a peer can make the input grow to [`MAX_FRAME`], and the output to
//! [`MAX_WAITING`] plus the answers of one turn; input and output together hold at most [`MAX_FDS`]
//! descriptors; one turn reads at most [`READ_TURN`] bytes; a stream that has failed stays failed.
//! Called by `streams.rs`.

mod output;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use dunlin_wire::control::{MAX_FRAME, frame_len};

use crate::ffi::Interest;
use crate::ffi::socket::{self, MAX_FDS};
use output::Output;

/// The most bytes that wait to be sent. Only messages from this process's endpoints to a peer that
/// does not read can reach this limit.
const MAX_QUEUED: usize = 4 << 20;

/// While more bytes than this wait to be sent, the stream reads no more of the peer's questions.
pub(crate) const MAX_WAITING: usize = 256 << 10;

/// The most bytes that one stream reads in a turn, before other streams have their turn: 73 of the
/// shortest messages. The answers take most of the time, with up to 4 KiB for each question of 18
/// bytes; copying and sending 57 answers takes a tenth of a millisecond.
pub(crate) const READ_TURN: usize = 1024;

/// One connection.
#[derive(Debug)]
pub(crate) struct Stream {
    fd: OwnedFd,
    /// The connection is being made.
    connecting: bool,
    input: Vec<u8>,
    /// Descriptors whose frame has not come yet.
    fds: Vec<OwnedFd>,
    output: Output,
    /// The events for which the kernel watches.
    pub(crate) interest: Interest,
}

/// The stream has ended, is broken, or its bytes are wrong: close it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken;

impl Stream {
    /// Takes a connection that is made, or being made.
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
            output: Output::default(),
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

    /// The events to wait for now. The stream reads only while at most `most` bytes wait to be
    /// sent. If more wait, it does not read acknowledgements of heartbeats either, so the detector
    /// notices in time that a peer never reads, and declares it failed.
    pub(crate) const fn wants(&self, most: usize) -> Interest {
        if self.connecting || self.has_more_waiting_than(most) {
            Interest::Write
        } else if self.output.is_empty() {
            Interest::Read
        } else {
            Interest::ReadWrite
        }
    }

    /// Whether more than `most` bytes wait to be sent, so that the stream reads nothing from the
    /// peer.
    pub(crate) const fn has_more_waiting_than(&self, most: usize) -> bool {
        self.output.len() > most
    }

    /// The number of bytes that wait to be sent.
    pub(crate) const fn waiting(&self) -> usize {
        self.output.len()
    }

    /// Notes that the attempt to connect has ended.
    pub(crate) fn on_connected(&mut self) -> Result<(), Broken> {
        socket::connect_result(self.fd.as_fd()).map_err(|_| Broken)?;
        self.connecting = false;
        Ok(())
    }

    /// Reads up to `turn` bytes, at most [`READ_TURN`], and passes each whole frame to `on_frame`,
    /// with the descriptors that came with it or before it. `on_frame` takes those that belong to
    /// the frame and returns whether to continue. True if there may be more.
    pub(crate) fn read(
        &mut self,
        turn: usize,
        mut on_frame: impl FnMut(&[u8], &mut Vec<OwnedFd>) -> bool,
    ) -> Result<bool, Broken> {
        let mut chunk = [0; READ_TURN];
        let got = match socket::receive(self.fd.as_fd(), &mut chunk[..turn], &mut self.fds) {
            Ok(0) => return Err(Broken),
            Ok(got) => got,
            Err(error) if is_of_now(&error) => return Ok(false),
            Err(_) => return Err(Broken),
        };
        self.input.extend_from_slice(&chunk[..got]);
        self.cut(&mut on_frame)
    }

    /// Queues a frame.
    pub(crate) fn queue(&mut self, frame: &[u8], fds: Vec<OwnedFd>) -> Result<(), Broken> {
        if self.output.len() + frame.len() > MAX_QUEUED {
            return Err(Broken);
        }
        self.output.push(frame, fds);
        Ok(())
    }

    /// Sends as much as the socket takes now.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        if self.connecting {
            return Ok(());
        }
        while !self.output.is_empty() {
            match self.output.send(self.fd.as_fd()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken),
            }
        }
        Ok(())
    }

    /// Cuts the input into frames. False if `on_frame` wants no further frame.
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
        // Descriptors come with the first byte of their frame. So if no frame has begun, they
        // belong to none; and no frame has more than `MAX_FDS`.
        let limit = if self.input.is_empty() { 0 } else { MAX_FDS };
        if self.fds.len() > limit {
            Err(Broken)
        } else {
            Ok(true)
        }
    }
}

/// Whether the error means only that nothing can be read or written now.
fn is_of_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
