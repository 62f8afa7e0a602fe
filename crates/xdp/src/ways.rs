//! The ways to peers: the headers with which their packets leave, or the reason why the kernel has
//! to send them.
//!
//! Invariants: a way has headers if and only if the kernel knows the neighbour to which it leads.
//! The kernel also sends to peers without a way, for example to one that has left, or to one on
//! this host. Called by `transmit`; changes come from `roads`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dunlin_core::transport::{MAX_INLINE, PeerId};
use dunlin_transport::udp::{Reach, is_same, place_of};

use crate::roads::{Change, Link, Neighbour, Road, Roads};
use dunlin_packet::{Header, Home, Mac, Stamp};

/// Longest payload of a datagram. The kernel accepts only a few pieces for a packet, and `frames`
/// uses at most four.
const LONGEST: u32 = 16_000;
/// The most changes that one call of [`Ways::look`] handles.
const CHANGES: u32 = 64;
/// Calls of [`Ways::look`] for each question about a path. There are 64 bursts between two calls,
/// and a question takes the kernel two microseconds.
const LOOKS: u32 = 16;
/// The most ways among which a question looks for one that leads to a gateway.
const PLACES: usize = 64;

/// Why the kernel sends a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Fall {
    /// No route over the interface leads to the peer.
    NoRoad,
    /// The neighbour's address is not known. Sending makes the kernel ask for it.
    NoNeighbour,
    /// The neighbour's address is old. Sending makes the kernel confirm it.
    Confirm,
    /// The interface is down.
    Down,
    /// The packet does not fit a frame, or is too long for the path. The kernel cuts it into
    /// fragments.
    Long,
    /// Packets are no longer steered to us, so the peer's packets come through the kernel, too.
    Unsteered,
}

/// Names of the counters of packets that the kernel sends, in the order of [`Fall`].
pub(crate) const FALLS: [&str; 6] = [
    "tx_kernel_no_road",
    "tx_kernel_no_neighbour",
    "tx_kernel_confirm",
    "tx_kernel_down",
    "tx_kernel_long",
    "tx_kernel_unsteered",
];

/// The way to one peer.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    peer: PeerId,
    reach: Reach,
    road: Option<Road>,
    /// How packets leave; `None` if the kernel sends them.
    form: Option<Form>,
    /// Whether the next packet goes through the kernel.
    confirm: bool,
    /// Whether the kernel did not answer the last question for the road, so `road` may be old.
    is_unanswered: bool,
}

/// The part of a way that is needed to send a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The headers.
    pub(crate) header: Header,
    /// The headers of the last datagram.
    stamp: Stamp,
    /// The most payload bytes of a datagram with several packets; 0 if packets never share one.
    pub(crate) datagram: usize,
    /// The most bytes of a packet.
    pub(crate) longest: usize,
    /// The most bytes of a packet that fits a line of a lane.
    pub(crate) line: usize,
    /// Equal to `line` if each packet has a datagram of its own; 0 if packets may share one.
    pub(crate) short: usize,
}

/// The address of our interface, which both halves of an endpoint use.
#[derive(Clone, Debug)]
pub(crate) struct OwnMac(Arc<AtomicU64>);

impl OwnMac {
    pub(crate) fn new(mac: Mac) -> Self {
        Self(Arc::new(AtomicU64::new(number_of(mac))))
    }

    #[inline]
    pub(crate) fn get(&self) -> Mac {
        let [mac @ .., _, _] = self.0.load(Ordering::Relaxed).to_le_bytes();
        mac
    }

    pub(crate) fn set(&self, mac: Mac) {
        self.0.store(number_of(mac), Ordering::Relaxed);
    }
}

fn number_of([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// The ways to all peers.
#[derive(Debug)]
pub(crate) struct Ways {
    /// The way to each peer, at the peer's place.
    ways: Vec<Option<Way>>,
    home: Home,
    mac: OwnMac,
    /// Bytes of the longest payload.
    longest: u32,
    /// Whether frames leave: the interface is up, and packets are steered.
    is_up: bool,
    is_steered: bool,
    roads: Box<dyn Roads>,
    /// Looks until the next question about a path, and the place of the last one.
    ask_in: u32,
    asked: usize,
    /// Whether a question for a road is still unanswered, and the place where [`Self::ask_again`]
    /// begins.
    is_unanswered: bool,
    again: usize,
}

impl Ways {
    /// No ways yet, from `home` over the interface `link`.
    pub(crate) fn new(home: Home, mac: OwnMac, link: &Link, roads: Box<dyn Roads>) -> Self {
        let mut ways = Self {
            ways: Vec::new(),
            home,
            mac,
            longest: 0,
            is_up: false,
            is_steered: true,
            roads,
            ask_in: LOOKS,
            asked: 0,
            is_unanswered: false,
            again: 0,
        };
        ways.on_link(link);
        ways
    }

    /// Looks for the way to a peer, unless it is known.
    pub(crate) fn add(&mut self, peer: PeerId, reach: Reach) {
        if self.way_mut(peer).is_some() {
            return;
        }
        if self.ways.len() <= reach.place {
            self.ways.resize(reach.place + 1, None);
        }
        let mut way = Way {
            peer,
            reach,
            road: None,
            form: None,
            confirm: false,
            is_unanswered: false,
        };
        way.follow(&self.home, self.longest, &mut *self.roads);
        self.is_unanswered |= way.is_unanswered;
        self.ways[reach.place] = Some(way);
    }

    /// Forgets a peer.
    pub(crate) fn remove(&mut self, peer: PeerId) {
        if self.way_mut(peer).is_some() {
            self.ways[place_of(peer)] = None;
        }
    }

    /// How the next packets to a peer leave.
    ///
    /// # Errors
    /// The kernel has to send them.
    #[inline]
    pub(crate) fn take(&mut self, peer: PeerId) -> Result<&mut Form, Fall> {
        let (is_up, is_steered) = (self.is_up, self.is_steered);
        let way = self.ways.get_mut(place_of(peer)).and_then(Option::as_mut);
        let way = way.filter(|way| is_same(way.peer, peer));
        let way = way.ok_or(Fall::NoRoad)?;
        if way.confirm || !is_up || way.form.is_none() {
            return Err(way.fall(is_steered));
        }
        way.form.as_mut().ok_or(Fall::NoNeighbour)
    }

    /// How packets to a peer leave in frames. If `None`, ask [`Self::take`] for the way.
    #[inline]
    pub(crate) fn ready(&mut self, peer: PeerId) -> Option<&mut Form> {
        let is_up = self.is_up;
        let way = self.way_mut(peer).filter(|way| is_up && !way.confirm)?;
        way.form.as_mut()
    }

    /// Keeps the headers of the last datagram, which `copy` has: a copy of the peer's form.
    #[inline]
    pub(crate) fn keep_stamp(&mut self, peer: PeerId, copy: &Form) {
        let way = self.way_mut(peer);
        let form = way.and_then(|way| way.form.as_mut());
        if let Some(form) = form.filter(|form| form.stamp.payload() != copy.stamp.payload()) {
            form.stamp = copy.stamp;
        }
    }

    /// Notes that the kernel took no frame because the interface is down. An event will report that
    /// it is up.
    pub(crate) fn on_down(&mut self) {
        self.is_up = false;
    }

    /// Follows the changes, up to a limit, so that a large number of events delays no packet for
    /// long.
    pub(crate) fn look(&mut self) {
        for _ in 0..CHANGES {
            match self.roads.change() {
                Some(Change::Neighbour(ip, neighbour)) => self.on_neighbour(ip, neighbour),
                Some(Change::Link(link)) => self.on_link(&link),
                Some(Change::LinkGone) => self.is_up = false,
                Some(Change::Roads) => self.on_roads(),
                Some(Change::Unsteered) => self.on_unsteered(),
                None => break,
            }
        }
        if self.is_unanswered {
            self.ask_again();
        }
        self.ask_in -= 1;
        if self.ask_in == 0 {
            self.ask_in = LOOKS;
            self.ask_for_path();
        }
    }

    /// Asks for the longest packets on the path to the next peer after a gateway. A router that
    /// refuses longer ones says so to the kernel, which reports no event for that.
    #[cold]
    fn ask_for_path(&mut self) {
        for _ in 0..PLACES.min(self.ways.len()) {
            self.asked = (self.asked + 1) % self.ways.len();
            let way = self.ways[self.asked].as_mut();
            if let Some(way) = way.filter(|way| way.leads_to_gateway()) {
                // Without an answer, the limit stays.
                if let Ok(mtu) = self.roads.mtu(way.reach.address.ip()) {
                    way.on_mtu(mtu, &self.home, self.longest);
                }
                return;
            }
        }
    }

    fn on_neighbour(&mut self, ip: std::net::IpAddr, neighbour: Neighbour) {
        let leads_there = |way: &&mut Way| way.road.is_some_and(|road| road.hop == ip);
        for way in self.ways.iter_mut().flatten().filter(leads_there) {
            way.road = way.road.map(|road| Road { neighbour, ..road });
            way.build(&self.home, self.longest);
        }
    }

    fn on_link(&mut self, link: &Link) {
        let mtu = link.mtu_of(self.home.address.is_ipv6());
        self.longest = payload_in(mtu, &self.home).min(LONGEST);
        self.is_up = link.is_up && self.is_steered;
        if let Some(mac) = link.mac.filter(|mac| *mac != self.home.mac) {
            self.home.mac = mac;
            self.mac.set(mac);
            let ways = self.ways.iter_mut().flatten();
            ways.for_each(|way| way.build(&self.home, self.longest));
        }
        for way in self.ways.iter_mut().flatten() {
            way.fit(&self.home, self.longest);
        }
    }

    /// Leaves all packets to the kernel from now on.
    fn on_unsteered(&mut self) {
        self.is_steered = false;
        self.is_up = false;
    }

    fn on_roads(&mut self) {
        for way in self.ways.iter_mut().flatten() {
            way.follow(&self.home, self.longest, &mut *self.roads);
            self.is_unanswered |= way.is_unanswered;
        }
    }

    /// Asks once more for the roads about which the kernel gave no answer, until it gives none
    /// again. The next call begins after that one, so that a road that never gets an answer does
    /// not keep the others from theirs.
    #[cold]
    fn ask_again(&mut self) {
        for place in (self.again..self.ways.len()).chain(0..self.again) {
            let way = self.ways[place].as_mut();
            if let Some(way) = way.filter(|way| way.is_unanswered) {
                way.follow(&self.home, self.longest, &mut *self.roads);
                if way.is_unanswered {
                    self.again = place + 1;
                    return;
                }
            }
        }
        self.is_unanswered = false;
    }

    #[inline]
    fn way_mut(&mut self, peer: PeerId) -> Option<&mut Way> {
        let way = self.ways.get_mut(place_of(peer))?.as_mut()?;
        is_same(way.peer, peer).then_some(way)
    }
}

impl Way {
    /// Why the kernel sends the next packet.
    #[cold]
    fn fall(&mut self, is_steered: bool) -> Fall {
        if self.confirm {
            self.confirm = false;
            return Fall::Confirm;
        }
        match self.form {
            Some(_) if !is_steered => Fall::Unsteered,
            Some(_) => Fall::Down,
            None if self.road.is_none() => Fall::NoRoad,
            None => Fall::NoNeighbour,
        }
    }

    /// Asks for the road. Without an answer, the known one stays: the kernel lacks memory, say,
    /// which tells nothing about the road.
    fn follow(&mut self, home: &Home, longest: u32, roads: &mut dyn Roads) {
        let answer = roads.road(self.reach.address.ip());
        self.is_unanswered = answer.is_err();
        if let Ok(road) = answer {
            self.road = road;
            self.build(home, longest);
        }
    }

    /// Makes the headers that fit the road, for payloads of up to `longest` bytes.
    fn build(&mut self, home: &Home, longest: u32) {
        let neighbour = self.road.map(|road| road.neighbour).unwrap_or_default();
        let reach = &self.reach;
        let mac = neighbour.mac.filter(|mac| is_of_one(*mac));
        let same_family = reach.address.is_ipv4() == home.address.is_ipv4();
        let longest = self.longest(home, longest);
        let form = |mac| Form::new(Header::new(home, reach.address, mac), reach, longest);
        self.form = mac.filter(|_| same_family).map(form);
        self.confirm = neighbour.is_idle && self.form.is_some();
    }

    /// Whether packets go by way of another host.
    fn leads_to_gateway(&self) -> bool {
        let hop = self.road.map(|road| road.hop);
        hop.is_some_and(|hop| hop != self.reach.address.ip())
    }

    /// Follows a change of the longest packets on the path.
    fn on_mtu(&mut self, mtu: Option<u32>, home: &Home, longest: u32) {
        if let Some(road) = self.road.as_mut().filter(|road| road.mtu != mtu) {
            road.mtu = mtu;
            self.fit(home, longest);
        }
    }

    /// Sets the limits of packets, for an interface that has payloads of up to `longest` bytes.
    fn fit(&mut self, home: &Home, longest: u32) {
        let longest = self.longest(home, longest);
        if let Some(form) = &mut self.form {
            form.fit(&self.reach, longest);
        }
    }

    /// The longest payload that both the path and the interface have room for.
    fn longest(&self, home: &Home, of_interface: u32) -> u32 {
        let mtu = self.road.and_then(|road| road.mtu);
        mtu.map_or(of_interface, |mtu| payload_in(mtu, home).min(of_interface))
    }
}

/// The bytes after the headers of IP and UDP in a packet of `mtu` bytes.
fn payload_in(mtu: u32, home: &Home) -> u32 {
    let headers = u32::try_from(home.ip_and_udp()).expect("headers are short");
    mtu.saturating_sub(headers)
}

impl Form {
    fn new(header: Header, reach: &Reach, longest: u32) -> Self {
        let mut form = Self {
            stamp: header.stamp(0),
            header,
            datagram: 0,
            longest: 0,
            line: 0,
            short: 0,
        };
        form.fit(reach, longest);
        form
    }

    /// Sets the limits, for payloads of up to `longest` bytes.
    fn fit(&mut self, reach: &Reach, longest: u32) {
        let packed = if reach.pack { reach.datagram } else { 0 };
        self.datagram = packed.min(longest) as usize;
        self.longest = reach.packet.min(longest) as usize;
        self.line = self.longest.min(MAX_INLINE);
        self.short = match self.datagram {
            0 => self.line,
            _ => 0,
        };
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
}

/// Whether an Ethernet address names a single interface.
fn is_of_one(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

#[cfg(test)]
mod tests;
