//! Endpoints for tests, and packets that identify themselves by length, number and a pattern, so
//! that a test can cut a frame into packets and check each byte.

use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem, TxSeq};
use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig};
use dunlin_testkit::random::Random;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo, meet};
use dunlin_transport::counters::Counters;
use dunlin_transport::udp::{Options, Udp, UdpRx, UdpTx};

/// Bytes of the shortest packet, which has only its length and its number.
pub(crate) const SHORTEST: usize = 8;
/// Longest time that loopback may need.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Endpoint {
    pub(crate) halves: Halves<UdpRx, UdpTx>,
    pub(crate) uid: EndpointUid,
    pool: Pool,
}

/// A packet to send: its length, and the number of its inline bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) peer: PeerId,
    pub(crate) number: u32,
    pub(crate) len: usize,
    pub(crate) inline: usize,
}

/// Options with the packet size of an Ethernet.
pub(crate) fn ethernet() -> Options {
    let default = Options::default();
    Options {
        loopback_data_size: default.data_size,
        ..default
    }
}

/// The same options, with all features off that combine several packets.
pub(crate) fn plain() -> Options {
    Options {
        pack: false,
        gso: false,
        gro: false,
        ..ethernet()
    }
}

impl Endpoint {
    /// Opens an endpoint that sends to any address that a peer offers.
    pub(crate) fn new(options: &Options) -> Self {
        Self::strict(&Options {
            allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
            ..options.clone()
        })
    }

    /// Opens an endpoint with exactly these options.
    pub(crate) fn strict(options: &Options) -> Self {
        let halves = Udp::open(options).unwrap();
        let port = halves.rx.local_addr().port().to_le_bytes();
        let mut uid = EndpointUid::default();
        uid.0[..2].copy_from_slice(&port);
        Self {
            halves,
            uid,
            pool: Pool::new(PoolConfig::default()).unwrap(),
        }
    }

    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo {
            endpoint: self.uid,
            same_host: true,
            same_process: true,
            proves: true,
            local: None,
            remote: None,
        }
    }

    /// Sends one burst, and then overwrites the msgbufs, as a program may.
    pub(crate) fn send(&mut self, packets: &[Packet]) -> TxSeq {
        let mut bufs: Vec<MsgBuf> = packets.iter().map(|packet| self.data(packet)).collect();
        let items: Vec<TxItem> = packets
            .iter()
            .zip(&bufs)
            .map(|(packet, buf)| item(packet, buf))
            .collect();
        let seq = self.halves.tx.burst(&items);
        assert_eq!(
            self.halves.tx.done(),
            seq,
            "udp is done when `burst` returns"
        );
        for buf in &mut bufs {
            buf.revoke();
            buf.data_mut().fill(0xEE);
        }
        seq
    }

    pub(crate) fn counters(&self) -> Counters {
        Udp::counters(&self.halves.rx, &self.halves.tx)
    }

    /// Polls until a burst has frames, and returns their bytes.
    pub(crate) fn frames(&mut self) -> Vec<Vec<u8>> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let count = self.halves.rx.burst();
            if count > 0 {
                return (0..count)
                    .map(|i| self.halves.rx.frame(i).bytes.to_vec())
                    .collect();
            }
        }
        panic!("no frame came within {PATIENCE:?}");
    }

    /// The next `count` frames.
    pub(crate) fn take_frames(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while frames.len() < count {
            frames.extend(self.frames());
        }
        frames
    }

    /// Numbers and lengths of the next `count` packets, whose bytes are checked.
    pub(crate) fn take_packets(&mut self, count: usize) -> Vec<(u32, usize)> {
        let mut packets = Vec::new();
        while packets.len() < count {
            for frame in self.frames() {
                packets.extend(cut(&frame));
            }
        }
        packets
    }

    /// Asserts that no more frames come.
    pub(crate) fn assert_silent(&mut self) {
        for _ in 0..10 {
            assert_eq!(self.halves.rx.burst(), 0);
        }
    }

    fn data(&mut self, packet: &Packet) -> MsgBuf {
        let bytes = &contents(packet.number, packet.len)[packet.inline.min(packet.len)..];
        let mut buf = self.pool.alloc(bytes.len()).unwrap();
        buf.fill(bytes).unwrap();
        buf
    }
}

/// Connects two endpoints. Returns the first one's id for the second, and the second one's for the
/// first.
pub(crate) fn connect(a: &mut Endpoint, b: &mut Endpoint) -> (PeerId, PeerId) {
    let (info_a, info_b) = (a.info(), b.info());
    let met = meet::<Udp>([&mut a.halves, &mut b.halves], &[info_a, info_b]);
    met.unwrap().into()
}

/// Two endpoints, and the first one's id for the second.
pub(crate) fn pair(options: &Options) -> (Endpoint, Endpoint, PeerId) {
    let (mut a, mut b) = (Endpoint::new(options), Endpoint::new(options));
    let (to_b, _) = connect(&mut a, &mut b);
    (a, b, to_b)
}

/// `count` packets of `len` bytes, 24 of them inline.
pub(crate) fn packets(peer: PeerId, count: u32, len: usize) -> Vec<Packet> {
    (0..count)
        .map(|number| Packet {
            peer,
            number,
            len,
            inline: 24.min(len),
        })
        .collect()
}

/// A packet of inline bytes alone.
pub(crate) fn bare(peer: PeerId, inline_len: u32) -> TxItem {
    TxItem {
        peer,
        inline_len,
        inline: [0x5A; MAX_INLINE],
        data: BufRef::EMPTY,
    }
}

/// Cuts a frame into packets and checks their bytes.
pub(crate) fn cut(mut frame: &[u8]) -> Vec<(u32, usize)> {
    let mut packets = Vec::new();
    while !frame.is_empty() {
        let len = u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize;
        let number = u32::from_le_bytes(frame[4..8].try_into().unwrap());
        assert_eq!(
            frame[..len],
            contents(number, len),
            "packet {number} of {len} bytes"
        );
        packets.push((number, len));
        frame = &frame[len..];
    }
    packets
}

fn contents(number: u32, len: usize) -> Vec<u8> {
    assert!(len >= SHORTEST);
    let mut bytes = u32::try_from(len).unwrap().to_le_bytes().to_vec();
    bytes.extend(number.to_le_bytes());
    let mut random = Random::new(u64::from(number));
    while bytes.len() < len {
        bytes.extend(random.word().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn item(packet: &Packet, buf: &MsgBuf) -> TxItem {
    let mut item = bare(packet.peer, u32::try_from(packet.inline).unwrap());
    let bytes = contents(packet.number, packet.len);
    item.inline[..packet.inline].copy_from_slice(&bytes[..packet.inline]);
    item.data = if buf.is_empty() {
        BufRef::EMPTY
    } else {
        buf.lend()
    };
    item
}
