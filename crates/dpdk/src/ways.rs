//! The ways to peers: the headers with which their packets leave, and the datagram that is being
//! filled for each.
//!
//! Invariants: a way to a neighbour has one use of it. A way whose `seen` is the port's number of
//! changes has the header that the neighbour's address requires. Owned by `transmit`.

use dunlin_core::transport::PeerId;
use dunlin_packet::{Header, Home, Mac, Sum};
use dunlin_transport::udp::{Reach, is_same, place_of};

use crate::device::Packet;
use crate::port::Port;
use crate::site::Hop;

/// The Ethernet address in headers while that of the neighbour is not known.
const UNKNOWN: Mac = [0; 6];

/// The way to one peer.
#[derive(Debug)]
pub(crate) struct Way {
    peer: PeerId,
    pub(crate) reach: Reach,
    pub(crate) hop: Hop,
    pub(crate) header: Header,
    /// Whether the header has the address of the neighbour.
    pub(crate) is_known: bool,
    /// The number of changes of neighbours' addresses that the header follows.
    seen: u32,
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
}

impl Ways {
    /// No ways yet, from this address.
    pub(crate) fn new(home: Home) -> Self {
        Self {
            ways: Vec::new(),
            home,
        }
    }

    /// Adds the way to a peer, unless there is one.
    pub(crate) fn add(&mut self, peer: PeerId, reach: Reach, hop: Hop, port: &Port) {
        let place = reach.place;
        if self.way_mut(peer).is_some() {
            return;
        }
        self.forget(place, port);
        if self.ways.len() <= place {
            self.ways.resize_with(place + 1, || None);
        }
        if let Hop::Neighbour(ip) = hop {
            port.use_neighbour(ip);
        }
        let mut way = Way {
            peer,
            reach,
            hop,
            header: Header::new(&self.home, reach.address, UNKNOWN),
            is_known: false,
            seen: 0,
            open: None,
        };
        way.follow(&self.home, port);
        self.ways[place] = Some(way);
    }

    /// Forgets the way to a peer.
    pub(crate) fn remove(&mut self, peer: PeerId, port: &Port) {
        if self.way_mut(peer).is_some() {
            self.forget(place_of(peer), port);
        }
    }

    /// Forgets all ways.
    pub(crate) fn clear(&mut self, port: &Port) {
        (0..self.ways.len()).for_each(|place| self.forget(place, port));
    }

    /// The way to a peer, with the headers that fit now.
    #[inline]
    pub(crate) fn get(&mut self, peer: PeerId, port: &Port) -> Option<&mut Way> {
        let way = self.ways.get_mut(place_of(peer))?.as_mut()?;
        if !is_same(way.peer, peer) {
            return None;
        }
        if way.seen != port.changes() {
            way.follow(&self.home, port);
        }
        Some(way)
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

    fn way_mut(&mut self, peer: PeerId) -> Option<&mut Way> {
        let way = self.at(place_of(peer))?;
        is_same(way.peer, peer).then_some(way)
    }
}

impl Way {
    /// Makes the header that fits the neighbour's address.
    #[cold]
    fn follow(&mut self, home: &Home, port: &Port) {
        self.seen = port.changes();
        let mac = match self.hop {
            Hop::Here => Some(home.mac),
            Hop::Neighbour(ip) => port.find(ip),
        };
        self.is_known = mac.is_some();
        self.header = Header::new(home, self.reach.address, mac.unwrap_or(UNKNOWN));
    }
}
