//! Lone packets among others, to several peers: order, counts, and sleeping receivers.

use dunlin_core::transport::{
    Halves, LANE_PACKET, Lane, MAX_INLINE, PeerId, Rx, Tx, TxItem, TxSeq,
};
use dunlin_msgbuf::{BufRef, Pool, PoolConfig};

use crate::connect::{Arm, Connect, EndpointUid, PeerInfo, meet};
use crate::shm::{Options, Shm, ShmRx, ShmTx};

type End = Halves<ShmRx, ShmTx>;

fn open() -> End {
    Shm::open(Options::default()).expect("memory can be shared here")
}

/// Connects two ends, and returns the first end's number for the second.
fn connect(a: &mut End, b: &mut End, uid: u8) -> PeerId {
    let info = |uid| PeerInfo::of_this_host(EndpointUid([uid; 16]));
    let met = meet::<Shm>([a, b], &[info(200), info(uid)]);
    met.expect("the ends fit each other")[0]
}

/// A sender with two peers, and the packets that each of them must get.
struct World {
    sender: End,
    receivers: [End; 2],
    peers: [PeerId; 2],
    expected: [Vec<Vec<u8>>; 2],
    sent: u64,
    lane: Lane,
    pool: Pool,
}

impl World {
    fn new() -> Self {
        let (mut sender, mut receivers) = (open(), [open(), open()]);
        let peers = [0, 1].map(|at: u8| connect(&mut sender, &mut receivers[usize::from(at)], at));
        Self {
            sender,
            receivers,
            peers,
            expected: [const { Vec::new() }; 2],
            sent: 0,
            lane: Lane::new(LANE_PACKET),
            pool: Pool::new(PoolConfig::default()).expect("memory for a pool"),
        }
    }

    /// Sends this number of packets with messages of `len` bytes to one of the peers, together.
    fn send(&mut self, to: usize, len: usize, count: usize) {
        for _ in 0..count {
            self.sent += 1;
            let mut message = self.pool.alloc(len).expect("memory");
            message.data_mut().fill(self.sent.to_le_bytes()[0]);
            let header = [self.sent; 3];
            assert!(self.lane.push(self.peers[to], header, &message));
            let mut packet = header.map(u64::to_le_bytes).as_flattened().to_vec();
            packet.extend_from_slice(message.data());
            self.expected[to].push(packet);
        }
        assert_eq!(self.sender.tx.send(&self.lane, &[]), TxSeq(self.sent));
        self.lane.clear();
        self.check();
    }

    /// Sends a packet that is not staged.
    fn send_item(&mut self, to: usize) {
        self.sent += 1;
        let item = TxItem {
            peer: self.peers[to],
            inline_len: 30,
            inline: [self.sent.to_le_bytes()[0]; MAX_INLINE],
            data: BufRef::EMPTY,
        };
        self.expected[to].push(item.inline[..30].to_vec());
        assert_eq!(self.sender.tx.burst(&[item]), TxSeq(self.sent));
        self.check();
    }

    fn check(&mut self) {
        assert_eq!(self.sender.tx.counters().tx_packets, self.sent);
        assert_eq!(self.sender.tx.done(), TxSeq(self.sent));
    }

    /// Takes everything that has come, and compares it with what was sent.
    fn receive(&mut self, at: usize) {
        let rx = &mut self.receivers[at].rx;
        loop {
            let frames = rx.burst();
            if frames == 0 {
                break;
            }
            for (index, expected) in self.expected[at].drain(..frames).enumerate() {
                assert_eq!(rx.frame(index).bytes, expected);
            }
        }
        assert!(self.expected[at].is_empty(), "packets are missing");
    }
}

#[test]
fn lone_packets_keep_their_order_among_all_others() {
    let mut world = World::new();
    // Enough for more than a lap of each ring.
    for round in 0..1500_usize {
        let to = round / 40 % 2;
        match round % 37 {
            5 => world.send(to, 56, 1),
            11 => world.send(to, 20, 3),
            17 => world.send_item(to),
            23 => world.send(1 - to, 16, 1),
            29 if round % 400 == 29 => world.send(to, 1000, 1),
            31 => world.sender.tx.settle(),
            _ => world.send(to, round % 33, 1),
        }
        if round % 3 == 0 {
            world.receive(round / 3 % 2);
        }
    }
    for at in 0..2 {
        world.receive(at);
    }
    let bytes = world.sender.tx.counters().tx_bytes;
    let received: u64 = world
        .receivers
        .iter()
        .map(|end| end.rx.counters().rx_bytes)
        .sum();
    assert_eq!(bytes, received);
}

#[test]
fn lone_packets_one_by_one_fill_many_laps() {
    let mut world = World::new();
    for _ in 0..20_000 {
        world.send(0, 32, 1);
        world.receive(0);
    }
}

#[test]
fn a_receiver_that_parks_between_lone_packets_is_woken() {
    // One, two and several cells.
    [32, 80, 200].into_iter().for_each(park_between);
}

fn park_between(len: usize) {
    let mut world = World::new();
    for sleep in 1..40 {
        for _ in 0..sleep {
            world.send(0, len, 1);
            world.receive(0);
        }
        let end = &mut world.receivers[0];
        assert_eq!(
            Shm::arm(&mut end.rx, &mut end.tx),
            Arm::Wait,
            "all packets were taken"
        );
        world.send(0, len, 1);
        assert_eq!(world.sender.tx.counters().wakeups_sent, sleep);
        let end = &mut world.receivers[0];
        Shm::disarm(&mut end.rx, &mut end.tx);
        world.receive(0);
    }
}

#[test]
fn lone_packets_to_a_peer_that_is_gone_are_dropped() {
    let mut world = World::new();
    for _ in 0..5 {
        world.send(0, 32, 1);
    }
    let World {
        sender,
        lane,
        pool,
        peers,
        ..
    } = &mut world;
    Shm::remove(&mut sender.rx, &mut sender.tx, peers[0]);
    let message = pool.alloc(32).expect("memory");
    for dropped in 1..5 {
        assert!(lane.push(peers[0], [0; 3], &message));
        sender.tx.send(lane, &[]);
        lane.clear();
        assert_eq!(sender.tx.counters().tx_dropped_peer, dropped);
    }
    assert_eq!(sender.tx.counters().tx_packets, 5);
    assert_eq!(sender.tx.done(), TxSeq(9));
}
