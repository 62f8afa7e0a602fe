//! The sending half: packets are copied into datagrams, those to one peer into the same (rule W11),
//! and all datagrams of a burst go to the device together.
//!
//! A datagram to an endpoint of the same device goes to its inbox. One whose neighbour has not
//! answered yet waits for that in `neighbours`. Called by the event loop, and by `connect`.

use std::sync::Arc;

use dunlin_core::transport::{LANE_PACKET, Lane, Path, PeerId, Tx, TxItem, TxSeq};
use dunlin_core::{Nanos, Scheme};
use dunlin_msgbuf::{BufRef, regions};
use dunlin_packet::Sum;
use dunlin_transport::counters::Counters;
use dunlin_transport::udp::Book;

use crate::device::{BATCH, Batch};
use crate::inbox::{Arrived, Payload};
use crate::port::{Port, Seat};
use crate::site::Hop;
use crate::ways::{Open, Way, Ways};

/// The sending half of a `dpdk` endpoint.
#[derive(Debug)]
pub struct DpdkTx {
    pub(crate) book: Book,
    ways: Ways,
    /// Places of ways with an open datagram, each once.
    filling: Vec<usize>,
    leaving: Leaving,
    /// Longest datagram.
    longest: u32,
    given: TxSeq,
    line_rate: u64,
    base_rtt: Nanos,
}

/// Datagrams on their way to the device.
#[derive(Debug)]
struct Leaving {
    seat: Arc<Seat>,
    /// Empty packets.
    spare: Batch,
    /// Complete datagrams, and the packets and bytes of each.
    ready: Batch,
    loads: [(u32, u32); BATCH],
    /// Whether the device got any since it was last asked.
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
            ways: Ways::new(*seat.inbox.home()),
            filling: Vec::with_capacity(BATCH),
            leaving: Leaving {
                seat,
                spare: Batch::default(),
                ready: Batch::default(),
                loads: [(0, 0); BATCH],
                is_owed: false,
                counters: Counters::default(),
            },
            longest,
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
        let port = self.leaving.seat.port;
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
            self.ways.remove(peer, self.leaving.seat.port);
        }
    }

    /// Adds a packet to the datagram of its peer.
    #[inline]
    fn add(&mut self, peer: PeerId, inline: Option<&[u8]>, data: BufRef) {
        let leaving = &mut self.leaving;
        let Some(way) = self.ways.get(peer, leaving.seat.port) else {
            leaving.counters.tx_dropped_peer += 1;
            return;
        };
        let most = way.reach.packet.min(self.longest) as usize;
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
        let was_open = way.open.is_some();
        leaving.append(way, inline, data, self.longest);
        if !was_open && way.open.is_some() {
            self.filling.push(way.reach.place);
        }
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
    /// Adds a packet to the open datagram of a way, or to a new one.
    #[inline]
    fn append(&mut self, way: &mut Way, inline: &[u8], data: &[u8], longest: u32) {
        let len = u32::try_from(inline.len() + data.len()).expect("it fits a datagram");
        let limit = match way.reach.pack {
            true => way.reach.datagram.min(longest),
            false => 0,
        };
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
            open.packet.bytes_mut()[open.at..open.at + part.len()].copy_from_slice(part);
            open.at += part.len();
            open.sum.add(part);
        }
        open.payload += len;
        open.packets += 1;
    }

    /// An empty datagram; `None` if the pool has none.
    #[inline]
    fn open(&mut self, at: usize) -> Option<Open> {
        if self.spare.len() == 0 {
            self.seat.port.pool().take(&mut self.spare);
        }
        Some(Open {
            packet: self.spare.take()?,
            at,
            sum: Sum::default(),
            packets: 0,
            payload: 0,
        })
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
        if self.ready.is_full() {
            self.send();
        }
        self.loads[self.ready.len()] = (packets, payload);
        self.ready.push(open.packet);
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
        self.port().deliver(number, arrived);
        self.count(true, packets, bytes);
    }

    /// Leaves a datagram until its neighbour has answered.
    #[cold]
    fn hold(&mut self, hop: Hop, open: Open) {
        let (packets, bytes) = (open.packets, open.payload);
        if let Hop::Neighbour(ip) = hop {
            let is_held = self.port().hold(ip, open.packet);
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
        let dropped = self.seat.port.send(&mut self.ready);
        self.is_owed = true;
        for (at, (packets, bytes)) in self.loads[..count].iter().copied().enumerate() {
            if at < count - dropped {
                self.counters.tx_packets += u64::from(packets);
                self.counters.tx_bytes += u64::from(bytes);
            } else {
                self.counters.tx_dropped_full += u64::from(packets);
            }
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

    fn port(&self) -> &'static Port {
        self.seat.port
    }
}

impl Tx for DpdkTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        for item in items {
            let inline = item.inline.get(..item.inline_len as usize);
            self.add(item.peer, inline, item.data);
        }
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
        for packet in lane.packets() {
            self.add(packet.peer(), Some(lane.bytes(*packet)), BufRef::EMPTY);
        }
        for item in items {
            let inline = item.inline.get(..item.inline_len as usize);
            self.add(item.peer, inline, item.data);
        }
        self.finish(lane.packets().len() + items.len())
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
            self.leaving.port().settle();
        }
    }

    fn flush(&mut self) {}
}

impl Drop for DpdkTx {
    fn drop(&mut self) {
        let port = self.leaving.seat.port;
        self.ways.clear(port);
        port.pool().free(&mut self.leaving.spare);
    }
}

/// The data bytes of a packet; `None` if the msgbuf was revoked.
///
/// # Safety
/// The caller sends for the endpoint that owns the msgbuf, and uses the bytes only until the
/// endpoint learns from `done` that it may change them.
#[inline]
unsafe fn data_of<'a>(data: BufRef) -> Option<&'a [u8]> {
    if data.is_empty() {
        return Some(&[]);
    }
    // SAFETY: the region lives at least as long as the endpoint that owns its msgbuf.
    let at = unsafe { regions::resolve(data) }?;
    // SAFETY: `resolve` vouches for `data.len()` readable bytes until the msgbuf is revoked, which
    // the caller excludes.
    Some(unsafe { std::slice::from_raw_parts(at.as_ptr(), data.len()) })
}
