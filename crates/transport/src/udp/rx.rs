//! The receiving half: from datagrams in the socket to frames.
//!
//! There are two ways to ask the kernel, and the traffic decides between them ([`Mode`]):
//! - *sparse*: `recv`, one datagram into one buffer. It is the cheapest call if there is at most
//!   one datagram, as in a ping-pong.
//! - *dense*: `recvmmsg` into all buffers, with GRO on: the kernel may put several datagrams of one
//!   size into one buffer, with the size in a control message; each becomes one frame.
//!
//! ECN bits also come in control messages, so an endpoint that reads them is always dense. GRO is
//! off while sparse, because `recv` cannot report the size. (A datagram that another core delivers
//! at the moment of the switch may still come merged; then the frame holds the packets of several
//! datagrams back to back, which is a valid frame.)
//!
//! Invariant: datagrams beyond [`RX_BURST`] wait for the next burst; this half asks the kernel
//! again only after it has shown all of them. Called by the event loop, and by `connect`.

use std::sync::Arc;

use dunlin_core::transport::{Frame, RX_BURST, Rx};

use super::buffers::{Buffers, ReceivedBytes};
use super::cmsg::Notes;
use super::ffi::{self, Errno};
use super::socket::Socket;
use crate::counters::Counters;

/// Bytes of a buffer with room for all datagrams that GRO merges.
const GRO_BUFFER: usize = 1 << 16;
/// Number of consecutive bursts with a datagram after which traffic counts as dense.
const DENSE_AFTER: u32 = 4;
/// Number of consecutive bursts with fewer than two datagrams after which traffic counts as sparse.
const SPARSE_AFTER: u32 = 256;

/// The call with which to ask the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// `recv`, with the number of consecutive bursts that found a datagram.
    Sparse(u32),
    /// `recvmmsg`, with the number of consecutive bursts that found fewer than two datagrams.
    Dense(u32),
}

/// A frame of this burst, by its place in the buffers.
#[derive(Clone, Copy, Debug, Default)]
struct FrameSpan {
    start: usize,
    len: usize,
    congestion: bool,
}

/// The unread rest of a buffer that the kernel filled; never empty.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    start: usize,
    end: usize,
    /// Bytes of each datagram but the last; never 0.
    segment: usize,
    congestion: bool,
}

/// The receiving half of a `udp` endpoint.
#[derive(Debug)]
pub struct UdpRx {
    socket: Arc<Socket>,
    mode: Mode,
    buffers: Buffers,
    /// The buffers that the last call filled, and the first one with unread datagrams.
    rests: [Rest; RX_BURST],
    filled: usize,
    next: usize,
    frames: [FrameSpan; RX_BURST],
    visible: usize,
    counters: Counters,
}

impl UdpRx {
    /// A half with buffers of at least `datagram` bytes; of 64 KB if GRO may fill them.
    pub(super) fn new(socket: Arc<Socket>, datagram: u32) -> Self {
        let at_least = if socket.gro {
            GRO_BUFFER
        } else {
            datagram as usize
        };
        let mut rx = Self {
            mode: Mode::Sparse(0),
            buffers: Buffers::new(RX_BURST, at_least.next_multiple_of(64)),
            rests: [Rest::default(); RX_BURST],
            filled: 0,
            next: 0,
            frames: [FrameSpan::default(); RX_BURST],
            visible: 0,
            counters: Counters::default(),
            socket,
        };
        if rx.socket.ecn {
            rx.enter_dense();
        }
        rx
    }

    /// The socket of both halves.
    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Longest datagram that the half receives whole.
    pub(super) fn buffer_bytes(&self) -> u32 {
        u32::try_from(self.buffers.size()).expect("buffers have at most 64 KB")
    }

    /// True if the next burst would find a datagram.
    pub(super) fn has_more(&self) -> bool {
        self.next < self.filled || ffi::is_readable(self.socket.fd())
    }

    /// The counters of this half.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            rx_overflow: ffi::receive_drops(self.socket.fd()),
            ..self.counters
        }
    }

    fn enter_dense(&mut self) {
        if self.socket.gro {
            // If the kernel refuses now, datagrams come one by one, which is only slower.
            self.socket.set_gro(true);
        }
        self.mode = Mode::Dense(0);
    }

    fn enter_sparse(&mut self) {
        if !self.socket.gro || self.socket.set_gro(false) {
            self.mode = Mode::Sparse(0);
        }
    }

    /// Asks for one datagram. `found` is the number of consecutive bursts before this one that
    /// found a datagram.
    #[inline]
    fn fill_sparse(&mut self, found: u32) {
        match self.receive_one() {
            Ok(len) => {
                self.mode = Mode::Sparse(found + 1);
                let cut = len > self.buffers.size();
                self.take(
                    0,
                    ReceivedBytes {
                        len,
                        cut,
                        notes: Notes::default(),
                    },
                );
                if found + 1 >= DENSE_AFTER {
                    self.enter_dense();
                }
            }
            Err(errno) => {
                self.mode = Mode::Sparse(0);
                self.count_error(errno);
            }
        }
    }

    #[inline]
    fn receive_one(&mut self) -> Result<usize, Errno> {
        let fd = self.socket.fd();
        if !self.socket.wants_sources() {
            return self.buffers.receive_one(fd);
        }
        let (len, source) = self.buffers.receive_one_from(fd)?;
        self.socket.on_source(&source);
        Ok(len)
    }

    fn receive_many(&mut self) -> Result<usize, Errno> {
        let fd = self.socket.fd();
        if !self.socket.wants_sources() {
            return self.buffers.receive_many(fd);
        }
        let (filled, source) = self.buffers.receive_many_from(fd)?;
        self.socket.on_source(&source);
        Ok(filled)
    }

    /// Asks for as many datagrams as there are buffers. `calm` is the number of consecutive bursts
    /// before this one that found fewer than two datagrams.
    fn fill_dense(&mut self, calm: u32) {
        let filled = self.receive_many().unwrap_or_else(|errno| {
            self.count_error(errno);
            0
        });
        let mut many = filled > 1;
        for index in 0..filled {
            let arrival = self.buffers.arrival(index);
            many |= arrival.notes.segment != 0;
            self.take(index, arrival);
        }
        self.mode = Mode::Dense(if many { 0 } else { calm.saturating_add(1) });
        if !many && calm >= SPARSE_AFTER && !self.socket.ecn {
            self.enter_sparse();
        }
    }

    /// Notes the datagrams that the kernel put into buffer `index`.
    #[inline]
    fn take(&mut self, index: usize, arrival: ReceivedBytes) {
        let ReceivedBytes { len, cut, notes } = arrival;
        if cut || len == 0 {
            // No peer sends us a datagram so long that it is cut. An empty one holds no packet.
            self.counters.rx_corrupt += 1;
            return;
        }
        let start = self.buffers.start(index);
        let segment = if notes.segment == 0 {
            len
        } else {
            notes.segment
        };
        let congestion = notes.congestion;
        self.rests[self.filled] = Rest {
            start,
            end: start + len,
            segment,
            congestion,
        };
        self.filled += 1;
    }

    /// Shows datagrams until the burst is full or none is left.
    #[inline]
    fn show(&mut self) {
        while self.next < self.filled && self.visible < RX_BURST {
            let rest = &mut self.rests[self.next];
            let len = rest.segment.min(rest.end - rest.start);
            let congestion = rest.congestion;
            self.frames[self.visible] = FrameSpan {
                start: rest.start,
                len,
                congestion,
            };
            self.visible += 1;
            self.counters.rx_bytes += len as u64;
            rest.start += len;
            self.next += usize::from(rest.start == rest.end);
        }
        self.counters.rx_packets += self.visible as u64;
    }

    fn count_error(&mut self, errno: Errno) {
        // An empty queue is normal, and so is the report to a tied socket that its peer is gone,
        // or that a router has refused a long datagram to it. Any other error counts like an
        // unreadable datagram.
        match errno.0 {
            libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::EMSGSIZE => {}
            _ => self.counters.rx_corrupt += 1,
        }
    }
}

impl Rx for UdpRx {
    #[inline]
    fn burst(&mut self) -> usize {
        self.visible = 0;
        if self.next == self.filled {
            self.next = 0;
            self.filled = 0;
            self.counters.syscalls += 1;
            match self.mode {
                Mode::Sparse(found) => self.fill_sparse(found),
                Mode::Dense(calm) => self.fill_dense(calm),
            }
        }
        if self.filled > 0 {
            self.show();
        }
        self.visible
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        let span = self.frames[..self.visible][index];
        Frame {
            bytes: self.buffers.bytes(span.start, span.len),
            congestion: span.congestion,
            elsewhere: None,
        }
    }
}

#[cfg(test)]
mod tests;
