//! The peers of a transport that sends UDP datagrams without a socket: their offers, and where
//! their packets go. To a peer, such an endpoint looks like a `udp` endpoint.
//!
//! Invariant: packets to a peer go to the address of its connection, or to an address that the
//! operator allows and that the peer can prove (rules C12 and C13). No I/O on the data path. Used
//! by `dunlin-dpdk`.

use std::io;
use std::net::SocketAddr;

use dunlin_core::transport::PeerId;

use super::offer::Terms;
use super::options::{MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Options};
use super::pack::Shape;
use super::peers::{Peer, Peers, Reach};
use super::socket::is_of_this_host;
use super::{HEADER_BYTES, MAX_FRAMING};
use crate::connect::{ConnectError, Offer, PeerInfo, Pending};
use crate::networks::Networks;

/// The peers of one endpoint.
#[derive(Debug)]
pub struct Book {
    home: SocketAddr,
    /// Longest datagram that the endpoint receives and sends, in bytes.
    buffer: u32,
    data_size: u32,
    shape: Shape,
    allow_peers: Networks,
    peers: Peers,
}

impl Book {
    /// The book of an endpoint that receives datagrams of up to `buffer` bytes at the address
    /// `home`. From `options`, it reads the sizes, the packing, and the limits of peers.
    ///
    /// # Errors
    /// `InvalidInput` if `buffer` has no room for a packet, or for options outside their limits.
    pub fn new(home: SocketAddr, buffer: u32, options: &Options) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        let buffer = buffer.min(MAX_DATAGRAM_BYTES);
        if buffer < MIN_DATAGRAM_BYTES {
            return Err(invalid("the longest datagram is too short for packets"));
        }
        // Not the longest datagram of our link: the peer's link may have a shorter MTU, and the
        // peer's offer does not state it. It states the peer's buffer, and a kernel's UDP socket
        // has a buffer for the longest datagram of all.
        let datagram = options.datagram_from(home.ip());
        if !(MIN_DATAGRAM_BYTES..=MAX_DATAGRAM_BYTES).contains(&datagram) {
            return Err(invalid("datagram_bytes is outside its limits"));
        }
        if options.data_size == 0 {
            return Err(invalid("data_size is outside its limits"));
        }
        Ok(Self {
            home,
            buffer,
            // The longest packet fits a datagram, because there is no kernel to fragment it.
            data_size: options.data_size.min(buffer - MAX_FRAMING),
            shape: Shape {
                datagram: datagram.min(buffer),
                pack: options.pack,
                segment: false,
            },
            allow_peers: options.allow_peers.clone(),
            peers: Peers::new(options.max_peers),
        })
    }

    /// The most data bytes in one packet.
    pub fn data_size(&self) -> u32 {
        self.data_size
    }

    /// As [`Connect::offer`](crate::connect::Connect::offer).
    ///
    /// # Errors
    /// `TooManyPeers`.
    pub fn offer(&mut self, peer: &PeerInfo) -> Result<(Pending, Offer), ConnectError> {
        let pending = self.peers.begin_offer(peer);
        let pending = pending.ok_or(ConnectError::TooManyPeers)?;
        Ok((pending, self.terms().encode()))
    }

    /// As [`Connect::accept`](crate::connect::Connect::accept).
    ///
    /// # Errors
    /// Any but `Os`; the book is then unchanged.
    pub fn accept(
        &mut self,
        peer: &PeerInfo,
        offer: &Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        let id = self.add(peer, &Terms::decode(offer)?)?;
        Ok((id, self.terms().encode()))
    }

    /// As [`Connect::complete`](crate::connect::Connect::complete).
    ///
    /// # Errors
    /// `Gone` if the offer waits for no answer; otherwise those of [`Self::accept`].
    pub fn complete(&mut self, pending: &Pending, answer: &Offer) -> Result<PeerId, ConnectError> {
        let peer = self.peers.end_offer(pending).ok_or(ConnectError::Gone)?;
        self.add(&peer, &Terms::decode(answer)?)
    }

    /// Gives up an offer.
    pub fn abandon(&mut self, pending: &Pending) {
        self.peers.end_offer(pending);
    }

    /// Removes one use of a peer.
    pub fn release(&mut self, peer: PeerId) {
        self.peers.release(peer);
    }

    /// Removes all uses of a peer.
    pub fn remove(&mut self, peer: PeerId) {
        self.peers.remove(peer);
    }

    /// Where packets to a peer go; `None` if there is no such peer.
    pub fn reach(&self, peer: PeerId) -> Option<Reach> {
        self.peers.reach(peer)
    }

    /// Data bytes in a packet to and from a peer; 0 if there is no such peer.
    pub fn data_size_of(&self, peer: PeerId) -> u32 {
        self.peers.get(peer).map_or(0, |peer| peer.data_size)
    }

    /// Whether packets to a peer go to an address other than its connection's.
    pub fn is_foreign(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.foreign)
    }

    fn terms(&self) -> Terms {
        Terms {
            data_size: self.data_size,
            buffer: self.buffer,
            addresses: vec![self.home],
        }
    }

    fn add(&mut self, info: &PeerInfo, terms: &Terms) -> Result<PeerId, ConnectError> {
        let is_its = |ip| info.has(ip, is_of_this_host);
        let terms =
            terms.within(|ip| is_its(ip) || (info.proves && self.allow_peers.contains(ip)))?;
        let addr = terms.address_for(self.home, false)?;
        let data_size = terms.data_size.min(self.data_size);
        if terms.buffer < data_size + HEADER_BYTES {
            return Err(ConnectError::Sizes);
        }
        let mut peer = Peer::new(addr, self.shape, terms.buffer, data_size);
        peer.foreign = !is_its(addr.ip());
        self.peers
            .add(info.endpoint, addr, peer)
            .ok_or(ConnectError::TooManyPeers)
    }
}

#[cfg(test)]
mod tests;
