//! The sending half: from a burst of packets to one system call.
//!
//! A burst is worked off in windows of [`WINDOW`] packets. In each, packets are brought together
//! by peer (in order for each peer), formed into datagrams and messages (`pack`), and handed to the
//! kernel, which has its copy when the call returns; so `done` is always the end of the sequence.
//!
//! What the kernel refuses is dropped and counted. A full queue ends the window, because the rest
//! would meet the same; any other error concerns one message and ends that one. So the number of
//! system calls is bounded by the number of packets, whatever the kernel answers, and none waits.
//! Called by the event loop, and by `connect`.

use std::sync::Arc;

use dunlin_core::transport::{LANE_PACKETS, Lane, Path, PeerId, Tx, TxItem, TxSeq};
use dunlin_core::{Nanos, Scheme};
use dunlin_msgbuf::regions;

use super::ffi::{self, Errno};
use super::messages::{Message, Messages, WINDOW};
use super::offer::Terms;
use super::options::Options;
use super::pack::{Packer, Place, Shape};
use super::peers::{Peer, Peers};
use super::socket::Socket;
use crate::connect::{ConnectError, PeerInfo};
use crate::counters::Counters;

/// The sending half of a `udp` endpoint.
#[derive(Debug)]
pub struct UdpTx {
    socket: Arc<Socket>,
    peers: Peers,
    /// What we form packets into, unless a peer wants less.
    shape: Shape,
    line_rate: u64,
    base_rtt: Nanos,
    messages: Messages,
    /// The endpoint's only lane, unless it is lent.
    lane: Option<Lane>,
    /// The packets of a lane that is sent.
    row: Vec<TxItem>,
    given: TxSeq,
    counters: Counters,
}

/// Why the kernel refused a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    /// The queue is full.
    Full,
    /// Perhaps because the message has segments.
    Segments,
    /// This message cannot be sent.
    Message,
}

impl UdpTx {
    pub(super) fn new(socket: Arc<Socket>, options: &Options) -> Self {
        Self {
            peers: Peers::new(options.max_peers),
            shape: Shape {
                datagram: socket.datagram,
                pack: options.pack,
                segment: socket.gso,
            },
            line_rate: options.line_rate,
            base_rtt: options.base_rtt,
            messages: Messages::new(),
            lane: Some(Lane::new()),
            row: Vec::with_capacity(LANE_PACKETS),
            given: TxSeq(0),
            counters: Counters::default(),
            socket,
        }
    }

    /// Counts one use of the peer that sent `terms`.
    pub(super) fn add_peer(
        &mut self,
        info: &PeerInfo,
        terms: &Terms,
    ) -> Result<PeerId, ConnectError> {
        let addr = self.socket.address_of(terms, info.local)?;
        let own = self.socket.data_size_at(&self.socket.addresses(info.local));
        let data_size = terms.data_size.min(own);
        let peer = Peer::new(addr, self.shape, terms.buffer, data_size);
        self.peers
            .add((info.endpoint, addr), peer)
            .ok_or(ConnectError::TooManyPeers)
    }

    /// Data bytes per packet to and from a peer; 0 if there is no such peer.
    pub(super) fn data_size_of(&self, peer: PeerId) -> u32 {
        self.peers.get(peer).map_or(0, |peer| peer.data_size)
    }

    pub(super) fn peers_mut(&mut self) -> &mut Peers {
        &mut self.peers
    }

    /// What this half has counted.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Sends at most [`WINDOW`] packets.
    fn send_window(&mut self, items: &[TxItem]) {
        self.messages.clear(items.len());
        if items.iter().all(|item| item.peer == items[0].peer) {
            self.form(items[0].peer, items.iter());
        } else {
            self.form_groups(items);
        }
        self.transmit();
    }

    /// Forms packets to several peers, one peer after the other.
    fn form_groups(&mut self, items: &[TxItem]) {
        let mut order = [0_u64; WINDOW];
        let order = &mut order[..items.len()];
        for (key, (index, item)) in order.iter_mut().zip((0_u64..).zip(items)) {
            *key = u64::from(item.peer.0) << 32 | index;
        }
        order.sort_unstable();
        for group in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let mut of_peer = group.iter().map(|key| &items[(key & 0xFFFF_FFFF) as usize]);
            if let Some(first) = of_peer.clone().next() {
                self.form(first.peer, &mut of_peer);
            }
        }
    }

    /// Forms the packets of one peer.
    #[inline]
    fn form<'a>(&mut self, id: PeerId, items: impl Iterator<Item = &'a TxItem>) {
        let Some(peer) = self.peers.get(id) else {
            self.counters.tx_dropped_peer += items.count() as u64;
            return;
        };
        let mut packer = Packer::new(peer.shape);
        for item in items {
            let Some((inline, len)) = measure(item, peer.max_packet) else {
                self.counters.tx_dropped_size += 1;
                continue;
            };
            // SAFETY: we send for the endpoint that owns the msgbuf.
            let Some(data) = (unsafe { data_of(item) }) else {
                self.counters.tx_dropped_stale += 1;
                continue;
            };
            if packer.place(len) == Place::Message {
                self.messages.open(id, &peer.addr);
            }
            self.messages.append(inline, data, packer.segment_size());
        }
    }

    /// Hands all messages over.
    fn transmit(&mut self) {
        if let Some((bytes, addr)) = self.messages.alone() {
            self.counters.syscalls += 1;
            match ffi::send_to(self.socket.fd(), bytes, addr) {
                Ok(()) => self.count_sent(0, 1),
                Err(errno) => self.refuse(0, errno),
            };
            return;
        }
        let mut at = 0;
        while at < self.messages.list().len() {
            self.counters.syscalls += 1;
            // SAFETY: the endpoint leaves msgbufs alone until `done` reaches their items, which is
            // when `burst` has returned.
            at = match unsafe { self.messages.send(self.socket.fd(), at) } {
                Ok(sent) => self.count_sent(at, sent.max(1)),
                Err(errno) => self.refuse(at, errno),
            };
        }
    }

    /// Counts `sent` messages from `at` on, and returns the place behind them.
    #[inline]
    fn count_sent(&mut self, at: usize, sent: usize) -> usize {
        for message in &self.messages.list()[at..at + sent] {
            self.counters.tx_packets += u64::from(message.packets);
            self.counters.tx_bytes += u64::from(message.bytes);
        }
        at + sent
    }

    /// The kernel refused message `at`. Returns which message is to be sent next.
    #[cold]
    fn refuse(&mut self, at: usize, errno: Errno) -> usize {
        let message = self.messages.list()[at];
        match classify(errno, &message) {
            Refusal::Full => {
                let rest = self.messages.list()[at..].iter();
                self.counters.tx_dropped_full += rest.map(|m| u64::from(m.packets)).sum::<u64>();
                return self.messages.list().len();
            }
            Refusal::Segments => self.send_split(at, &message),
            Refusal::Message => self.counters.tx_dropped_error += u64::from(message.packets),
        }
        at + 1
    }

    /// Sends the datagrams of a message one by one, and those to come to the same peer as well.
    fn send_split(&mut self, at: usize, message: &Message) {
        self.peers.stop_segmenting(message.peer);
        self.counters.syscalls += u64::from(message.bytes.div_ceil(message.segment.into()));
        // SAFETY: as in `transmit`.
        let refused = unsafe { self.messages.send_split(self.socket.fd(), at) };
        if refused == 0 {
            self.count_sent(at, 1);
        } else {
            self.counters.tx_dropped_error += u64::from(message.packets);
        }
    }
}

impl Tx for UdpTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        for window in items.chunks(WINDOW) {
            self.send_window(window);
        }
        self.given.0 += items.len() as u64;
        self.given
    }

    fn lend(&mut self, peer: PeerId, expected: usize) -> Option<Lane> {
        self.peers.get(peer)?;
        let mut lane = self.lane.take()?;
        lane.reset(expected);
        Some(lane)
    }

    fn publish(&mut self, peer: PeerId, lane: Lane) {
        const { assert!(LANE_PACKETS <= WINDOW) };
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend(lane.packets().iter().map(|packet| packet.to_item(peer)));
        self.lane = Some(lane);
        if !row.is_empty() {
            self.send_window(&row);
        }
        self.row = row;
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        self.given
    }

    /// A network, of which measurement tells how long it is unless the options do. On the loopback
    /// device there is none: what waits there waits for a processor, and sending less does not make
    /// it faster.
    fn path(&self, peer: PeerId) -> Option<Path> {
        let is_near = self.peers.get(peer).is_some_and(|peer| peer.loopback);
        (!is_near).then_some(Path {
            line_rate: self.line_rate,
            base_rtt: self.base_rtt,
            scheme: Scheme::Swift,
        })
    }

    fn flush(&mut self) {}
}

/// The inline bytes of a packet and the length of the whole, if there is such a packet.
#[inline]
fn measure(item: &TxItem, max_packet: u32) -> Option<(&[u8], u32)> {
    let inline = item.inline.get(..item.inline_len as usize)?;
    let len = u32::try_from(inline.len() + item.data.len()).ok()?;
    (1..=max_packet).contains(&len).then_some((inline, len))
}

/// The data bytes of a packet; `None` if the msgbuf was revoked.
///
/// # Safety
/// The caller sends for the endpoint that owns the msgbuf, and uses the bytes only until the
/// endpoint learns from `done` that it may change them.
#[inline]
unsafe fn data_of<'a>(item: &TxItem) -> Option<&'a [u8]> {
    if item.data.is_empty() {
        return Some(&[]);
    }
    // SAFETY: the region lives at least as long as the endpoint that owns its msgbuf.
    let at = unsafe { regions::resolve(item.data) }?;
    // SAFETY: `resolve` vouches for so many readable bytes until the msgbuf is revoked, which the
    // caller excludes.
    Some(unsafe { std::slice::from_raw_parts(at.as_ptr(), item.data.len()) })
}

fn classify(errno: Errno, message: &Message) -> Refusal {
    match errno.0 {
        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => Refusal::Full,
        // The path has a smaller MTU than the segments, or the device cannot do checksums.
        libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP if message.segment != 0 => {
            Refusal::Segments
        }
        _ => Refusal::Message,
    }
}

#[cfg(test)]
mod tests;
