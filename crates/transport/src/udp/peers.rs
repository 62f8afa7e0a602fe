//! The peers of an endpoint: from [`PeerId`] to the address of the peer.
//!
//! Owned by the TX half. A slot is reused under another id, which holds the slot's index and a
//! generation. Free slots wait in a queue, so a released id names no peer for a long time. The top
//! bit of an id stays 0 and is ignored; `auto` sets it.
//!
//! Invariant: a slot is in the queue of free slots if and only if it has no uses; then no live
//! peer's key leads to it. Called by `connect` (which changes it) and `tx` (which reads it).

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use dunlin_core::transport::PeerId;

use super::HEADER_BYTES;
use super::addr::RawAddr;
use super::options::MAX_DATAGRAM_BYTES;
use super::pack::Shape;
use super::tie::Aim;
use crate::connect::{EndpointUid, PeerInfo, Pending};

/// Bits of an id that are the index of its slot.
const INDEX_BITS: u32 = 20;
/// Bits of an id that are the generation of its slot.
const GENERATION_BITS: u32 = 11;
/// The bit of an id that belongs to `auto`.
const TOP_BIT: u32 = 1 << (INDEX_BITS + GENERATION_BITS);
const _: () = assert!(INDEX_BITS + GENERATION_BITS == 31);

/// The identity of a peer. The address is not enough, because a restarted process may have its
/// predecessor's address. The terms are part of the identity, because a process can offer another
/// process's identity without proof, and must not be able to change the sizes of that process's
/// packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    endpoint: EndpointUid,
    addr: SocketAddr,
    buffer: u32,
    data_size: u32,
    foreign: bool,
}

/// One peer, for sending.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The peer's address.
    pub(super) addr: RawAddr,
    /// The limits of its datagrams.
    pub(super) shape: Shape,
    /// The most bytes in one packet: a longer datagram does not fit the peer's buffers.
    pub(super) max_packet: u32,
    /// Data bytes per packet, in both directions.
    pub(super) data_size: u32,
    /// Whether its packets stay in this kernel, so that no network lies on the path.
    pub(super) loopback: bool,
    /// Whether the connection over which the peer was added has another address.
    pub(super) foreign: bool,
    /// Our address to which the peer sends; `None`: there are several.
    pub(super) own: Option<IpAddr>,
}

/// Where packets to a peer go, and in which form. From [`UdpTx::reach`](super::UdpTx::reach).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The address. An IPv4 address has its own form even if the socket is an IPv6 one.
    pub address: SocketAddr,
    /// The most bytes of a datagram that holds several packets.
    pub datagram: u32,
    /// The most bytes in one packet.
    pub packet: u32,
    /// Whether several packets may share a datagram.
    pub pack: bool,
    /// A small number that no other peer has at the same time.
    pub place: usize,
}

#[derive(Debug)]
struct Slot {
    peer: Peer,
    key: Key,
    generation: u32,
    uses: u32,
}

/// All peers of an endpoint, and the peers to which an offer went.
#[derive(Debug)]
pub(super) struct Peers {
    slots: Vec<Slot>,
    free: VecDeque<u32>,
    by_key: HashMap<Key, u32>,
    offered: HashMap<u64, PeerInfo>,
    next_offer: u64,
    max: usize,
}

impl Peers {
    /// Makes the state without peers, for at most `max` at a time.
    pub(super) fn new(max: u32) -> Self {
        let max = max.min(1 << INDEX_BITS) as usize;
        Self {
            slots: Vec::new(),
            free: VecDeque::new(),
            by_key: HashMap::new(),
            offered: HashMap::new(),
            next_offer: 0,
            max,
        }
    }

    /// Stores the peer to which an offer goes; `None` if too many offers wait for answers.
    pub(super) fn begin_offer(&mut self, peer: &PeerInfo) -> Option<Pending> {
        if self.offered.len() >= self.max {
            return None;
        }
        self.next_offer += 1;
        self.offered.insert(self.next_offer, *peer);
        Some(Pending(self.next_offer))
    }

    /// Removes and returns the peer to which an offer went. `None` if there was no such offer.
    pub(super) fn end_offer(&mut self, pending: &Pending) -> Option<PeerInfo> {
        self.offered.remove(&pending.0)
    }

    /// Adds one use of a peer. The peer is new unless the same endpoint is in use at `addr` on the
    /// same terms.
    ///
    /// `None` if there are too many peers.
    pub(super) fn add(
        &mut self,
        endpoint: EndpointUid,
        addr: SocketAddr,
        peer: Peer,
    ) -> Option<PeerId> {
        let key = Key {
            endpoint,
            addr,
            buffer: peer.max_packet,
            data_size: peer.data_size,
            foreign: peer.foreign,
        };
        if let Some(&index) = self.by_key.get(&key) {
            let slot = &mut self.slots[index as usize];
            slot.uses = slot.uses.checked_add(1)?;
            if slot.peer.own != peer.own {
                slot.peer.own = None;
            }
            return Some(id(index, slot.generation));
        }
        let index = self.take_slot(key, peer)?;
        self.by_key.insert(key, index);
        Some(id(index, self.slots[index as usize].generation))
    }

    /// Removes one use; the last one frees the slot. Ids that name no peer are ignored.
    pub(super) fn release(&mut self, peer: PeerId) {
        let Some(slot) = self.slot_mut(peer) else {
            return;
        };
        slot.uses -= 1;
        if slot.uses == 0 {
            self.free_slot(peer);
        }
    }

    /// Removes all uses. Ids that name no peer are ignored.
    pub(super) fn remove(&mut self, peer: PeerId) {
        if let Some(slot) = self.slot_mut(peer) {
            slot.uses = 0;
            self.free_slot(peer);
        }
    }

    /// The peer of an id, unless it was released.
    #[inline]
    pub(super) fn get(&self, peer: PeerId) -> Option<&Peer> {
        let slot = self.slots.get(index_of(peer))?;
        slot.is_named(peer).then_some(&slot.peer)
    }

    /// The only peer, to which a socket may be tied. `None` if there are others, if another may
    /// send before its answer to an offer has come, if the peer sends to several of our addresses,
    /// or if it is not at the address of its control connection.
    pub(super) fn only(&self) -> Option<Aim> {
        let is_only = self.by_key.len() == 1 && self.offered.is_empty();
        let index = *self.by_key.values().next().filter(|_| is_only)?;
        let peer = &self.slots[index as usize].peer;
        let own = peer.own.filter(|_| !peer.foreign)?;
        Some(Aim {
            peer: peer.addr,
            own,
        })
    }

    /// Where packets to a peer go.
    pub(super) fn reach(&self, id: PeerId) -> Option<Reach> {
        let peer = self.get(id)?;
        let address = peer.addr.decode()?;
        let address = match address.ip().to_canonical() {
            ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
            IpAddr::V6(_) => address,
        };
        Some(Reach {
            address,
            datagram: peer.shape.datagram,
            packet: peer.max_packet,
            pack: peer.shape.pack,
            place: place_of(id),
        })
    }

    /// Stops segmentation to this peer, because it failed on the path.
    pub(super) fn stop_segmenting(&mut self, peer: PeerId) {
        if let Some(slot) = self.slot_mut(peer) {
            slot.peer.shape.segment = false;
        }
    }

    fn take_slot(&mut self, key: Key, peer: Peer) -> Option<u32> {
        // While there are few slots, fresh ones come first, so that an id is not reused soon.
        if self.slots.len() < self.max.min(RESTING) || self.free.is_empty() {
            if self.slots.len() == self.max {
                return None;
            }
            let index = u32::try_from(self.slots.len()).ok()?;
            self.slots.push(Slot {
                peer,
                key,
                generation: 0,
                uses: 1,
            });
            return Some(index);
        }
        let index = self.free.pop_front()?;
        let slot = &mut self.slots[index as usize];
        let generation = (slot.generation + 1) % (1 << GENERATION_BITS);
        *slot = Slot {
            peer,
            key,
            generation,
            uses: 1,
        };
        Some(index)
    }

    fn free_slot(&mut self, peer: PeerId) {
        let index = index_of(peer);
        self.by_key.remove(&self.slots[index].key);
        self.free.push_back(peer.0 & ((1 << INDEX_BITS) - 1));
    }

    fn slot_mut(&mut self, peer: PeerId) -> Option<&mut Slot> {
        self.slots
            .get_mut(index_of(peer))
            .filter(|slot| slot.is_named(peer))
    }
}

impl Slot {
    #[inline]
    fn is_named(&self, peer: PeerId) -> bool {
        self.uses > 0 && (peer.0 & !TOP_BIT) >> INDEX_BITS == self.generation
    }
}

impl Peer {
    /// A peer at `addr` whose buffers hold datagrams of `buffer` bytes; `shape` has the limits that
    /// we prefer.
    pub(super) fn new(addr: SocketAddr, shape: Shape, buffer: u32, data_size: u32) -> Self {
        let shape = Shape {
            datagram: shape.datagram.max(data_size + HEADER_BYTES).min(buffer),
            ..shape
        };
        Self {
            addr: RawAddr::new(addr),
            shape,
            max_packet: buffer.min(MAX_DATAGRAM_BYTES),
            data_size,
            loopback: addr.ip().to_canonical().is_loopback(),
            foreign: false,
            own: None,
        }
    }
}

/// Number of slots that are made before the first is reused.
const RESTING: usize = 64;

fn id(index: u32, generation: u32) -> PeerId {
    PeerId(generation << INDEX_BITS | index)
}

/// A peer's place in the tables of other transports; see [`Reach::place`].
#[inline]
pub fn place_of(peer: PeerId) -> usize {
    index_of(peer)
}

/// Whether two ids name the same peer. The top bit, by which `auto` marks ids of this transport,
/// does not count.
#[inline]
pub fn is_same(one: PeerId, other: PeerId) -> bool {
    (one.0 ^ other.0) & !TOP_BIT == 0
}

#[inline]
fn index_of(peer: PeerId) -> usize {
    (peer.0 & ((1 << INDEX_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests;
