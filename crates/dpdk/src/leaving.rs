//! Datagrams on their way to the device: those that are being filled, and those that leave with the
//! next burst.
//!
//! A datagram to an endpoint of the same device goes to its inbox. While a neighbour has not
//! answered, the datagrams to it wait in `neighbours`. Owned by `transmit`.

pub(crate) mod runs;

use std::ops::Range;
use std::sync::Arc;

use dunlin_core::transport::TxSeq;
use dunlin_msgbuf::{BufRef, RegionId};
use dunlin_packet::{Payload, Sum};
use dunlin_transport::counters::Counters;

use crate::copies::{Cause, Copies, Other};
use crate::device::{BATCH, Packet, Tails, TxPackets};
use crate::inbox::Arrived;
use crate::lend::Lent;
use crate::port::{Port, Seat};
use crate::site::Hop;
use crate::tally::Event;
use crate::ways::{Open, Way};

/// Datagrams on their way to the device.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) port: &'static Port,
    /// The endpoint's place, which it has as long as it sends.
    _seat: Arc<Seat>,
    /// Complete datagrams, and empty packets.
    packets: TxPackets,
    /// The packets and bytes of each complete datagram, and their sums.
    loads: [(u32, u32); BATCH],
    load: (u32, u32),
    /// Data that the device reads in the msgbuf: the tails of the complete datagrams, and whether
    /// there are any.
    tails: Tails,
    has_tails: bool,
    /// The packets whose data the device may still read.
    lent: Lent,
    /// Packets with at least this many data bytes are lent.
    lend: usize,
    /// The region of the last such data, and whether the device may read it.
    region: (RegionId, bool),
    /// Whether the device may hold packets that it has not given back.
    is_owed: bool,
    copies: Copies,
    pub(crate) counters: Counters,
}

impl Leaving {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        let port = seat.port;
        let other = match (port.site().lend, port.lends_from()) {
            (0, _) => Other::Off,
            (_, None) => Other::Device,
            (_, Some(_)) => Other::Short,
        };
        Self {
            port,
            _seat: seat,
            packets: port.pool().tx_packets(),
            loads: [(0, 0); BATCH],
            load: (0, 0),
            tails: Tails::new(),
            has_tails: false,
            lent: Lent::new(),
            lend: port.lends_from().unwrap_or(usize::MAX),
            region: (RegionId::NONE, false),
            is_owed: false,
            copies: Copies::new(other),
            counters: Counters::default(),
        }
    }

    /// Puts a packet into a datagram of its own, which is complete.
    #[inline]
    pub(crate) fn send_alone(&mut self, way: &mut Way, inline: &[u8], data: &[u8]) {
        // Packets keep their order.
        self.close(way);
        let len = inline.len() + data.len();
        let stamp = way.stamp(len);
        let Some(mut packet) = self.empty() else {
            return self.on_pool_empty(1);
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

    /// Whether the device can read the data of a packet in the msgbuf. Only a packet to a known
    /// neighbour leaves through the device.
    #[inline]
    pub(crate) fn lends(&mut self, way: &Way, name: BufRef, data: &[u8]) -> bool {
        data.len() >= self.lend && self.may_lend(way, name, data)
    }

    #[cold]
    fn may_lend(&mut self, way: &Way, name: BufRef, data: &[u8]) -> bool {
        let why = if !way.is_known || way.hop == Hop::Here {
            Cause::NoNeighbour
        } else if !self.can_read(name, data) {
            Cause::Memory
        } else if !self.lent.has_room() {
            Cause::Limit
        } else {
            return true;
        };
        self.copies.on_copied(why);
        false
    }

    /// Whether the device can read a msgbuf, whose region is shared with it if need be.
    fn can_read(&mut self, name: BufRef, data: &[u8]) -> bool {
        let region = name.region();
        if self.region.0 != region {
            let base = data.as_ptr().wrapping_sub(name.offset() as usize);
            // SAFETY: the bytes of the region begin there, and it lives, because `data` lies in it.
            let may_read = unsafe { self.port.share(region, base) };
            self.region = (region, may_read);
        }
        self.region.1
    }

    /// Puts a packet into a datagram of its own, without the data: the device reads that in the
    /// msgbuf. `place` is the packet's number in the sequence of all packets.
    ///
    /// # Safety
    /// The data stays unchanged until [`Self::done`] has passed the place.
    pub(crate) unsafe fn send_lent(
        &mut self,
        way: &mut Way,
        inline: &[u8],
        data: &[u8],
        place: u64,
    ) {
        // Packets keep their order.
        self.close(way);
        let (mut packet, tail) = match (self.empty(), self.empty()) {
            (Some(packet), Some(tail)) => (packet, tail),
            (one, _) => {
                one.into_iter().for_each(|it| self.port.pool().free_one(it));
                return self.on_pool_empty(1);
            }
        };
        let stamp = way.stamp(inline.len() + data.len());
        let (frame, start) = (packet.bytes_mut(), stamp.bytes());
        let end = start + inline.len();
        stamp.begin(frame);
        let mut sum = Sum::default();
        sum.copy(inline, &mut frame[start..end]);
        sum.add(data);
        stamp.finish(frame, sum);
        packet.truncate(end);
        if self.packets.is_full() {
            self.send();
        }
        let done = self.lent.lend(place);
        // SAFETY: the caller vouches for the data, and `Lent` for its flag.
        unsafe { self.tails.add(self.packets.len(), tail, data, done) };
        self.has_tails = true;
        let bytes = u32::try_from(stamp.payload()).expect("it fits a datagram");
        self.push(packet, 1, bytes);
    }

    /// The place in the sequence up to which the device no longer needs the packets' data.
    #[inline]
    pub(crate) fn done(&mut self, given: TxSeq) -> TxSeq {
        self.lent.done(given)
    }

    /// Shows the counters of packets whose data was copied.
    pub(crate) fn show_copies(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.copies.show(self.counters.tx_packets, show);
    }

    /// Whether the device may still read lent data.
    pub(crate) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Asks the device to give back what it has sent.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.is_owed {
            self.port.settle();
            self.is_owed = self.lent.done(TxSeq(u64::MAX)) != TxSeq(u64::MAX);
        }
    }

    /// Adds a packet to the open datagram of a way, or to a new one.
    #[inline]
    pub(crate) fn append(&mut self, way: &mut Way, inline: &[u8], data: &[u8]) {
        if let Some(open) = self.open_for(way, inline.len() + data.len()) {
            for part in [inline, data] {
                let end = open.at + part.len();
                open.sum
                    .copy(part, &mut open.packet.bytes_mut()[open.at..end]);
                open.at = end;
            }
        }
    }

    /// Counts `len` more bytes and one more packet in the open datagram of a way, and returns it;
    /// the caller writes the bytes. Opens a new datagram if that one has no room. `None` if the
    /// pool is empty.
    #[inline]
    fn open_for<'a>(&mut self, way: &'a mut Way, len: usize) -> Option<&'a mut Open> {
        let len = u32::try_from(len).expect("it fits a datagram");
        let limit = way.limit;
        if way.open.as_ref().is_some_and(|it| it.payload + len > limit) {
            self.close(way);
        }
        if way.open.is_none() {
            way.open = self.open(way.header.bytes());
        }
        let Some(open) = &mut way.open else {
            self.on_pool_empty(1);
            return None;
        };
        open.payload += len;
        open.packets += 1;
        Some(open)
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
        self.port.pool().refill(&mut self.packets, 1);
        self.packets.take_empty()
    }

    /// Sends the complete datagrams if there is no room for more, and takes empty packets from
    /// the pool if there are too few for `wanted` more.
    #[inline]
    fn make_room(&mut self, wanted: usize) {
        if self.packets.is_full() {
            self.send();
        }
        self.port
            .pool()
            .refill(&mut self.packets, wanted.min(BATCH));
    }

    /// Completes the open datagram of a way, if it has one.
    #[inline]
    pub(crate) fn close(&mut self, way: &mut Way) {
        let Some(mut open) = way.open.take() else {
            return;
        };
        open.packet.truncate(open.at);
        let (payload, packets) = (open.payload, open.packets);
        if let Hop::Here = way.hop {
            return self.deliver(way, open);
        }
        way.stamp(payload as usize)
            .write(open.packet.bytes_mut(), open.sum);
        if !way.is_known {
            return self.hold(way.hop, open);
        }
        self.push(open.packet, packets, payload);
    }

    /// Adds a complete datagram to those that leave next.
    #[inline]
    fn push(&mut self, datagram: Packet, packets: u32, bytes: u32) {
        if self.packets.is_full() {
            self.send();
        }
        self.loads[self.packets.len()] = (packets, bytes);
        self.load.0 += packets;
        self.load.1 += bytes;
        self.packets.push(datagram);
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

    /// Keeps a datagram until its neighbour has answered.
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
    pub(crate) fn send(&mut self) {
        let count = self.packets.len();
        if count == 0 {
            return;
        }
        let dropped = match self.has_tails {
            false => self.port.send_with(&mut self.packets, None),
            true => self.send_with_tails(count),
        };
        self.is_owed = true;
        let (packets, bytes) = std::mem::take(&mut self.load);
        self.count(true, packets, bytes);
        if dropped > 0 {
            self.on_dropped(count - dropped..count);
        }
    }

    /// As `Port::send`, for datagrams of which some have tails.
    #[cold]
    fn send_with_tails(&mut self, count: usize) -> usize {
        let dropped = self.port.send_with(&mut self.packets, Some(&self.tails));
        let sent = self.tails.clear(count - dropped);
        self.port.tally().on(Event::Lent, sent);
        self.copies.on_lent(sent);
        self.has_tails = false;
        dropped
    }

    /// Notes that the device did not take some of the datagrams that were counted.
    #[cold]
    fn on_dropped(&mut self, places: Range<usize>) {
        for (packets, bytes) in &self.loads[places] {
            self.counters.tx_packets -= u64::from(*packets);
            self.counters.tx_bytes -= u64::from(*bytes);
            self.counters.tx_dropped_full += u64::from(*packets);
            self.port.tally().on(Event::QueueFull, u64::from(*packets));
        }
    }

    /// Notes packets that were dropped because the pool had no empty one.
    #[cold]
    fn on_pool_empty(&mut self, count: u64) {
        self.counters.tx_dropped_full += count;
        self.port.tally().on(Event::PoolEmpty, count);
    }

    fn count(&mut self, is_sent: bool, packets: u32, bytes: u32) {
        if is_sent {
            self.counters.tx_packets += u64::from(packets);
            self.counters.tx_bytes += u64::from(bytes);
        } else {
            self.counters.tx_dropped_full += u64::from(packets);
            let tally = self.port.tally();
            tally.on(Event::NeighbourFull, u64::from(packets));
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.has_lent() {
            self.port.on_owed();
        }
        self.port.pool().free_tx_packets(&mut self.packets, true);
    }
}
