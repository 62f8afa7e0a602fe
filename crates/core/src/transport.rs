//! The transport, as an endpoint uses it: unreliable datagram I/O in two halves (eRPC §3, design
//! §12). A transport moves frames; it never reads a Dunlin header, so a packet router can use it.
//!
//! The two halves are separate values, so that the event loop can hold a frame borrowed from the RX
//! half while a handler pushes packets towards the TX half.
//!
//! Ownership of sent bytes: a [`TxItem`] names bytes of a msgbuf by [`BufRef`]. The endpoint keeps
//! the msgbuf alive and unchanged until [`Tx::done`] has reached the item's place in the sequence.
//! If a `BufRef` was revoked (its generation is old), the endpoint has a bug: the transport drops
//! the item and counts it, and a simulation fails.

mod lane;

use dunlin_msgbuf::{BufRef, PeerBytes};
use dunlin_wire::{HEADER_LEN, MAX_EXTENSION};

use crate::scheme::Scheme;
use crate::time::Nanos;

pub(crate) use lane::LaneRoom;
pub(crate) use lane::Owner;
pub use lane::{
    InLane, LANE_COPIED, LANE_LINE, LANE_LINES, LANE_PACKET, LANE_WORD, Lane, LanePacket, Messages,
    Source,
};

/// A remote endpoint as one transport knows it: an index into the transport's peer table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PeerId(pub u32);

/// The most inline bytes before a packet's data: the header and the longest extension.
pub const MAX_INLINE: usize = HEADER_LEN + MAX_EXTENSION;

/// The most frames that one [`Rx::burst`] makes visible.
pub const RX_BURST: usize = 32;

/// One packet to send: inline bytes, then the bytes that `data` names (perhaps none).
#[derive(Clone, Copy, Debug)]
pub struct TxItem {
    /// The destination.
    pub peer: PeerId,
    /// The number of bytes of `inline` that belong to the packet.
    pub inline_len: u32,
    /// Header and extension, at most [`MAX_INLINE`] bytes.
    pub inline: [u8; MAX_INLINE],
    /// The data after the inline bytes; [`BufRef::EMPTY`] if there is none.
    pub data: BufRef,
}

/// Position in the sequence of all packets given to a transport: the number of packets before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TxSeq(pub u64);

/// One frame as it came in. It may hold several packets back to back.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes, without any alignment. They do not change while they are borrowed.
    pub bytes: &'a [u8],
    /// Whether the network marked the frame "congestion experienced" (ECN).
    pub congestion: bool,
    /// The data of the frame's only packet, if it lies in the sender's memory and not after the
    /// header.
    pub elsewhere: Option<PeerBytes<'a>>,
}

impl<'a> Frame<'a> {
    /// Makes a frame that holds all of its data and was not marked.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            congestion: false,
            elsewhere: None,
        }
    }

    /// The bytes, if the frame holds all of its data and was not marked.
    #[inline(always)]
    pub const fn whole(&self) -> Option<&'a [u8]> {
        match self {
            Self {
                bytes,
                congestion: false,
                elsewhere: None,
            } => Some(bytes),
            _ => None,
        }
    }
}

/// The result of [`Rx::begin`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begun {
    /// The burst is over, without a frame.
    Nothing,
    /// The burst is over, and has one frame.
    One,
    /// [`Rx::finish`] must be called next, with this number, whose meaning only the transport
    /// knows.
    Unfinished(u32),
}

/// The receiving half.
pub trait Rx {
    /// Gives back the frames of the previous burst and makes up to [`RX_BURST`] new ones visible.
    ///
    /// Returns their number. Never blocks.
    fn burst(&mut self) -> usize;

    /// Begins a burst. A transport that often finds nothing, or one short frame, may end such a
    /// burst here, in few instructions. The default leaves everything to [`Rx::finish`].
    #[inline(always)]
    fn begin(&mut self) -> Begun {
        Begun::Unfinished(0)
    }

    /// Does the rest of a burst that [`Rx::begin`] has begun with [`Begun::Unfinished`]; returns
    /// the number of frames.
    #[inline(always)]
    fn finish(&mut self, _begun: u32) -> usize {
        self.burst()
    }

    /// The frame with this index in the current burst, whose size [`Rx::burst`] has returned.
    ///
    /// Panics if there is no such frame; the event loop never asks for one.
    fn frame(&self, index: usize) -> Frame<'_>;

    /// The bytes of the frame with this index, if it holds all of its data, was not marked, and the
    /// transport finds it quickly. `None` is always allowed: the event loop then calls
    /// [`Rx::frame`].
    #[inline]
    fn whole(&self, index: usize) -> Option<&[u8]> {
        self.frame(index).whole()
    }

    /// The bytes of the burst's first frame, if the transport has them at hand. `None` is always
    /// allowed: the event loop then calls [`Rx::whole`].
    #[inline(always)]
    fn first(&self) -> Option<&[u8]> {
        None
    }

    /// The bytes of consecutive frames, from frame `first` on, as [`Rx::whole`] would return them.
    /// The transport may end the row early, and an empty one is always allowed.
    #[inline(always)]
    fn lined_up(&self, _first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        std::iter::empty()
    }
}

/// The sending half.
pub trait Tx {
    /// Takes over `items` in order, and returns the position after the last one. Without items,
    /// that is the position that the sequence has reached, from which a new endpoint counts.
    ///
    /// Never blocks and never fails: a packet that cannot be sent (full queue, unknown or dead
    /// peer, device error) is dropped and counted, like a loss in the network.
    fn burst(&mut self, items: &[TxItem]) -> TxSeq;

    /// The position up to which the transport no longer needs the msgbufs of the packets. A packet
    /// may also count as done while a receiver still copies it, if the receiver checks after
    /// copying that the msgbuf did not change.
    fn done(&mut self) -> TxSeq;

    /// Longest packet in a [`Lane`] that this transport sends, in bytes: up to [`LANE_PACKET`]. If
    /// it is shorter than a packet that fills one line, the endpoint uses no lane, and never calls
    /// [`Self::send`]. A transport without lanes returns 0.
    fn lane(&self) -> usize {
        0
    }

    /// Whether the transport takes lanes whose packets all have the peer and the length of this one
    /// ([`Lane::alike`]) by [`Self::send_alike`].
    fn takes_alike(&self, _packet: LanePacket) -> bool {
        false
    }

    /// Like [`Self::send`], for a lane whose packets are all like this one. The lane has no list of
    /// the packets. If the packets are longer than [`LANE_COPIED`], the lane may lack their
    /// messages, and the transport gets these from [`Lane::message`].
    #[inline(always)]
    fn send_alike<'a>(
        &mut self,
        lane: &'a Lane,
        _packet: LanePacket,
        _messages: impl Messages<'a>,
    ) -> TxSeq {
        self.send(lane, &[])
    }

    /// Takes over the packets of a lane, and `items` after them. Both count in the sequence. When
    /// this returns, the lane's bytes belong to the endpoint again. Otherwise like [`Self::burst`].
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        debug_assert!(lane.is_empty(), "this transport has no lanes");
        self.burst(items)
    }

    /// Like [`Self::send_alike`], for a lane that holds only this packet. The receiver is waiting
    /// for the packet, so this should be fast.
    #[inline(always)]
    fn send_lone<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        self.send_alike(lane, packet, messages)
    }

    /// The network path to a peer. `None`: there is no network. Then the line rate is the one in
    /// [`Limits`], only credits limit packets, and an unanswered packet is not lost but waits for
    /// the peer.
    fn path(&self, _peer: PeerId) -> Option<Path> {
        None
    }

    /// Whether a short packet to this peer may overtake long packets that were sent before it. If
    /// so, the endpoint must not consider the long packets of a message lost when the short last
    /// packet is answered first.
    fn reorders(&self, _peer: PeerId) -> bool {
        false
    }

    /// Does work that `burst` has postponed because it would have delayed packets, such as finding
    /// out whether a peer has just gone to sleep. The endpoint calls it when it has nothing to
    /// send, which is within about a microsecond of a burst, and before it runs a slow handler or
    /// sleeps.
    fn settle(&mut self) {}

    /// Waits until all packets handed over are done. It may be slow (eRPC §4.2.2 measures 2 µs on a
    /// NIC); the endpoint calls it only when it closes.
    fn flush(&mut self);
}

/// A transport as a pair of types, so that `Endpoint<T, …>` is monomorphic (eRPC §6, "static
/// polymorphism"). The owner of the endpoint adds the peers: see `Connect` in `dunlin-transport`,
/// and the simulator.
pub trait Transport {
    /// The receiving half.
    type Rx: Rx;
    /// The sending half.
    type Tx: Tx;
}

/// The limits of a transport, which an endpoint must know before it opens sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most data bytes in one packet, without header and extension.
    pub data_size: u32,
    /// Packets that the RX queue holds before it overflows (eRPC §4.3.1: |RQ|).
    pub rx_queue: u32,
    /// Rate of the link in bytes per second, from which congestion control starts.
    pub line_rate: u64,
}

/// The path to one peer, as its transport declares it (design §7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Rate of this host's link in bytes per second, at which congestion control starts and which
    /// it never exceeds.
    pub line_rate: u64,
    /// Round trip of a packet through an empty network; [`Nanos::ZERO`] if the transport does not
    /// know it. If the transport declares it, the endpoint also trusts the line rate, and sends the
    /// packets of large responses no faster than that rate (rule S13).
    pub base_rtt: Nanos,
    /// The congestion control of sessions that choose none.
    pub scheme: Scheme,
}

/// Both halves and the limits, as an endpoint gets them.
#[derive(Debug)]
pub struct Halves<R, T> {
    /// The receiving half.
    pub rx: R,
    /// The sending half.
    pub tx: T,
    /// The limits of the transport.
    pub limits: Limits,
}
