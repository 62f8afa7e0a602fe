//! The receiving half: packets that were steered to us, and from time to time the socket.
//!
//! A steered packet becomes a frame if `dunlin_packet` accepts it; refused packets are counted by
//! cause. The socket gets all packets that the program passes to the kernel: fragments, packets of
//! this host and of other queues, and every packet while steering is lost.
//!
//! An endpoint may have several queues of its interface, each with a ring and a region. A burst
//! takes packets from one of them, and the next burst from another.
//!
//! Invariant: the frames of a burst come from the source that `source` names, and are ours until
//! the next burst. Frames from a ring lie in the region of `arrivals`, and never in one of
//! `others`. Called by the event loop, and by `connect`.

pub(crate) mod arrivals;

use dunlin_core::transport::{Frame, RX_BURST, Rx};
use dunlin_transport::counters::Counters;
use dunlin_transport::turns::Turns;
use dunlin_transport::udp::UdpRx;

use crate::device::{Device, Statistics};
use crate::watch::Doubt;
use crate::ways::OwnMac;
use arrivals::{Arrivals, NextPacket, WHOLE};
use dunlin_packet::{Datagram, Home, REFUSALS, Refused, Seen, Written};

/// The most packets that a burst looks at one by one, including those that it refuses.
const MOST_LOOKS: usize = 3 * RX_BURST;

/// Names of the counters of this half, before those of [`REFUSALS`]. The first one is not a counter
/// but the size of the regions of frames in bytes, which the kernel or the daemon may have made
/// smaller than the option asks for.
pub(crate) const DETAILS: [&str; 11] = [
    "umem_bytes",
    "rx_datagrams",
    "rx_joined",
    "rx_partial_sums",
    "rx_absent_sums",
    "rx_bad_entries",
    "rx_kernel_dropped",
    "rx_kernel_unfilled",
    "rx_kernel_refused",
    "rx_rules",
    "rx_rules_refused",
];

/// Where the frames of a burst are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Ring,
    Socket,
}

/// A bit for each packet of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Marks(u32);

const _: () = assert!(RX_BURST <= u32::BITS as usize);

impl Marks {
    #[inline]
    fn has(self, index: usize) -> bool {
        self.0 >> (index % RX_BURST) & 1 != 0
    }

    fn add(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// The first packet with this mark.
    #[inline]
    fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }
}

/// The receiving half of an `xdp` endpoint.
#[derive(Debug)]
pub struct XdpRx {
    /// The queue of this burst.
    arrivals: Arrivals,
    /// The other queues, and the place of the one whose turn is next.
    others: Vec<Arrivals>,
    next: usize,
    home: Home,
    mac: OwnMac,
    /// Whether datagrams are accepted whose checksum covers only the pseudo header or is missing.
    partial_sums: bool,
    turns: Turns,
    /// Whether no burst has begun since the last sleep.
    is_woken: bool,
    source: Source,
    /// The headers of the last packet.
    seen: Seen,
    marked: Marks,
    /// Room for [`RX_BURST`] packets of several pieces.
    joined: Vec<u8>,
    /// Packets of the burst that lie in `joined`.
    apart: Marks,
    /// Packets of the burst that are marked or lie in `joined`.
    special: Marks,
    /// Where the payload of each packet in `joined` begins there, and its length.
    payloads: [(usize, usize); RX_BURST],
    refused: [u64; REFUSALS.len()],
    partial: u64,
    absent: u64,
    joins: u64,
    /// Raised when packets come through the socket.
    doubt: Doubt,
    /// Whether a rule of the device puts the packets into the queue; `None` if none was asked for.
    rule: Option<bool>,
    counters: Counters,
    /// This field is the last one, so it is dropped last: the port is free only after the address
    /// has left the map.
    pub(crate) udp: UdpRx,
}

impl XdpRx {
    pub(crate) fn new(
        udp: UdpRx,
        arrivals: Arrivals,
        home: Home,
        mac: OwnMac,
        partial_sums: bool,
    ) -> Self {
        let mut turns = Turns::new();
        // Packets may come either way at any time.
        turns.on_peers(true, true);
        Self {
            udp,
            arrivals,
            others: Vec::new(),
            next: 0,
            home,
            mac,
            partial_sums,
            turns,
            is_woken: false,
            source: Source::Socket,
            seen: Seen::default(),
            marked: Marks::default(),
            joined: vec![0; RX_BURST * WHOLE],
            apart: Marks::default(),
            special: Marks::default(),
            payloads: [(0, 0); RX_BURST],
            refused: [0; REFUSALS.len()],
            partial: 0,
            absent: 0,
            joins: 0,
            doubt: Doubt::default(),
            rule: None,
            counters: Counters::default(),
        }
    }

    /// The same half with further queues of the interface.
    #[must_use]
    pub(crate) fn with_queues(self, others: Vec<Arrivals>) -> Self {
        Self { others, ..self }
    }

    /// The same half, which raises this doubt when packets come through the socket.
    #[must_use]
    pub(crate) fn with_doubt(self, doubt: Doubt) -> Self {
        Self { doubt, ..self }
    }

    /// The same half with the daemon's answer about a rule of the device.
    #[must_use]
    pub(crate) fn with_rule(self, rule: Option<bool>) -> Self {
        Self { rule, ..self }
    }

    /// The address and port of this endpoint.
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.home.address
    }

    /// The counters of this half, without those of the socket.
    pub(crate) fn own_counters(&self) -> Counters {
        Counters {
            rx_corrupt: self.counters.rx_corrupt + self.bad(),
            rx_overflow: self.statistics().rx_dropped,
            ..self.counters
        }
    }

    /// Counters of steered packets: refused ones by cause, and accepted ones by the way in which
    /// their checksum was written; and the bytes of the regions of frames.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        let mut details = Vec::new();
        self.show_details(&mut |name, count| details.push((name, count)));
        details
    }

    /// Shows the counters of [`DETAILS`] and of [`REFUSALS`].
    pub(crate) fn show_details(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let statistics = self.statistics();
        let own = [
            self.queues().map(Arrivals::region_bytes).sum::<usize>() as u64,
            self.counters.rx_packets,
            self.joins,
            self.partial,
            self.absent,
            self.bad(),
            statistics.rx_dropped,
            statistics.rx_unfilled,
            statistics.rx_invalid,
            u64::from(self.rule == Some(true)),
            u64::from(self.rule == Some(false)),
        ];
        let names = DETAILS.into_iter().chain(REFUSALS);
        let counts = own.into_iter().chain(self.refused);
        names
            .zip(counts)
            .for_each(|(name, count)| show(name, count));
    }

    /// Whether a steered packet waits.
    pub(crate) fn has_more(&mut self) -> bool {
        self.arrivals.has_more() || self.others.iter_mut().any(Arrivals::has_more)
    }

    /// All queues.
    fn queues(&self) -> impl Iterator<Item = &Arrivals> {
        std::iter::once(&self.arrivals).chain(&self.others)
    }

    /// Entries that no honest kernel writes, at all queues.
    fn bad(&self) -> u64 {
        self.queues().map(Arrivals::bad).sum()
    }

    /// The kernel's counters, of all queues together.
    fn statistics(&self) -> Statistics {
        let each = self.queues().map(|queue| queue.device().statistics());
        each.fold(Statistics::default(), Statistics::plus)
    }

    /// Takes the next burst from the next queue that has packets, which may be the same one.
    #[inline(never)]
    fn change_queue(&mut self) {
        for _ in 0..=self.others.len() {
            std::mem::swap(&mut self.arrivals, &mut self.others[self.next]);
            self.next = (self.next + 1) % self.others.len();
            if self.arrivals.has_more() {
                return;
            }
        }
    }

    /// Notes that a sleep has ended. The next burst looks at the rings, where the packet that ended
    /// the sleep lies most likely, and the burst after it at the socket: the call of the kernel
    /// would delay the first packet. If that look has been postponed already, the next burst does
    /// it, so an endpoint that sleeps after each burst finds the socket's packets, too.
    pub(crate) fn on_wake(&mut self) {
        self.is_woken = !self.turns.is_due();
        self.turns.on_doubt();
    }

    /// The other ends of the rings, queue by queue.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &dyn Device> {
        self.queues().map(Arrivals::device)
    }

    /// Looks at the socket. It is not inlined, so that the path of steered packets stays short.
    #[inline(never)]
    fn look_at_socket(&mut self) -> usize {
        let count = self.udp.burst();
        if count > 0 {
            self.doubt.raise();
        }
        self.turns.on_look(count > 0);
        self.source = Source::Socket;
        count
    }

    /// Gives the frames of the last burst back to the kernel.
    #[inline]
    fn give_back(&mut self) {
        self.marked = Marks::default();
        self.apart = Marks::default();
        self.special = Marks::default();
        self.arrivals.give_back();
    }

    /// Uses the address that the interface has now.
    #[inline]
    fn follow_mac(&mut self) {
        let mac = self.mac.get();
        if mac != self.home.mac {
            self.home.mac = mac;
            self.seen = Seen::default();
        }
    }

    /// Shows the next packets, up to one whose headers differ from the last one's. Returns the
    /// number of all packets of the burst.
    #[inline]
    fn show_alike(&mut self) -> usize {
        let Self { arrivals, seen, .. } = self;
        let first = arrivals.shown();
        let end = arrivals.show_while(|frame| seen.payload(frame));
        let found = self.seen.last().filter(|_| end > first);
        if let Some(found) = found {
            self.count(end - first, found.len);
            if found.congestion {
                (first..end).for_each(|index| self.mark(index));
            }
        }
        end
    }

    /// Shows the next packet, whatever it is. False if there is none.
    fn show_next(&mut self) -> bool {
        let index = self.arrivals.shown();
        let start = index * WHOLE;
        let room = &mut self.joined[start..start + WHOLE];
        let Some(arrival) = self.arrivals.next(room) else {
            return false;
        };
        let frame = match arrival {
            NextPacket::Piece(piece) => self.arrivals.bytes(piece),
            NextPacket::Whole(len) => {
                self.joins += 1;
                &self.joined[start..start + len]
            }
        };
        let found = self.seen.parse(frame, &self.home);
        let found = match found.and_then(|found| self.accept(found)) {
            Ok(found) => found,
            Err(why) => {
                self.refuse(why);
                return true;
            }
        };
        match arrival {
            NextPacket::Piece(piece) => self.arrivals.show(piece.part(found.start, found.len)),
            NextPacket::Whole(_) => {
                self.arrivals.show_nothing();
                self.apart.add(index);
                self.special.add(index);
                self.payloads[index] = (start + found.start, found.len);
            }
        }
        self.partial += u64::from(found.sum == Written::Partial);
        self.absent += u64::from(found.sum == Written::Absent);
        if found.congestion {
            self.mark(index);
        }
        self.count(1, found.len);
        true
    }

    /// Notes that the network marked a packet of the burst.
    fn mark(&mut self, index: usize) {
        self.marked.add(index);
        self.special.add(index);
    }

    /// Counts packets of this length.
    #[inline]
    fn count(&mut self, packets: usize, len: usize) {
        self.counters.rx_packets += packets as u64;
        self.counters.rx_bytes += (packets * len) as u64;
    }

    /// Refuses a sum over the pseudo header alone, and a missing one, unless the option accepts
    /// them.
    fn accept(&self, found: Datagram) -> Result<Datagram, Refused> {
        match found.sum {
            Written::Partial if !self.partial_sums => Err(Refused::Sum),
            Written::Absent if !self.partial_sums => Err(Refused::NoSum),
            _ => Ok(found),
        }
    }

    #[cold]
    fn refuse(&mut self, why: Refused) {
        self.refused[why as usize] += 1;
        self.counters.rx_corrupt += 1;
    }

    #[inline]
    fn look_at_ring(&mut self) -> usize {
        self.source = Source::Ring;
        self.follow_mac();
        let mut count = self.show_alike();
        // Refused packets count here too, so that a flood of them delays the event loop no longer
        // than other packets do.
        for _ in 0..MOST_LOOKS {
            if count == RX_BURST || self.arrivals.is_at_end() || !self.show_next() {
                break;
            }
            count = self.show_alike();
        }
        self.arrivals.set_plain(self.special.first());
        if count > 0 {
            self.turns.on_busy();
        } else {
            self.turns.on_idle();
        }
        count
    }

    #[cold]
    fn other_whole(&self, index: usize) -> Option<&[u8]> {
        self.frame(index).whole()
    }

    /// A frame of the burst that came through the socket or was joined from several pieces.
    #[cold]
    fn other_frame(&self, index: usize) -> Frame<'_> {
        if self.source == Source::Socket {
            return self.udp.frame(index);
        }
        assert!(self.apart.has(index), "a frame of the burst");
        let (start, len) = self.payloads[index];
        Frame {
            bytes: &self.joined[start..start + len],
            congestion: self.marked.has(index),
            elsewhere: None,
        }
    }
}

impl Rx for XdpRx {
    #[inline]
    fn burst(&mut self) -> usize {
        self.give_back();
        if !self.others.is_empty() {
            self.change_queue();
        }
        if self.turns.is_due() && !std::mem::take(&mut self.is_woken) {
            let count = self.look_at_socket();
            if count > 0 {
                return count;
            }
        }
        self.look_at_ring()
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        match self.arrivals.shown_bytes(index) {
            Some(bytes) if !self.apart.has(index) => Frame {
                bytes,
                congestion: self.marked.has(index),
                elsewhere: None,
            },
            _ => self.other_frame(index),
        }
    }

    #[inline]
    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.arrivals.plain_from(first)
    }

    #[inline]
    fn first(&self) -> Option<&[u8]> {
        self.arrivals.plain_bytes(0)
    }

    #[inline]
    fn whole(&self, index: usize) -> Option<&[u8]> {
        let plain = self.arrivals.plain_bytes(index);
        plain.or_else(|| self.other_whole(index))
    }
}

#[cfg(test)]
mod tests;
