//! The ways to peers: the headers with which their packets leave, and the datagram that is being
//! filled for each.
//!
//! Invariants: each way counts as one use of its neighbour. After [`Ways::refresh`], each way has
//! the header that the neighbour's address requires. Owned by `transmit`.

use dunlin_core::transport::{MAX_INLINE, PeerId};
use dunlin_packet::{Header, Home, Mac, Stamp, Sum};
use dunlin_transport::udp::{Reach, is_same, place_of};

use crate::device::Packet;
use crate::port::Port;
use crate::site::Hop;

/// The Ethernet address in headers while the neighbour's is not known.
const UNKNOWN: Mac = [0; 6];

/// The way to one peer.
#[derive(Debug)]
pub(crate) struct Way {
    peer: PeerId,
    pub(crate) reach: Reach,
    pub(crate) hop: Hop,
    pub(crate) header: Header,
    /// The headers of the last datagram.
    stamp: Stamp,
    /// The most bytes of a packet, and of a datagram with several; 0 if packets do not share
    /// datagrams.
    pub(crate) most: usize,
    pub(crate) limit: u32,
    /// Whether the header has the address of the neighbour.
    pub(crate) is_known: bool,
    /// Whether packets leave through the device, to an address that is known.
    pub(crate) is_direct: bool,
    /// Whether each packet leaves at once, in a datagram of its own.
    pub(crate) is_alone: bool,
    pub(crate) open: Option<Open>,
}

/// A datagram that is being filled.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) packet: Packet,
    /// Where the next byte goes.
    pub(crate) at: usize,
    pub(crate) sum: Sum,
    /// Packets in it, and their bytes.
    pub(crate) packets: u32,
    pub(crate) payload: u32,
}

/// The ways to all peers.
#[derive(Debug)]
pub(crate) struct Ways {
    /// The way to each peer, at the peer's place.
    ways: Vec<Option<Way>>,
    home: Home,
    /// Longest datagram.
    longest: u32,
    /// The number of changes of neighbours' addresses that the headers follow.
    seen: u32,
}

impl Ways {
    /// An empty table of ways from this address, for datagrams of up to `longest` bytes.
    pub(crate) fn new(home: Home, longest: u32) -> Self {
        Self {
            ways: Vec::new(),
            home,
            longest,
            seen: 0,
        }
    }

    /// Adds the way to a peer, unless there is one.
    pub(crate) fn add(&mut self, peer: PeerId, reach: Reach, hop: Hop, port: &Port) {
        let place = reach.place;
        if self.get(peer).is_some() {
            return;
        }
        self.forget(place, port);
        if self.ways.len() <= place {
            self.ways.resize_with(place + 1, || None);
        }
        if let Hop::Neighbour(ip) = hop {
            port.use_neighbour(ip);
        }
        let header = Header::new(&self.home, reach.address, UNKNOWN);
        let limit = match reach.pack {
            true => reach.datagram.min(self.longest),
            false => 0,
        };
        let mut way = Way {
            peer,
            reach,
            hop,
            stamp: header.stamp(0),
            header,
            most: reach.packet.min(self.longest) as usize,
            limit,
            is_known: false,
            is_direct: false,
            is_alone: false,
            open: None,
        };
        way.follow(&self.home, port);
        self.ways[place] = Some(way);
    }

    /// Forgets the way to a peer.
    pub(crate) fn remove(&mut self, peer: PeerId, port: &Port) {
        if self.get(peer).is_some() {
            self.forget(place_of(peer), port);
        }
    }

    /// Forgets all ways.
    pub(crate) fn clear(&mut self, port: &Port) {
        (0..self.ways.len()).for_each(|place| self.forget(place, port));
    }

    /// Makes the headers fit the addresses that neighbours have now.
    #[inline]
    pub(crate) fn refresh(&mut self, port: &Port) {
        let changes = port.changes();
        if changes != self.seen {
            self.seen = changes;
            self.follow(port);
        }
    }

    #[cold]
    fn follow(&mut self, port: &Port) {
        for way in self.ways.iter_mut().flatten() {
            way.follow(&self.home, port);
        }
    }

    /// The way to a peer.
    #[inline]
    pub(crate) fn get(&mut self, peer: PeerId) -> Option<&mut Way> {
        let way = self.ways.get_mut(place_of(peer))?.as_mut()?;
        is_same(way.peer, peer).then_some(way)
    }

    /// The way at a place, if there is one.
    #[inline]
    pub(crate) fn at(&mut self, place: usize) -> Option<&mut Way> {
        self.ways.get_mut(place)?.as_mut()
    }

    fn forget(&mut self, place: usize, port: &Port) {
        let way = self.ways.get_mut(place).and_then(Option::take);
        if let Some(Hop::Neighbour(ip)) = way.map(|way| way.hop) {
            port.leave_neighbour(ip);
        }
    }
}

impl Way {
    /// Whether a packet of `len` bytes leaves at once, in a datagram of its own: it leaves room for
    /// hardly any other.
    #[inline]
    pub(crate) fn fills(&self, len: usize) -> bool {
        self.is_direct && len + MAX_INLINE > self.limit as usize
    }

    /// The headers of a datagram with `payload` bytes.
    #[inline]
    pub(crate) fn stamp(&mut self, payload: usize) -> &Stamp {
        if self.stamp.payload() != payload {
            self.renew(payload);
        }
        &self.stamp
    }

    #[inline(never)]
    fn renew(&mut self, payload: usize) {
        self.stamp = self.header.stamp(payload);
    }

    /// Whether a packet of this length fits into a datagram and into a line of a lane.
    #[inline(always)]
    pub(crate) fn takes_short(&self, len: usize) -> bool {
        (1..=self.most.min(MAX_INLINE)).contains(&len)
    }

    /// Makes the header that fits the neighbour's address.
    fn follow(&mut self, home: &Home, port: &Port) {
        let mac = match self.hop {
            Hop::Here => Some(home.mac),
            Hop::Neighbour(ip) => port.find(ip),
        };
        self.is_known = mac.is_some();
        self.is_direct = self.is_known && self.hop != Hop::Here;
        self.is_alone = self.is_direct && self.limit == 0;
        self.header = Header::new(home, self.reach.address, mac.unwrap_or(UNKNOWN));
        self.stamp = self.header.stamp(0);
    }
}
