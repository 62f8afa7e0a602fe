//! The contract of a transport, for the simulated one: DMA time, `done`, `flush`, ECN.

use dunlin_core::Nanos;
use dunlin_core::transport::{
    Halves, Lane, MAX_INLINE, Messages, PeerId, Rx, Source, Tx, TxItem, TxSeq,
};
use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig};

use super::{
    Fabric, FaultRates, HostId, Marking, Net, NetConfig, NetHandle, PortId, SimRx, SimTransport,
    SimTx,
};
use crate::world::rng::Ppm;
use crate::world::trace::Trace;

type Ends = [Halves<SimRx, SimTx>; 2];

fn network(config: NetConfig) -> (NetHandle, Ends) {
    let net = Net::new(config, 1, Trace::new(true));
    let ends = [0, 1].map(|_| {
        let host = net.borrow_mut().add_host();
        let port = net.borrow_mut().add_port(host);
        SimTransport::open(&net, port)
    });
    (net, ends)
}

fn item(data: BufRef) -> TxItem {
    TxItem {
        peer: PeerId(1),
        inline_len: 24,
        inline: [9; MAX_INLINE],
        data,
    }
}

fn message(text: &[u8]) -> (Pool, MsgBuf) {
    let config = PoolConfig {
        readable: true,
        ..PoolConfig::default()
    };
    let mut pool = Pool::new(config).unwrap();
    let mut buf = pool.alloc(text.len()).unwrap();
    buf.fill(text).unwrap();
    (pool, buf)
}

fn run(net: &NetHandle, end: Nanos) {
    while net.borrow_mut().step(end).is_some() {}
}

#[test]
fn a_burst_is_done_at_its_dma_time_and_arrives_later() {
    let (net, [mut a, mut b]) = network(NetConfig::default());
    let (_pool, buf) = message(b"hello");
    assert_eq!(a.tx.burst(&[item(buf.lend())]), TxSeq(1));
    assert_eq!(a.tx.done(), TxSeq(0));
    run(&net, Nanos(2200));
    assert_eq!(a.tx.done(), TxSeq(1));
    run(&net, Nanos(10_000));
    assert_eq!(b.rx.burst(), 1);
    assert_eq!(b.rx.frame(0).bytes[24..], *b"hello");
    assert_eq!(net.borrow().violation(), None);
}

/// Finds every message in the same buffer.
#[derive(Clone, Copy)]
struct Same<'a>(&'a MsgBuf);

impl<'a> Messages<'a> for Same<'a> {
    fn message(self, _: Source) -> &'a [u8] {
        self.0.data()
    }
}

/// Lanes of packets that are alike, sent as a row and with a list, give the same frames.
#[test]
fn a_row_leaves_like_listed_packets() {
    for len in [0, 5, 32, 33, 256, 257, 1024] {
        let (_pool, buf) = message(&vec![7; len]);
        let frames = [false, true].map(|as_row| {
            let (net, [mut a, mut b]) = network(NetConfig::default());
            let mut lane = Lane::new(a.tx.lane());
            for word in 1..=3 {
                assert!(lane.push(PeerId(1), [word; 3], &buf), "{len}");
            }
            let (_, first) = lane.alike().unwrap();
            assert!(a.tx.takes_alike(first));
            let end = match as_row {
                true => a.tx.send_alike(&lane, first, Same(&buf)),
                false => a.tx.send(&lane, &[]),
            };
            assert_eq!(end, TxSeq(3));
            a.tx.flush();
            run(&net, Nanos(100_000));
            let count = b.rx.burst();
            let frames: Vec<_> = (0..count).map(|at| b.rx.frame(at).bytes.to_vec()).collect();
            frames.concat()
        });
        let packet = |word: u64| [&[word; 3].map(u64::to_le_bytes).concat(), buf.data()].concat();
        assert_eq!(frames[0], [1, 2, 3].map(packet).concat(), "{len}");
        assert_eq!(frames[0], frames[1], "{len}");
    }
}

/// As over shared memory: the msgbuf is free as soon as the packet has been handed over.
#[test]
fn a_burst_that_is_read_at_once_is_done_at_once() {
    let mut config = NetConfig::default();
    config.hand_over.at_once = true;
    let (net, [mut a, mut b]) = network(config);
    let (_pool, mut buf) = message(b"hello");
    assert_eq!(a.tx.burst(&[item(buf.lend())]), TxSeq(1));
    assert_eq!(a.tx.done(), TxSeq(1));
    buf.revoke();
    buf.fill(b"other").unwrap();
    run(&net, Nanos(100_000));
    assert_eq!(b.rx.burst(), 1);
    assert_eq!(b.rx.frame(0).bytes[24..], *b"hello");
    assert_eq!(net.borrow().violation(), None);
}

#[test]
fn staged_packets_come_before_the_items_that_follow_them() {
    let (net, [mut a, mut b]) = network(NetConfig::default());
    let (_pool, buf) = message(b"hello");
    let mut lane = Lane::new(a.tx.lane());
    assert!(lane.push(PeerId(1), [1, 2, 3], &buf));
    assert_eq!(a.tx.send(&lane, &[item(buf.lend())]), TxSeq(2));
    a.tx.flush();
    assert_eq!(a.tx.done(), TxSeq(2));
    run(&net, Nanos(100_000));
    assert_eq!(b.rx.burst(), 1, "both fit into a frame");
    let of_lane = [1_u64, 2, 3].map(u64::to_le_bytes).concat();
    let both = [&of_lane, &b"hello"[..], &[9; 24], b"hello"].concat();
    assert_eq!(b.rx.frame(0).bytes, both);
}

#[test]
fn a_msgbuf_revoked_before_done_is_reported() {
    let (net, [mut a, _b]) = network(NetConfig::default());
    let (_pool, mut buf) = message(b"hello");
    a.tx.burst(&[item(buf.lend())]);
    buf.revoke();
    run(&net, Nanos(10_000));
    let net = net.borrow();
    assert!(
        net.violation()
            .is_some_and(|what| what.contains("released before done"))
    );
}

#[test]
fn flush_waits_for_the_dma_so_that_msgbufs_can_be_freed() {
    let (net, [mut a, _b]) = network(NetConfig::default());
    let (_pool, mut buf) = message(b"hello");
    let end = a.tx.burst(&[item(buf.lend())]);
    a.tx.flush();
    assert_eq!(a.tx.done(), end);
    buf.revoke();
    run(&net, Nanos(10_000));
    assert_eq!(net.borrow().violation(), None);
    assert_eq!(net.borrow().counters.delivered, 1);
}

#[test]
fn packets_to_one_peer_share_a_frame_up_to_its_limit() {
    let (net, [mut a, mut b]) = network(NetConfig {
        frame_bytes: 100,
        ..NetConfig::default()
    });
    let astray = TxItem {
        peer: PeerId(7),
        ..item(BufRef::EMPTY)
    };
    let mut items = [item(BufRef::EMPTY); 7];
    items[5] = astray;
    a.tx.burst(&items);
    run(&net, Nanos(20_000));
    assert_eq!(b.rx.burst(), 3);
    let sizes = [0, 1, 2].map(|index| b.rx.frame(index).bytes.len());
    assert_eq!(
        sizes,
        [96, 24, 24],
        "four packets fit; another peer's packet ends the frame"
    );
    assert_eq!(net.borrow().counters.no_process, 1);
}

#[test]
fn a_process_that_was_killed_sends_and_receives_nothing() {
    let (net, [mut a, mut b]) = network(NetConfig::default());
    let (_pool, buf) = message(b"hello");
    a.tx.burst(&[item(buf.lend())]);
    net.borrow_mut().kill(PortId(0));
    drop(buf);
    a.tx.burst(&[item(BufRef::EMPTY)]);
    a.tx.flush();
    run(&net, Nanos(20_000));
    assert_eq!(b.rx.burst(), 0);
    assert_eq!(a.tx.done(), TxSeq(u64::MAX));
    assert_eq!(net.borrow().violation(), None);
}

#[test]
fn frames_that_a_nic_refuses_wait_for_room_and_ports_take_turns() {
    let config = NetConfig {
        nic_bytes: 20_000,
        nic_waits: true,
        frame_bytes: 1100,
        ..NetConfig::default()
    };
    let net = Net::new(config, 1, Trace::new(true));
    let hosts = [0, 1].map(|_| net.borrow_mut().add_host());
    let ends = [hosts[0], hosts[1], hosts[0]];
    let [mut a, mut b, mut c] = ends.map(|host| {
        let port = net.borrow_mut().add_port(host);
        SimTransport::open(&net, port)
    });
    let (_pool, mut buf) = message(&[1; 1024]);
    let end = a.tx.burst(&[item(buf.lend()); 100]);
    c.tx.burst(&[item(buf.lend()); 100]);
    // The threads take 15 µs for the bursts. The cable takes 839 ns for 1048 bytes: 63 µs later, 75
    // frames have left, and 19 are in the NIC.
    run(&net, Nanos(78_000));
    let done = [a.tx.done(), c.tx.done()].map(|TxSeq(done)| done);
    assert!(done[0] < end.0, "the rest has not been read");
    assert!((85..100).contains(&(done[0] + done[1])), "{done:?}");
    assert!(done[0].abs_diff(done[1]) <= 20, "{done:?}");
    run(&net, Nanos(1_000_000));
    assert_eq!([a.tx.done(), c.tx.done()], [end; 2]);
    buf.revoke();
    let received: usize = std::iter::repeat_with(|| b.rx.burst())
        .take_while(|count| *count != 0)
        .sum();
    assert_eq!(received, 200);
    let net = net.borrow();
    assert_eq!(net.counters.nic_full, 0);
    assert_eq!(net.violation(), None);
}

#[test]
fn losses_come_in_bursts_of_frames_to_one_host() {
    let (net, [mut a, mut b]) = network(NetConfig {
        frame_bytes: 0,
        ..NetConfig::default()
    });
    net.borrow_mut().set_rates(FaultRates {
        burst: Ppm(20_000),
        burst_frames: 8,
        ..FaultRates::NONE
    });
    let (mut losses, mut known) = (Vec::new(), 0);
    for _ in 0..20_000 {
        a.tx.burst(&[item(BufRef::EMPTY)]);
        let end = net.borrow().now() + Nanos(10_000);
        run(&net, end);
        b.rx.burst();
        let lost = net.borrow().counters.lost;
        losses.push(lost != known);
        known = lost;
    }
    let lost = losses.iter().filter(|lost| **lost).count();
    let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    // One frame in fifty begins a burst, of 4.5 frames on average.
    assert!((1500..2150).contains(&lost), "{lost}");
    assert!(lost > 3 * bursts, "{lost} in {bursts} bursts");
}

#[test]
fn hosts_know_the_base_round_trip_or_measure_it() {
    for tells_base_rtt in [true, false] {
        let (_net, [a, _b]) = network(NetConfig {
            tells_base_rtt,
            ..NetConfig::default()
        });
        let path = a.tx.path(PeerId(1)).unwrap();
        assert_eq!(path.base_rtt != Nanos::ZERO, tells_base_rtt);
    }
}

#[test]
fn a_long_queue_marks_and_a_full_one_drops() {
    let config = NetConfig {
        nic_bytes: 20_000,
        fabric: Fabric {
            marking: Marking::step(5_000),
            ..Fabric::default()
        },
        frame_bytes: 1100,
        ..NetConfig::default()
    };
    let (net, [mut a, mut b]) = network(config);
    let (_pool, buf) = message(&[1; 1024]);
    // The sender's own cable is the bottleneck here, so its queue overflows; frames that arrive
    // find an empty downlink.
    a.tx.burst(&[item(buf.lend()); 40]);
    run(&net, Nanos(1_000_000));
    let dropped = net.borrow().counters.nic_full;
    assert!(
        (20..25).contains(&dropped),
        "{dropped} of 40 frames do not fit 20000 bytes"
    );
    let received = b.rx.burst();
    assert_eq!(received as u64, 40 - dropped);
    assert!((0..received).all(|index| !b.rx.frame(index).congestion));
    net.borrow_mut()
        .wiring
        .stall(HostId(1), Nanos(1_000_000), Nanos(15_000));
    a.tx.burst(&[item(buf.lend()); 10]);
    run(&net, Nanos(3_000_000));
    let received = b.rx.burst();
    assert!((0..received).any(|index| b.rx.frame(index).congestion));
}
