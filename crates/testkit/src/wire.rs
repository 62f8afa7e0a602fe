//! A transport between two endpoints whose frames are accessible, so that a test can deliver, take
//! or change them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use dunlin_core::transport::{
    Frame, Halves, Lane, Limits, MAX_INLINE, Path, PeerId, RX_BURST, Rx, Transport, Tx, TxItem,
    TxSeq,
};
use dunlin_core::{Nanos, Scheme};
use dunlin_msgbuf::PeerBytes;
use dunlin_wire::{Header, PacketType};

use crate::clock::StepClock;
use crate::packet::{bytes_of, front_of};

/// Frames, in their order.
pub type Queue = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// The transport, whose halves are [`WireRx`] and [`WireTx`].
#[derive(Clone, Copy, Debug)]
pub struct Wire;

impl Wire {
    /// The number by which each endpoint knows the other.
    pub const PEER: PeerId = PeerId(7);
    /// Data bytes of a packet.
    pub const DATA_SIZE: u32 = 1024;
}

impl Transport for Wire {
    type Rx = WireRx;
    type Tx = WireTx;
}

/// The handles of one end, with which a test controls it; clones control the same end.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Frames that it has sent.
    pub out: Queue,
    /// Frames that it is about to receive.
    pub inbox: Queue,
    /// While set, the transport reports no packet as done, so all their msgbufs stay lent.
    pub stuck: Rc<Cell<bool>>,
    /// Where the data of frames to this end lies.
    pub references: Rc<Cell<References>>,
    /// While set, the network marks frames that are delivered to it.
    pub congestion: Rc<Cell<bool>>,
    /// Nanoseconds that it takes to send a packet.
    pub cost_ns: Rc<Cell<u64>>,
    /// The round trip that the path to the other end declares; zero for none. Sessions learn it
    /// when they open.
    pub base_rtt: Rc<Cell<Nanos>>,
    /// The longest packet that the endpoint stages, if that is more than a cache line.
    pub lane: usize,
}

impl End {
    /// The transport of this end.
    pub fn halves(&self, clock: &StepClock) -> Halves<WireRx, WireTx> {
        Halves {
            rx: WireRx {
                end: self.clone(),
                burst: Vec::new(),
                generation: AtomicU32::new(1),
            },
            tx: WireTx {
                end: self.clone(),
                taken: 0,
                done: 0,
                clock: clock.clone(),
            },
            limits: Limits {
                data_size: Wire::DATA_SIZE,
                rx_queue: 1024,
                line_rate: 1 << 30,
            },
        }
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct WireRx {
    end: End,
    burst: Vec<Vec<u8>>,
    /// The generation of the data that the peer has lent.
    generation: AtomicU32,
}

/// Where the data of packets lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum References {
    /// In the packets.
    #[default]
    None,
    /// In the memory of the sender.
    All,
    /// In the memory of the sender, which has revoked it.
    Revoked,
    /// In the memory of the sender, and its first byte also follows the header.
    Repeated,
}

impl WireRx {
    /// The frames, if they hold all of their data and are not marked.
    fn whole_frames(&self) -> &[Vec<u8>] {
        match (self.end.references.get(), self.end.congestion.get()) {
            (References::None, false) => &self.burst,
            _ => &[],
        }
    }
}

impl Rx for WireRx {
    fn burst(&mut self) -> usize {
        let mut queue = self.end.inbox.borrow_mut();
        let count = queue.len().min(RX_BURST);
        self.burst = queue.drain(..count).collect();
        count
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let bytes = &self.burst[index];
        let lent = match self.end.references.get() {
            References::None => {
                let congestion = self.end.congestion.get();
                return Frame {
                    congestion,
                    ..Frame::new(bytes)
                };
            }
            References::All | References::Repeated => 1,
            References::Revoked => 3,
        };
        let front = front_of(bytes).expect("an endpoint sent it");
        let repeated = self.end.references.get() == References::Repeated && front < bytes.len();
        let (data, front) = (&bytes[front..], &bytes[..front + usize::from(repeated)]);
        let mut frame = Frame::new(front);
        if !data.is_empty() {
            frame.elsewhere = Some(PeerBytes::of(data, &self.generation, lent));
        }
        frame
    }

    fn first(&self) -> Option<&[u8]> {
        self.whole_frames().first().map(Vec::as_slice)
    }

    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let frames = self.whole_frames().get(first..).unwrap_or_default();
        frames.iter().map(Vec::as_slice)
    }
}

/// The sending half.
#[derive(Debug)]
pub struct WireTx {
    end: End,
    taken: u64,
    done: u64,
    clock: StepClock,
}

impl WireTx {
    fn take(&mut self, peer: PeerId, bytes: Vec<u8>) {
        assert_eq!(peer, Wire::PEER);
        self.end.out.borrow_mut().push_back(bytes);
        self.taken += 1;
        self.clock.pass(Nanos(self.end.cost_ns.get()));
    }
}

impl Tx for WireTx {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        for item in items {
            self.take(item.peer, bytes_of(item));
        }
        TxSeq(self.taken)
    }

    /// Usually one cache line, so that the endpoint lends the messages of longer packets.
    fn lane(&self) -> usize {
        self.end.lane.max(MAX_INLINE)
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        for packet in lane.packets() {
            self.take(packet.peer(), lane.bytes(*packet).to_vec());
        }
        self.burst(items)
    }

    fn done(&mut self) -> TxSeq {
        if !self.end.stuck.get() {
            self.done = self.taken;
        }
        TxSeq(self.done)
    }

    fn path(&self, _peer: PeerId) -> Option<Path> {
        Some(Path {
            line_rate: 1 << 30,
            base_rtt: self.end.base_rtt.get(),
            scheme: Scheme::None,
        })
    }

    fn flush(&mut self) {}
}

/// Delivers all frames, and returns their number.
pub fn deliver(from: &Queue, to: &Queue) -> usize {
    let moved = from.borrow().len();
    to.borrow_mut().extend(from.borrow_mut().drain(..));
    moved
}

/// Takes the packets that a host has sent off the wire.
///
/// # Panics
/// If one of them is not a packet.
pub fn take(queue: &Queue) -> Vec<Header> {
    queue
        .borrow_mut()
        .drain(..)
        .map(|bytes| Header::decode(&bytes).expect("an endpoint sent it"))
        .collect()
}

/// The kinds of packets.
pub fn kinds(headers: &[Header]) -> Vec<PacketType> {
    headers.iter().map(|header| header.kind).collect()
}
