//! The bytes that wait to be sent over one control connection, in one buffer, with the descriptors
//! of some frames.
//!
//! Invariants: short frames cost no memory outside the buffer, so a peer that does not read costs
//! only the memory that is counted; descriptors leave with the first byte of their frame (rule C3),
//! and one system call sends the descriptors of one frame. Called by `stream.rs`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::ffi::socket;

/// Capacity that an empty buffer keeps for the next frames.
const KEPT: usize = 4096;

/// The waiting bytes, with their descriptors.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// The place of the first byte that has not been sent.
    at: usize,
    /// Descriptors, in order, each set with the place in `bytes` where its frame begins.
    fds: VecDeque<(usize, Vec<OwnedFd>)>,
}

impl Output {
    /// Bytes that wait.
    pub(super) const fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a frame.
    pub(super) fn push(&mut self, frame: &[u8], fds: Vec<OwnedFd>) {
        // Sent bytes are removed once they are half of the buffer, so each byte moves at most once.
        if self.at > self.len() {
            self.forget_sent();
        }
        if !fds.is_empty() {
            self.fds.push_back((self.bytes.len(), fds));
        }
        self.bytes.extend_from_slice(frame);
    }

    /// Sends as much as the socket takes, but not beyond the bytes that one set of descriptors may
    /// accompany.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let with = self.fds.front().filter(|(begin, _)| *begin == self.at);
        let next = self.fds.get(usize::from(with.is_some()));
        let end = next.map_or(self.bytes.len(), |(begin, _)| *begin);
        let fds = with.map_or(&[][..], |(_, fds)| fds);
        let sent = socket::send(socket, &self.bytes[self.at..end], fds)?;
        if with.is_some() {
            // The descriptors went with the first byte; the receiver has its own copies now.
            self.fds.pop_front();
        }
        self.at += sent;
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.at = 0;
        }
        Ok(())
    }

    /// Bytes of memory for frames.
    #[cfg(test)]
    pub(super) const fn cost(&self) -> usize {
        self.bytes.capacity()
    }

    fn forget_sent(&mut self) {
        self.bytes.drain(..self.at);
        for (begin, _) in &mut self.fds {
            *begin -= self.at;
        }
        self.at = 0;
    }
}
