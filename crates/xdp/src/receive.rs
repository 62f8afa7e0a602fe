//! The receiving half: packets that were steered to us, and from time to time the socket.
//!
//! A steered packet becomes a frame if `dunlin_packet::parse` accepts it; refused packets are
//! counted by cause. The socket gets all packets that the program passes to the kernel: fragments,
//! packets of this host and of other queues, and every packet while steering is lost.
//!
//! Invariant: the frames of a burst come from the source that `source` names, and are ours until
//! the next burst. Called by the event loop, and by `connect`.

pub(crate) mod arrivals;

use dunlin_core::transport::{Frame, RX_BURST, Rx};
use dunlin_transport::counters::Counters;
use dunlin_transport::turns::Turns;
use dunlin_transport::udp::UdpRx;

use crate::umem::Piece;
use crate::ways::OwnMac;
use arrivals::{Arrival, Arrivals, WHOLE};
use dunlin_packet::{Datagram, Home, REFUSALS, Refused, Written, parse};

/// Most packets that a burst reads, including those that it refuses.
const MOST_LOOKS: usize = 4 * RX_BURST;

/// Names of the counters of this half, before those of [`REFUSALS`].
pub(crate) const DETAILS: [&str; 8] = [
    "rx_datagrams",
    "rx_joined",
    "rx_partial_sums",
    "rx_absent_sums",
    "rx_bad_entries",
    "rx_kernel_dropped",
    "rx_kernel_unfilled",
    "rx_kernel_refused",
];

/// Where the frames of a burst are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Ring,
    Socket,
}

/// Where one frame of a burst is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In a frame of the region: the payload, and the piece that goes back to the kernel.
    Piece(Piece, Piece),
    /// In the room for packets of several pieces: its first byte and its length.
    Whole(usize, usize),
}

/// The receiving half of an `xdp` endpoint.
#[derive(Debug)]
pub struct XdpRx {
    arrivals: Arrivals,
    home: Home,
    mac: OwnMac,
    /// Whether datagrams whose checksum covers only the pseudo header are accepted.
    partial_sums: bool,
    turns: Turns,
    source: Source,
    places: [(Place, bool); RX_BURST],
    visible: usize,
    /// Room for [`RX_BURST`] packets of several pieces.
    joined: Vec<u8>,
    refused: [u64; REFUSALS.len()],
    partial: u64,
    absent: u64,
    joins: u64,
    counters: Counters,
    /// The last field, so that its port is free only after the address has left the map.
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
            home,
            mac,
            partial_sums,
            turns,
            source: Source::Socket,
            places: [(Place::Whole(0, 0), false); RX_BURST],
            visible: 0,
            joined: vec![0; RX_BURST * WHOLE],
            refused: [0; REFUSALS.len()],
            partial: 0,
            absent: 0,
            joins: 0,
            counters: Counters::default(),
        }
    }

    /// The address and port of this endpoint.
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.home.address
    }

    /// The counters of this half, without those of the socket.
    pub(crate) fn own_counters(&self) -> Counters {
        let statistics = self.arrivals.device().statistics();
        Counters {
            rx_corrupt: self.counters.rx_corrupt + self.arrivals.bad(),
            rx_overflow: statistics.rx_dropped,
            ..self.counters
        }
    }

    /// Counters of steered packets: refused ones by cause, and accepted ones by the way in which
    /// their checksum was written; and the bytes of the region of frames.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        let mut details = vec![("umem_bytes", self.arrivals.region_bytes() as u64)];
        self.show_details(&mut |name, count| details.push((name, count)));
        details
    }

    /// Shows the counters of [`DETAILS`] and of [`REFUSALS`].
    pub(crate) fn show_details(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let statistics = self.arrivals.device().statistics();
        let own = [
            self.counters.rx_packets,
            self.joins,
            self.partial,
            self.absent,
            self.arrivals.bad(),
            statistics.rx_dropped,
            statistics.rx_unfilled,
            statistics.rx_invalid,
        ];
        let names = DETAILS.into_iter().chain(REFUSALS);
        let counts = own.into_iter().chain(self.refused);
        names
            .zip(counts)
            .for_each(|(name, count)| show(name, count));
    }

    /// Whether a steered packet waits.
    pub(crate) fn has_more(&mut self) -> bool {
        self.arrivals.has_more()
    }

    /// Makes the next burst look at the socket.
    pub(crate) fn on_doubt(&mut self) {
        self.turns.on_doubt();
    }

    /// The descriptor of the ring.
    pub(crate) fn device(&self) -> &dyn crate::device::Device {
        self.arrivals.device()
    }

    /// Looks at the socket. It is not inlined, so that the path of steered packets stays short.
    #[inline(never)]
    fn look_at_socket(&mut self) -> usize {
        let count = self.udp.burst();
        self.turns.on_look(count > 0);
        self.source = Source::Socket;
        count
    }

    /// Gives the frames of the last burst back to the kernel.
    #[inline]
    fn give_back(&mut self) {
        for (place, _) in &self.places[..self.visible] {
            if let Place::Piece(_, whole) = place {
                self.arrivals.give_back(*whole);
            }
        }
        self.visible = 0;
        self.arrivals.refill_if_needed();
    }

    /// Shows the next packet. False if there is none.
    #[inline]
    fn show_next(&mut self) -> bool {
        let start = self.visible * WHOLE;
        let room = &mut self.joined[start..start + WHOLE];
        let Some(arrival) = self.arrivals.next(room) else {
            return false;
        };
        self.home.mac = self.mac.get();
        match arrival {
            Arrival::Piece(piece) => match parse(self.arrivals.bytes(piece), &self.home) {
                Ok(found) if self.accepts(&found) => {
                    let payload = piece.part(found.start, found.len);
                    self.show(Place::Piece(payload, piece), &found);
                }
                Ok(_) => self.refuse_piece(piece, Refused::Sum),
                Err(why) => self.refuse_piece(piece, why),
            },
            Arrival::Whole(len) => {
                self.joins += 1;
                match parse(&self.joined[start..start + len], &self.home) {
                    Ok(found) if self.accepts(&found) => {
                        self.show(Place::Whole(start + found.start, found.len), &found);
                    }
                    Ok(_) => self.refuse(Refused::Sum),
                    Err(why) => self.refuse(why),
                }
            }
        }
        true
    }

    #[inline]
    fn accepts(&self, found: &Datagram) -> bool {
        found.sum != Written::Partial || self.partial_sums
    }

    #[inline]
    fn show(&mut self, place: Place, found: &Datagram) {
        self.partial += u64::from(found.sum == Written::Partial);
        self.absent += u64::from(found.sum == Written::Absent);
        self.places[self.visible] = (place, found.congestion);
        self.visible += 1;
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += found.len as u64;
    }

    #[cold]
    fn refuse_piece(&mut self, piece: Piece, why: Refused) {
        self.arrivals.give_back(piece);
        self.refuse(why);
    }

    #[cold]
    fn refuse(&mut self, why: Refused) {
        self.refused[why as usize] += 1;
        self.counters.rx_corrupt += 1;
    }

    #[inline]
    fn look_at_ring(&mut self) -> usize {
        self.source = Source::Ring;
        // Refused packets count here too, so that a flood of them delays the event loop no longer
        // than other packets do.
        for _ in 0..MOST_LOOKS {
            if self.visible == RX_BURST || !self.show_next() {
                break;
            }
        }
        if self.visible > 0 {
            self.turns.on_busy();
        } else {
            self.turns.on_idle();
        }
        self.visible
    }
}

impl Rx for XdpRx {
    #[inline]
    fn burst(&mut self) -> usize {
        self.give_back();
        if self.turns.is_due() {
            let count = self.look_at_socket();
            if count > 0 {
                return count;
            }
        }
        self.look_at_ring()
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        if self.source == Source::Socket {
            return self.udp.frame(index);
        }
        let (place, congestion) = self.places[..self.visible][index];
        let bytes = match place {
            Place::Piece(payload, _) => self.arrivals.bytes(payload),
            Place::Whole(start, len) => &self.joined[start..start + len],
        };
        Frame {
            bytes,
            congestion,
            elsewhere: None,
        }
    }
}
