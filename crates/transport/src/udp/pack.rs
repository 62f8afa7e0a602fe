//! Decides which packets share a datagram, and which datagrams share a message to the kernel.
//!
//! Packets to one peer lie back to back in a datagram (rule W11) until it is full; a packet is
//! never split. Datagrams of equal size, and a shorter one after them, form one message that the
//! kernel or the device splits again (GSO, `udp(7)`: `UDP_SEGMENT`).
//!
//! Invariant: in a message with segment size S every datagram but the last has exactly S bytes, the
//! last has 1 to S bytes, there are at most [`MAX_SEGMENTS`] of them, and together they have at
//! most [`MAX_MESSAGE_BYTES`]. No I/O; called by `tx` with the lengths of consecutive packets.

/// The most datagrams in one message (`UDP_MAX_SEGMENTS` of older kernels).
pub(super) const MAX_SEGMENTS: u32 = 64;

/// The most bytes in one message, and in one datagram: 65 535 less the headers of IPv6 and UDP.
pub(super) const MAX_MESSAGE_BYTES: u32 = 65_535 - 48;

/// Where the next packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// After the packet before it, in the same datagram.
    Append,
    /// Into a new datagram of the same message.
    Segment,
    /// Into a new message.
    Message,
}

/// The limits of the datagrams and messages for one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// The most bytes in a datagram that holds several packets, or that shares its message with
    /// other datagrams. A single packet may be longer.
    pub(super) datagram: u32,
    /// Whether several packets may share a datagram.
    pub(super) pack: bool,
    /// Whether several datagrams may share a message.
    pub(super) segment: bool,
}

/// Packs the packets of one peer, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packer {
    shape: Shape,
    /// Bytes of the message so far; 0 before the first packet.
    total: u32,
    /// Bytes of the datagram so far.
    current: u32,
    /// The most bytes of the datagram: the segment size once the message has two datagrams.
    limit: u32,
    /// Datagrams of the message so far.
    segments: u32,
}

impl Packer {
    /// The state before the first packet to a peer.
    pub(super) const fn new(shape: Shape) -> Self {
        Self {
            shape,
            total: 0,
            current: 0,
            limit: shape.datagram,
            segments: 0,
        }
    }

    /// Bytes of every datagram but the last, or 0 while the message is one datagram.
    pub(super) const fn segment_size(&self) -> u32 {
        if self.segments > 1 { self.limit } else { 0 }
    }

    /// Decides where a packet of `len` bytes goes, and counts it there.
    #[inline]
    pub(super) fn fit(&mut self, len: u32) -> Fit {
        let fit = self.choose(len);
        match fit {
            Fit::Append => self.current += len,
            Fit::Segment => {
                self.limit = if self.segments == 1 {
                    self.current
                } else {
                    self.limit
                };
                self.segments += 1;
                self.current = len;
            }
            Fit::Message => {
                *self = Self::new(self.shape);
                self.segments = 1;
                self.current = len;
            }
        }
        self.total += len;
        fit
    }

    fn choose(&self, len: u32) -> Fit {
        if self.total == 0 || self.total + len > MAX_MESSAGE_BYTES {
            return Fit::Message;
        }
        if self.shape.pack && self.current + len <= self.limit {
            return Fit::Append;
        }
        // The first datagram may be a single packet beyond the limit, which is then sent alone.
        let full = self.segments == 1 || self.current == self.limit;
        let size = if self.segments == 1 {
            self.current
        } else {
            self.limit
        };
        let room = size <= self.shape.datagram && self.segments < MAX_SEGMENTS;
        if self.shape.segment && full && room && len <= size {
            return Fit::Segment;
        }
        Fit::Message
    }
}

#[cfg(test)]
mod tests;
