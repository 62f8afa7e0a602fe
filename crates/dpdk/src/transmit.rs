//! The sending half. It copies packets into datagrams, which may have several packets for one peer
//! (rule W11), and gives the device all datagrams of a burst together.
//!
//! A datagram to an endpoint of the same device goes to its inbox. One whose neighbour has not
//! answered yet waits for that in `neighbours`. Called by the event loop, and by `connect`.

use std::ops::Range;
use std::sync::Arc;

use dunlin_core::transport::{LANE_PACKET, Lane, LanePacket, Path, PeerId, Tx, TxItem, TxSeq};
use dunlin_core::{Nanos, Scheme};
use dunlin_msgbuf::BufRef;
use dunlin_packet::Sum;
use dunlin_transport::counters::Counters;
use dunlin_transport::lent::data_of;
use dunlin_transport::udp::Book;

use crate::device::{BATCH, Batch, Packet};
use crate::inbox::{Arrived, Payload};
use crate::port::{Port, Seat};
use crate::site::Hop;
use crate::ways::{Open, Way, Ways};

/// The sending half of a `dpdk` endpoint.
#[derive(Debug)]
pub struct DpdkTx {
    pub(crate) book: Book,
    ways: Ways,
    /// The places of those ways that have an open datagram.
    filling: Vec<usize>,
    leaving: Leaving,
    given: TxSeq,
    line_rate: u64,
    base_rtt: Nanos,
}

/// Datagrams on their way to the device.
#[derive(Debug)]
struct Leaving {
    port: &'static Port,
    /// Keeps the endpoint's place while this half exists.
    _seat: Arc<Seat>,
    /// Empty packets.
    spare: Batch,
    /// Complete datagrams; the number of packets and of bytes in each of them, and in all.
    ready: Batch,
    loads: [(u32, u32); BATCH],
    load: (u32, u32),
    /// Whether the device got datagrams since the last [`Port::settle`].
    is_owed: bool,
    counters: Counters,
}

impl DpdkTx {
    pub(crate) fn new(
        seat: Arc<Seat>,
        book: Book,
        longest: u32,
        line_rate: u64,
        base_rtt: Nanos,
    ) -> Self {
        Self {
            book,
            ways: Ways::new(*seat.inbox.home(), longest),
            filling: Vec::with_capacity(BATCH),
            leaving: Leaving {
                port: seat.port,
                _seat: seat,
                spare: Batch::default(),
                ready: Batch::default(),
                loads: [(0, 0); BATCH],
                load: (0, 0),
                is_owed: false,
                counters: Counters::default(),
            },
            given: TxSeq(0),
            line_rate,
            base_rtt,
        }
    }

    /// The counters of this half.
    pub(crate) fn counters(&self) -> Counters {
        self.leaving.counters
    }

    /// Finds the way to a peer that the book has. False if no way leads there.
    pub(crate) fn add_way(&mut self, peer: PeerId) -> bool {
        let port = self.leaving.port;
        let Some(reach) = self.book.reach(peer) else {
            return false;
        };
        let Some(hop) = port.site().hop(reach.address.ip()) else {
            return false;
        };
        self.ways.add(peer, reach, hop, port);
        true
    }

    /// Forgets the way to a peer that the book no longer has.
    pub(crate) fn forget_gone(&mut self, peer: PeerId) {
        if self.book.reach(peer).is_none() {
            self.ways.remove(peer, self.leaving.port);
        }
    }

    /// Adds a packet to the datagram of its peer, or sends it in one of its own.
    fn add(&mut self, peer: PeerId, inline: Option<&[u8]>, data: BufRef) {
        let leaving = &mut self.leaving;
        let Some(way) = self.ways.get(peer) else {
            leaving.counters.tx_dropped_peer += 1;
            return;
        };
        let most = way.most;
        let inline = inline.filter(|it| (1..=most).contains(&(it.len() + data.len())));
        let Some(inline) = inline else {
            leaving.counters.tx_dropped_size += 1;
            return;
        };
        // SAFETY: we send for the endpoint that owns the msgbuf, and copy the bytes at once.
        let Some(data) = (unsafe { data_of(data) }) else {
            leaving.counters.tx_dropped_stale += 1;
            return;
        };
        if way.is_alone {
            return leaving.send_alone(way, inline, data);
        }
        let was_open = way.open.is_some();
        leaving.append(way, inline, data);
        if !was_open && way.open.is_some() {
            self.filling.push(way.reach.place);
        }
    }

    /// As [`Self::add`], for a packet of a lane, which has no other bytes.
    #[inline]
    fn add_staged(&mut self, peer: PeerId, bytes: &[u8]) {
        match self.ways.get(peer) {
            Some(way) if way.is_alone && (1..=way.most).contains(&bytes.len()) => {
                self.leaving.send_alone(way, bytes, &[]);
            }
            _ => self.add(peer, Some(bytes), BufRef::EMPTY),
        }
    }

    #[inline]
    fn add_all(&mut self, items: &[TxItem]) {
        for item in items {
            let inline = item.inline.get(..item.inline_len as usize);
            self.add(item.peer, inline, item.data);
        }
    }

    /// Sends these packets of a lane, and the items after them.
    #[inline]
    pub(crate) fn send_staged(
        &mut self,
        lane: &Lane,
        packets: &[LanePacket],
        items: &[TxItem],
    ) -> TxSeq {
        self.ways.refresh(self.leaving.port);
        for packet in packets {
            self.add_staged(packet.peer(), lane.bytes(*packet));
        }
        self.add_all(items);
        self.finish(packets.len() + items.len())
    }

    /// Sends all datagrams.
    #[inline]
    fn finish(&mut self, count: usize) -> TxSeq {
        for place in self.filling.drain(..) {
            if let Some(way) = self.ways.at(place) {
                self.leaving.close(way);
            }
        }
        self.leaving.send();
        self.given.0 += count as u64;
        self.given
    }
}

impl Leaving {
    /// Puts a packet into a datagram of its own, which is complete.
    #[inline]
    fn send_alone(&mut self, way: &mut Way, inline: &[u8], data: &[u8]) {
        let len = inline.len() + data.len();
        let stamp = way.stamp(len);
        let Some(mut packet) = self.empty() else {
            self.counters.tx_dropped_full += 1;
            return;
        };
        let (frame, start) = (packet.bytes_mut(), stamp.bytes());
        stamp.begin(frame);
        let (head, tail) = frame[start..start + len].split_at_mut(inline.len());
        let mut sum = Sum::default();
        sum.copy(inline, head);
        if !data.is_empty() {
            sum.copy(data, tail);
        }
        stamp.finish(frame, sum);
        packet.truncate(start + len);
        self.push(packet, 1, u32::try_from(len).expect("it fits a datagram"));
    }

    /// Adds a packet to the open datagram of a way, or to a new one.
    #[inline]
    fn append(&mut self, way: &mut Way, inline: &[u8], data: &[u8]) {
        let len = u32::try_from(inline.len() + data.len()).expect("it fits a datagram");
        let limit = way.limit;
        if way.open.as_ref().is_some_and(|it| it.payload + len > limit) {
            self.close(way);
        }
        if way.open.is_none() {
            way.open = self.open(way.header.bytes());
        }
        let Some(open) = &mut way.open else {
            self.counters.tx_dropped_full += 1;
            return;
        };
        for part in [inline, data] {
            let end = open.at + part.len();
            open.sum
                .copy(part, &mut open.packet.bytes_mut()[open.at..end]);
            open.at = end;
        }
        open.payload += len;
        open.packets += 1;
    }

    /// An empty datagram; `None` if the pool has none.
    #[inline]
    fn open(&mut self, at: usize) -> Option<Open> {
        Some(Open {
            packet: self.empty()?,
            at,
            sum: Sum::default(),
            packets: 0,
            payload: 0,
        })
    }

    /// An empty packet; `None` if the pool has none.
    #[inline]
    fn empty(&mut self) -> Option<Packet> {
        if self.spare.len() == 0 {
            self.port.pool().take(&mut self.spare);
        }
        self.spare.take()
    }

    /// Completes the open datagram of a way, if it has one.
    #[inline]
    fn close(&mut self, way: &mut Way) {
        let Some(mut open) = way.open.take() else {
            return;
        };
        open.packet.truncate(open.at);
        let (payload, packets) = (open.payload, open.packets);
        if let Hop::Here = way.hop {
            return self.deliver(way, open);
        }
        let frame = open.packet.bytes_mut();
        way.header.write(frame, payload as usize, open.sum);
        if !way.is_known {
            return self.hold(way.hop, open);
        }
        self.push(open.packet, packets, payload);
    }

    /// Adds a complete datagram to those that leave next.
    #[inline]
    fn push(&mut self, datagram: Packet, packets: u32, bytes: u32) {
        if self.ready.is_full() {
            self.send();
        }
        self.loads[self.ready.len()] = (packets, bytes);
        self.load.0 += packets;
        self.load.1 += bytes;
        self.ready.push(datagram);
    }

    /// Gives a datagram to an endpoint of the same device.
    fn deliver(&mut self, way: &Way, open: Open) {
        let (packets, bytes) = (open.packets, open.payload);
        let payload = Payload {
            start: way.header.bytes(),
            len: bytes as usize,
            congestion: false,
        };
        let arrived = Arrived {
            packet: open.packet,
            payload,
        };
        let number = way.reach.address.port();
        self.port.deliver(number, arrived);
        self.count(true, packets, bytes);
    }

    /// Leaves a datagram until its neighbour has answered.
    #[cold]
    fn hold(&mut self, hop: Hop, open: Open) {
        let (packets, bytes) = (open.packets, open.payload);
        if let Hop::Neighbour(ip) = hop {
            let is_held = self.port.hold(ip, open.packet);
            self.count(is_held, packets, bytes);
        }
    }

    /// Hands all complete datagrams to the device.
    #[inline]
    fn send(&mut self) {
        let count = self.ready.len();
        if count == 0 {
            return;
        }
        let dropped = self.port.send(&mut self.ready);
        self.is_owed = true;
        let (packets, bytes) = std::mem::take(&mut self.load);
        self.count(true, packets, bytes);
        if dropped > 0 {
            self.on_dropped(count - dropped..count);
        }
    }

    /// Notes that the device did not take some of the datagrams that were counted.
    #[cold]
    fn on_dropped(&mut self, places: Range<usize>) {
        for (packets, bytes) in &self.loads[places] {
            self.counters.tx_packets -= u64::from(*packets);
            self.counters.tx_bytes -= u64::from(*bytes);
            self.counters.tx_dropped_full += u64::from(*packets);
        }
    }

    fn count(&mut self, is_sent: bool, packets: u32, bytes: u32) {
        if is_sent {
            self.counters.tx_packets += u64::from(packets);
            self.counters.tx_bytes += u64::from(bytes);
        } else {
            self.counters.tx_dropped_full += u64::from(packets);
        }
    }
}

impl Tx for DpdkTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.ways.refresh(self.leaving.port);
        self.add_all(items);
        self.finish(items.len())
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        self.given
    }

    fn lane(&self) -> usize {
        LANE_PACKET
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        self.send_staged(lane, lane.packets(), items)
    }

    fn path(&self, peer: PeerId) -> Option<Path> {
        self.book.reach(peer).map(|_| Path {
            line_rate: self.line_rate,
            base_rtt: self.base_rtt,
            scheme: Scheme::Swift,
        })
    }

    #[inline]
    fn settle(&mut self) {
        if self.leaving.is_owed {
            self.leaving.is_owed = false;
            self.leaving.port.settle();
        }
    }

    fn flush(&mut self) {}
}

impl Drop for DpdkTx {
    fn drop(&mut self) {
        let port = self.leaving.port;
        self.ways.clear(port);
        port.pool().free(&mut self.leaving.spare);
    }
}
