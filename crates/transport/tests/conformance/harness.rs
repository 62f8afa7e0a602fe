//! Endpoints to test with, and packets that identify themselves.
//!
//! A packet begins with its own length, its number and its sender, and continues with bytes that
//! are computed from these three. So a test can split a frame that holds several packets, and find
//! a wrong byte, without information from the transport.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::transport::{
    Frame, Halves, Lane, Limits, MAX_INLINE, PeerId, Rx, Transport, Tx, TxItem,
};
use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig};
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_wire::HEADER_LEN;

/// A transport under test.
pub(crate) trait Harness {
    /// The transport.
    type T: Connect + Transport<Rx: Send, Tx: Send>;

    /// Opens an endpoint.
    fn open() -> Halves<RxOf<Self>, TxOf<Self>>;

    /// Whether the transport itself counts every packet that finds no room. UDP loses such packets
    /// in the receiver's socket.
    const COUNTS_FULL: bool;

    /// After this many empty polls on a loopback, no packet is in flight. The number is high
    /// because `auto` checks only one of its two transports in most polls.
    const QUIET_POLLS: u32 = 200;

    /// The number of races between a sender and a receiver that falls asleep.
    const RACES: u32 = 10_000;

    /// The number of endpoints that come and go in turn. A lower number suffices where the kernel
    /// takes long to open and close one: the tables of peers have room for more than 200 in any
    /// case.
    const VISITORS: u16 = 200;

    /// Whether packets to an endpoint's own address come back to it.
    const REACHES_ITSELF: bool = true;

    /// Whether the control plane reports that all endpoints are on this host.
    const SAME_HOST: bool = true;
}

pub(crate) type RxOf<H> = <<H as Harness>::T as Transport>::Rx;
pub(crate) type TxOf<H> = <<H as Harness>::T as Transport>::Tx;

/// An endpoint and memory to send from.
pub(crate) struct Endpoint<H: Harness + ?Sized> {
    pub(crate) rx: RxOf<H>,
    pub(crate) tx: TxOf<H>,
    pub(crate) limits: Limits,
    pub(crate) pool: Pool,
    /// The msgbufs that were sent last.
    kept: VecDeque<MsgBuf>,
    pub(crate) number: u16,
}

/// A packet as it arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Packet {
    pub(crate) sender: u16,
    pub(crate) number: u32,
    pub(crate) len: usize,
}

/// An endpoint keeps this number of its latest sent msgbufs unchanged.
const KEPT: usize = 512;

/// Bytes at the start of a packet that identify it.
pub(crate) const NAME: usize = 12;

/// Whether packets are staged.
static STAGES: AtomicBool = AtomicBool::new(false);

/// Makes endpoints stage all packets that they can, or none if `staged` is false.
pub(crate) fn stage(staged: bool) {
    STAGES.store(staged, Ordering::Relaxed);
}

/// A packet that has not arrived within this time counts as lost.
pub(crate) const SOON: Duration = Duration::from_secs(5);

impl<H: Harness> Endpoint<H> {
    pub(crate) fn new(number: u16) -> Self {
        let Halves { rx, tx, limits } = H::open();
        let pool = Pool::new(PoolConfig::default()).unwrap();
        Self {
            rx,
            tx,
            limits,
            pool,
            kept: VecDeque::new(),
            number,
        }
    }

    /// The description of this endpoint that the control plane would give.
    pub(crate) fn info(&self) -> PeerInfo {
        let mut uid = [7; 16];
        uid[..2].copy_from_slice(&self.number.to_le_bytes());
        PeerInfo {
            endpoint: EndpointUid(uid),
            same_host: H::SAME_HOST,
            same_process: false,
            proves: true,
            local: None,
            remote: (!H::SAME_HOST).then_some([127, 0, 0, 1].into()),
        }
    }

    /// Connects two endpoints. Returns this endpoint's number for the other, and the other's number
    /// for this one.
    pub(crate) fn connect(&mut self, other: &mut Self) -> (PeerId, PeerId) {
        let (us, them) = (self.info(), other.info());
        let (pending, offer) = H::T::offer(&mut self.rx, &mut self.tx, &them).unwrap();
        let (to_us, answer) = H::T::accept(&mut other.rx, &mut other.tx, &us, offer).unwrap();
        let to_them = H::T::complete(&mut self.rx, &mut self.tx, pending, answer).unwrap();
        (to_them, to_us)
    }

    pub(crate) fn release(&mut self, peer: PeerId) {
        H::T::release(&mut self.rx, &mut self.tx, peer);
    }

    pub(crate) fn remove(&mut self, peer: PeerId) {
        H::T::remove(&mut self.rx, &mut self.tx, peer);
    }

    pub(crate) fn counters(&self) -> dunlin_transport::counters::Counters {
        H::T::counters(&self.rx, &self.tx)
    }

    /// A packet of `len` bytes, at least [`NAME`], of which `inline` are in the item.
    pub(crate) fn packet(
        &mut self,
        peer: PeerId,
        number: u32,
        len: usize,
        inline: usize,
    ) -> (TxItem, Option<MsgBuf>) {
        let bytes = contents(self.number, number, len);
        let inline_len = inline.min(len).min(MAX_INLINE);
        let mut item = TxItem {
            peer,
            inline_len: u32::try_from(inline_len).unwrap(),
            inline: [0xEE; MAX_INLINE],
            data: BufRef::EMPTY,
        };
        item.inline[..inline_len].copy_from_slice(&bytes[..inline_len]);
        if inline_len == len {
            return (item, None);
        }
        let mut buf = self.pool.alloc(len - inline_len).unwrap();
        buf.data_mut().copy_from_slice(&bytes[inline_len..]);
        item.data = buf.lend();
        (item, Some(buf))
    }

    /// Sends packets and waits until the transport is done with them. The bytes stay unchanged for
    /// a while, like those of a request that has no answer yet.
    pub(crate) fn send(&mut self, packets: Vec<(TxItem, Option<MsgBuf>)>) {
        let lane = self.stage_first(&packets);
        let (items, bufs): (Vec<_>, Vec<_>) = packets.into_iter().unzip();
        let handed_over = match lane.is_empty() {
            true => self.tx.burst(&items),
            false => self.tx.send(&lane, &items[lane.len()..]),
        };
        self.tx.flush();
        assert!(self.tx.done() >= handed_over, "flushed, but not done");
        self.kept.extend(bufs.into_iter().flatten());
        let surplus = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..surplus);
    }

    /// A lane with the first packets that can be staged; empty if endpoints stage none.
    fn stage_first(&mut self, packets: &[(TxItem, Option<MsgBuf>)]) -> Lane {
        let longest = if STAGES.load(Ordering::Relaxed) {
            self.tx.lane()
        } else {
            0
        };
        let mut lane = Lane::new(longest);
        for (item, buf) in packets {
            let inline = item.inline.get(..item.inline_len as usize).unwrap_or(&[]);
            let data = buf
                .as_ref()
                .filter(|buf| buf.is_lent())
                .map_or(&[][..], MsgBuf::data);
            let bytes = [inline, data].concat();
            let revoked = item.data.len() != data.len();
            if bytes.len() < HEADER_LEN || revoked || !self.stage(&mut lane, item.peer, &bytes) {
                break;
            }
        }
        lane
    }

    /// Stages a packet, if it is short enough.
    pub(crate) fn stage(&mut self, lane: &mut Lane, peer: PeerId, bytes: &[u8]) -> bool {
        let (header, data) = bytes.split_at(HEADER_LEN);
        let (words, _) = header.as_chunks();
        let mut message = self.pool.alloc(data.len()).unwrap();
        message.data_mut().copy_from_slice(data);
        let words = [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at]));
        lane.push(peer, words, &message)
    }

    /// Takes back all msgbufs that were sent.
    pub(crate) fn take_back(&mut self) {
        self.kept.clear();
    }

    /// Sends one packet of `len` bytes.
    pub(crate) fn send_one(&mut self, peer: PeerId, number: u32, len: usize) {
        let packet = self.packet(peer, number, len, 24);
        self.send(vec![packet]);
    }

    /// The packets of one burst.
    pub(crate) fn poll(&mut self) -> Vec<Packet> {
        let frames = self.rx.burst();
        let frames = (0..frames).filter_map(|index| whole(&self.rx.frame(index)));
        frames.flat_map(|bytes| split(&bytes)).collect()
    }

    /// Polls until `count` packets have come, and then a little longer, to detect packets that
    /// should not come.
    pub(crate) fn receive(&mut self, count: usize) -> Vec<Packet> {
        let mut packets = Vec::new();
        let start = Instant::now();
        while packets.len() < count && start.elapsed() < SOON {
            packets.extend(self.poll());
        }
        packets.extend(self.rest());
        packets
    }

    /// The packets that come until many polls in a row have found none.
    pub(crate) fn rest(&mut self) -> Vec<Packet> {
        let mut packets = Vec::new();
        let mut quiet = 0;
        while quiet < H::QUIET_POLLS {
            let more = self.poll();
            quiet = if more.is_empty() { quiet + 1 } else { 0 };
            packets.extend(more);
        }
        packets
    }

    /// True if no packet is in flight.
    pub(crate) fn nothing_comes(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// The longest packet.
    pub(crate) fn longest(&self) -> usize {
        MAX_INLINE + self.limits.data_size as usize
    }
}

/// The bytes of a frame, including those that lie elsewhere. `None` if they were withdrawn.
pub(crate) fn whole(frame: &Frame<'_>) -> Option<Vec<u8>> {
    let mut bytes = frame.bytes.to_vec();
    if let Some(data) = frame.elsewhere {
        bytes.resize(frame.bytes.len() + data.len(), 0);
        if !data.copy_to(&mut bytes[frame.bytes.len()..]) {
            return None;
        }
    }
    Some(bytes)
}

/// The bytes of a packet.
pub(crate) fn contents(sender: u16, number: u32, len: usize) -> Vec<u8> {
    assert!(len >= NAME, "a packet has to have a name");
    let mut bytes = Vec::with_capacity(len);
    bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(sender.to_le_bytes());
    bytes.extend([0xD5, 0x5D]);
    bytes.extend((NAME..len).map(|at| filling(number, at)));
    bytes
}

#[expect(clippy::cast_possible_truncation, reason = "any byte will do")]
fn filling(number: u32, at: usize) -> u8 {
    (number.wrapping_mul(0x9E37_79B9) >> 24) as u8 ^ (at * 7 + at / 64) as u8
}

/// Takes a frame apart. Panics if a byte is out of place.
fn split(frame: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut rest = frame;
    while !rest.is_empty() {
        assert!(rest.len() >= NAME, "a frame ends inside a packet's name");
        let field = |at: usize| u32::from_le_bytes(*rest[at..].first_chunk().unwrap());
        let (len, number) = (field(0) as usize, field(4));
        let sender = u16::from_le_bytes(*rest[8..].first_chunk().unwrap());
        assert!(
            (NAME..=rest.len()).contains(&len),
            "a frame ends inside a packet"
        );
        assert_eq!(
            rest[..len],
            contents(sender, number, len),
            "packet {number}"
        );
        packets.push(Packet {
            sender,
            number,
            len,
        });
        rest = &rest[len..];
    }
    packets
}
