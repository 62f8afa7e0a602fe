//! The sending half: packets are copied into datagrams, packets to one peer into the same datagram
//! (rule W11), and all datagrams of a burst go to the device together. Called by the event loop,
//! and by `connect`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dunlin_core::transport::{
    LANE_LINE, LANE_PACKET, Lane, LanePacket, MAX_INLINE, Messages, Path, PeerId, Tx, TxItem, TxSeq,
};
use dunlin_core::{Nanos, Scheme};
use dunlin_msgbuf::BufRef;
use dunlin_transport::counters::Counters;
use dunlin_transport::lent::data_of;
use dunlin_transport::udp::Book;
use dunlin_wire::HEADER_LEN;

use crate::device::BATCH;
use crate::leaving::Leaving;
use crate::leaving::runs::Line;
use crate::port::Seat;
use crate::ways::Ways;

/// Longest time for which an endpoint that closes waits for its device. The driver keeps pages that
/// the device may still read after that, for example while its link is down.
const PATIENCE: Duration = Duration::from_secs(1);

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
            leaving: Leaving::new(seat),
            given: TxSeq(0),
            line_rate,
            base_rtt,
        }
    }

    /// The counters of this half.
    pub(crate) fn counters(&self) -> Counters {
        self.leaving.counters
    }

    /// Counters of the packets of this endpoint whose data was copied, by cause.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        let mut details = Vec::new();
        self.show_copies(&mut |name, count| details.push((name, count)));
        details
    }

    /// Shows the counters of packets whose data was copied.
    pub(crate) fn show_copies(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.leaving.show_copies(show);
    }

    /// Whether the device may still read lent data. If so, another [`Tx::settle`] must follow soon.
    pub(crate) fn has_lent(&self) -> bool {
        self.leaving.has_lent()
    }

    /// Finds the way to a peer that is in the book of peers. False if no way leads there.
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

    /// Forgets the way to a peer that is no longer in the book of peers.
    pub(crate) fn forget_gone(&mut self, peer: PeerId) {
        if self.book.reach(peer).is_none() {
            self.ways.remove(peer, self.leaving.port);
        }
    }

    /// Adds a packet to the open datagram of its peer, or sends it in a datagram of its own.
    /// `place` is the packet's number in the sequence of all packets.
    fn add(&mut self, peer: PeerId, inline: Option<&[u8]>, data: BufRef, place: u64) {
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
        // SAFETY: we send for the endpoint that owns the msgbuf, and copy the bytes at once, or let
        // the device read them until `done` has passed them.
        let Some(bytes) = (unsafe { data_of(data) }) else {
            leaving.counters.tx_dropped_stale += 1;
            return;
        };
        if leaving.lends(way, data, bytes) {
            // SAFETY: the endpoint leaves them as they are until then.
            return unsafe { leaving.send_lent(way, inline, bytes, place) };
        }
        if way.fills(inline.len() + bytes.len()) {
            return leaving.send_alone(way, inline, bytes);
        }
        let was_open = way.open.is_some();
        leaving.append(way, inline, bytes);
        if !was_open && way.open.is_some() {
            self.filling.push(way.reach.place);
        }
    }

    /// Like [`Self::add`], for the first packets of a lane, which have one peer and one length, up
    /// to the first packet for which `line_of` returns `None`. `bytes` are the bytes of the first
    /// packet. Returns the number of packets added.
    #[inline]
    fn add_staged<'l, T>(
        &mut self,
        peer: PeerId,
        bytes: &[u8],
        packets: &'l [T],
        line_of: impl Fn(&'l T) -> Option<&'l Line>,
    ) -> usize {
        let len = bytes.len();
        match self.ways.get(peer) {
            Some(way) if way.is_alone && way.takes_short(len) => {
                self.leaving.send_short(way, len, packets, line_of)
            }
            _ => self.add_shared(peer, bytes, packets, line_of),
        }
    }

    /// Like [`Self::add_staged`], for packets that may share datagrams, that are long, or whose
    /// peer has no way.
    #[inline(never)]
    fn add_shared<'l, T>(
        &mut self,
        peer: PeerId,
        bytes: &[u8],
        packets: &'l [T],
        line_of: impl Fn(&'l T) -> Option<&'l Line>,
    ) -> usize {
        let len = bytes.len();
        match self.ways.get(peer) {
            Some(way) if way.takes_short(len) => {
                let was_open = way.open.is_some();
                let count = self.leaving.append_short(way, len, packets, line_of);
                if !was_open && way.open.is_some() {
                    self.filling.push(way.reach.place);
                }
                count
            }
            _ => {
                self.add(peer, Some(bytes), BufRef::EMPTY, 0);
                1
            }
        }
    }

    /// A function of its own, so that the loop over the packets of a lane keeps its registers.
    #[inline(never)]
    fn add_all(&mut self, items: &[TxItem], first_place: u64) {
        let (mut rest, mut place) = (items, first_place);
        while let Some(first) = rest.first() {
            let mut count = self.add_long(rest, first);
            if count == 0 {
                let inline = first.inline.get(..first.inline_len as usize);
                self.add(first.peer, inline, first.data, place);
                count = 1;
            }
            rest = &rest[count..];
            place += count as u64;
        }
    }

    /// Like [`Self::add`], for the first items if they are packets of a large message, whose data
    /// is copied. Returns their number.
    #[inline]
    fn add_long(&mut self, items: &[TxItem], first: &TxItem) -> usize {
        let (inline, len) = (first.inline_len as usize, first.data.len());
        if inline != HEADER_LEN || !self.leaving.copies_long(len) {
            return 0;
        }
        match self.ways.get(first.peer) {
            Some(way) if inline + len <= way.most && way.fills(inline + len) => {
                // SAFETY: we send for the endpoint that owns the msgbufs, and copy the bytes at
                // once.
                let data_of = |item: &TxItem| unsafe { data_of(item.data) };
                self.leaving.send_long(way, items, len, data_of)
            }
            _ => 0,
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
        let mut rest = packets;
        while let Some(&first) = rest.first() {
            let line_of = |it: &LanePacket| it.is_like(first).then(|| lane.line(*it));
            rest = &rest[self.add_staged(first.peer(), lane.bytes(first), rest, line_of)..];
        }
        if !items.is_empty() {
            self.add_all(items, self.given.0 + packets.len() as u64);
        }
        self.finish(packets.len() + items.len())
    }

    /// Puts the only packet of a burst into a datagram of its own, even if other packets could
    /// share the datagram: the burst has no others. False if the packet is long, or cannot leave
    /// through the device now.
    #[inline]
    fn send_line(&mut self, lane: &Lane, packet: LanePacket) -> bool {
        self.ways.refresh(self.leaving.port);
        let len = packet.size();
        match self.ways.get(packet.peer()) {
            Some(way) if way.is_direct && way.takes_short(len) => {
                self.leaving.send_line(way, len, lane.first_line());
                true
            }
            _ => false,
        }
    }

    /// Sends all datagrams.
    #[inline(always)]
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

impl Tx for DpdkTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.ways.refresh(self.leaving.port);
        self.add_all(items, self.given.0);
        self.finish(items.len())
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        self.leaving.done(self.given)
    }

    fn lane(&self) -> usize {
        LANE_PACKET
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        self.send_staged(lane, lane.packets(), items)
    }

    #[inline]
    fn takes_alike(&self, packet: LanePacket) -> bool {
        packet.size() <= MAX_INLINE
    }

    #[inline]
    fn send_alike<'a>(&mut self, lane: &'a Lane, first: LanePacket, _: impl Messages<'a>) -> TxSeq {
        self.ways.refresh(self.leaving.port);
        let (len, mut rest) = (first.size(), lane.all_lines());
        while let Some(line) = rest.first().map(line_of) {
            let line_of = |line| Some(line_of(line));
            rest = &rest[self.add_staged(first.peer(), &line[..len], rest, line_of)..];
        }
        self.finish(lane.len())
    }

    #[inline]
    fn send_lone<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        if self.send_line(lane, packet) {
            return self.finish(1);
        }
        match self.takes_alike(packet) {
            true => self.send_alike(lane, packet, messages),
            false => self.send(lane, &[]),
        }
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
        self.leaving.settle();
    }

    fn flush(&mut self) {
        let begin = Instant::now();
        while self.leaving.has_lent() && begin.elapsed() < PATIENCE {
            self.settle();
        }
    }
}

/// A line without the transport's bytes.
#[inline]
fn line_of(line: &[u8; LANE_LINE]) -> &Line {
    line.last_chunk().expect("a line is longer")
}

impl Drop for DpdkTx {
    fn drop(&mut self) {
        self.flush();
        self.ways.clear(self.leaving.port);
    }
}
