//! The sending half: from a burst of packets to one system call.
//!
//! A burst is handled in windows of [`WINDOW`] packets. In each window, packets are grouped by peer
//! (in order for each peer), formed into datagrams and messages (`pack`), and handed to the kernel.
//! The kernel has its copy when the call returns, so `done` is always the end of the sequence.
//!
//! A packet that the kernel refuses is dropped and counted. A full queue ends the window, because
//! the rest would find it full too; any other error ends only its message. So there are at most two
//! system calls per packet, whatever the kernel answers, and none waits. Called by the event loop,
//! and by `connect`.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use dunlin_core::transport::{LANE_PACKET, Lane, LanePacket, Path, PeerId, Tx, TxItem, TxSeq};
use dunlin_core::{Nanos, Scheme};
use dunlin_msgbuf::BufRef;

use super::addr::RawAddr;
use super::ffi::{self, Errno};
use super::messages::{Message, Messages, WINDOW};
use super::offer::Terms;
use super::options::Options;
use super::pack::{Fit, Packer, Shape};
use super::peers::{Peer, Peers, Reach};
use super::socket::Socket;
use crate::connect::{ConnectError, PeerInfo};
use crate::counters::Counters;
use crate::lent::data_of;

/// The sending half of a `udp` endpoint.
#[derive(Debug)]
pub struct UdpTx {
    socket: Arc<Socket>,
    peers: Peers,
    /// The limits of our datagrams. A peer may have lower ones.
    shape: Shape,
    line_rate: u64,
    base_rtt: Nanos,
    messages: Messages,
    given: TxSeq,
    counters: Counters,
}

/// A packet to send, from a lane or from the queue.
#[derive(Clone, Copy, Debug)]
struct Packet<'a> {
    peer: PeerId,
    /// `None`: the item claims more inline bytes than possible.
    inline: Option<&'a [u8]>,
    data: BufRef,
}

/// Why the kernel refused a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    /// The queue is full.
    Full,
    /// The message's segments may be the cause.
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
        let terms = terms.within(|ip| self.socket.may_send(info, ip))?;
        let addr = self.socket.address_of(&terms, info.local)?;
        let own = self.socket.data_size_at(&self.socket.addresses(info.local));
        let data_size = terms.data_size.min(own);
        let mut peer = Peer::new(addr, self.shape, terms.buffer, data_size);
        peer.foreign = Socket::is_foreign(info, addr.ip());
        let own = self.socket.addresses(info.local);
        peer.own = own
            .iter()
            .map(SocketAddr::ip)
            .find(|own| own.to_canonical().is_ipv6() == addr.ip().to_canonical().is_ipv6());
        self.with_peers(|peers| peers.add(info.endpoint, addr, peer))
            .ok_or(ConnectError::TooManyPeers)
    }

    /// Data bytes per packet to and from a peer; 0 if there is no such peer.
    pub(super) fn data_size_of(&self, peer: PeerId) -> u32 {
        self.peers.get(peer).map_or(0, |peer| peer.data_size)
    }

    /// Whether packets to this peer go to an address other than its connection's.
    pub(super) fn is_foreign(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.foreign)
    }

    /// Changes the peers, and informs the socket whether there is now a single peer.
    pub(super) fn with_peers<R>(&mut self, change: impl FnOnce(&mut Peers) -> R) -> R {
        let changed = change(&mut self.peers);
        self.socket.on_only_peer(self.peers.only());
        changed
    }

    /// The counters of this half.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Where packets to a peer go, for a transport that sends them there by other means; `None` if
    /// there is no such peer.
    pub fn reach(&self, peer: PeerId) -> Option<Reach> {
        self.peers.reach(peer)
    }

    /// Sends some of the packets of a lane, in order, and the items after them.
    #[inline]
    pub fn send_staged(&mut self, lane: &Lane, packets: &[LanePacket], items: &[TxItem]) -> TxSeq {
        let count = packets.len() + items.len();
        let at = |index: usize| match packets.get(index) {
            Some(packet) => Packet::staged(lane, *packet),
            None => Packet::of(&items[index - packets.len()]),
        };
        for first in (0..count).step_by(WINDOW) {
            self.send_window(first..count.min(first + WINDOW), at);
        }
        self.given.0 += count as u64;
        self.given
    }

    /// Sends the packets with these numbers, at most [`WINDOW`].
    fn send_window<'a>(&mut self, window: Range<usize>, at: impl Fn(usize) -> Packet<'a>) {
        self.messages.clear(window.len());
        let first = at(window.start).peer;
        if window.clone().all(|index| at(index).peer == first) {
            self.form(first, window.map(at));
        } else {
            self.form_groups(window, at);
        }
        self.transmit();
    }

    /// Forms packets to several peers, one peer after the other.
    fn form_groups<'a>(&mut self, window: Range<usize>, at: impl Fn(usize) -> Packet<'a>) {
        let mut order = [0_u64; WINDOW];
        let order = &mut order[..window.len()];
        for (key, index) in order.iter_mut().zip(window) {
            *key = u64::from(at(index).peer.0) << 32 | index as u64;
        }
        order.sort_unstable();
        for group in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let mut of_peer = group.iter().map(|key| at((key & 0xFFFF_FFFF) as usize));
            if let Some(first) = of_peer.clone().next() {
                self.form(first.peer, &mut of_peer);
            }
        }
    }

    /// Forms the packets of one peer.
    #[inline]
    fn form<'a>(&mut self, id: PeerId, packets: impl Iterator<Item = Packet<'a>>) {
        let Some(peer) = self.peers.get(id) else {
            self.counters.tx_dropped_peer += packets.count() as u64;
            return;
        };
        let mut packer = Packer::new(peer.shape);
        for packet in packets {
            let Some((inline, len)) = packet.measure(peer.max_packet) else {
                self.counters.tx_dropped_size += 1;
                continue;
            };
            // SAFETY: we send for the endpoint that owns the msgbuf.
            let Some(data) = (unsafe { data_of(packet.data) }) else {
                self.counters.tx_dropped_stale += 1;
                continue;
            };
            if packer.fit(len) == Fit::Message {
                let is_tied = self.socket.is_tied();
                let to = if is_tied { &RawAddr::TIED } else { &peer.addr };
                self.messages.open(id, to);
            }
            self.messages.append(inline, data, packer.segment_size());
        }
    }

    /// Hands all messages to the kernel.
    fn transmit(&mut self) {
        let mut at = 0;
        while at < self.messages.list().len() {
            let sent = match self.give(at) {
                // An earlier datagram was refused by the peer to which the socket is tied, or by a
                // router for which it was too long. The kernel reports this once, and has not sent
                // this datagram.
                Err(Errno(libc::ECONNREFUSED | libc::EMSGSIZE)) => self.give(at),
                given => given,
            };
            at = match sent {
                Ok(sent) => self.count_sent(at, sent.max(1)),
                Err(errno) => self.refuse(at, errno),
            };
        }
    }

    /// Hands the messages from `at` on to the kernel. Returns the number that the kernel took.
    #[inline]
    fn give(&mut self, at: usize) -> Result<usize, Errno> {
        self.counters.syscalls += 1;
        let fd = self.socket.fd();
        match self.messages.alone() {
            Some((bytes, addr)) => ffi::send_to(fd, bytes, addr).map(|()| 1),
            // SAFETY: the endpoint leaves msgbufs alone until `done` reaches their items, which is
            // when `burst` has returned.
            None => unsafe { self.messages.send(fd, at) },
        }
    }

    /// Counts `sent` messages from `at` on, and returns the place of the next one.
    #[inline]
    fn count_sent(&mut self, at: usize, sent: usize) -> usize {
        for message in &self.messages.list()[at..at + sent] {
            self.counters.tx_packets += u64::from(message.packets);
            self.counters.tx_bytes += u64::from(message.bytes);
        }
        at + sent
    }

    /// Handles the kernel's refusal of message `at`. Returns the message to send next.
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

    /// Sends the datagrams of a message one by one, and stops segmentation for its peer.
    fn send_split(&mut self, at: usize, message: &Message) {
        self.peers.stop_segmenting(message.peer);
        self.counters.syscalls += u64::from(message.bytes.div_ceil(message.segment.into()));
        // SAFETY: as in `give`.
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
            self.send_window(0..window.len(), |index| Packet::of(&window[index]));
        }
        self.given.0 += items.len() as u64;
        self.given
    }

    fn lane(&self) -> usize {
        LANE_PACKET
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        self.send_staged(lane, lane.packets(), items)
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        self.given
    }

    /// The path through a network. Its round trip is measured unless the options state it. On the
    /// loopback device there is no such path: a packet there waits for a processor, and sending
    /// less does not make it faster.
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

impl<'a> Packet<'a> {
    #[inline]
    fn of(item: &'a TxItem) -> Self {
        Self {
            peer: item.peer,
            inline: item.inline.get(..item.inline_len as usize),
            data: item.data,
        }
    }

    #[inline]
    fn staged(lane: &'a Lane, packet: LanePacket) -> Self {
        Self {
            peer: packet.peer(),
            inline: Some(lane.bytes(packet)),
            data: BufRef::EMPTY,
        }
    }

    /// The inline bytes and the total length, if such a packet is possible.
    #[inline]
    fn measure(&self, max_packet: u32) -> Option<(&'a [u8], u32)> {
        let inline = self.inline?;
        let len = u32::try_from(inline.len() + self.data.len()).ok()?;
        (1..=max_packet).contains(&len).then_some((inline, len))
    }
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
