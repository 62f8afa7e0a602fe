//! Several endpoints at one queue: each gets its own packets, and one that has stopped or ended
//! costs the others nothing.

use dunlin_core::transport::{MAX_INLINE, PeerId, Tx, TxItem};
use dunlin_msgbuf::BufRef;
use dunlin_testkit::network::{Host, Network};
use dunlin_transport::udp::Udp;
use dunlin_xdp::{Mode, Options, Xdp};

use crate::ends::{Echo, End, at, meet};

const ENDPOINTS: u32 = 8;
/// The most packets that may wait for one of them.
const SHARE: usize = 64;

/// Options of one of eight endpoints at a host's queue.
fn one_of_eight(host: &Host, mode: Mode) -> Options {
    Options {
        mode,
        endpoints: ENDPOINTS,
        umem_bytes: u64::from(ENDPOINTS) * 2 * SHARE as u64 * 4096,
        ..at(host, false)
    }
}

fn open(host: &Host, number: u8, mode: Mode) -> End<Xdp> {
    End::open(host, number, &one_of_eight(host, mode))
}

/// Sends small packets, one datagram each.
fn flood(from: &mut End<Xdp>, to: PeerId, count: usize) {
    let item = TxItem {
        peer: to,
        inline_len: 24,
        inline: [7; MAX_INLINE],
        data: BufRef::EMPTY,
    };
    for _ in 0..count {
        from.halves.tx.burst(&[item]);
    }
}

fn assert_no_drops(echo: &mut Echo<Xdp, Xdp>) {
    for counters in echo.counters() {
        for (name, count) in counters.named() {
            let is_drop = name.contains("dropped") || name == "rx_overflow";
            assert!(!is_drop || count == 0, "{count} {name}");
        }
    }
}

#[test]
fn eight_endpoints_share_a_queue_and_one_of_them_may_stop() {
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        let pair = |number| {
            let near = open(&network.left, number, mode);
            Echo::new(near, open(&network.right, number + 100, mode))
        };
        let mut echoes: Vec<Echo<Xdp, Xdp>> = (1..8).map(pair).collect();
        let mut sender = open(&network.left, 8, mode);
        let mut stopped = open(&network.right, 108, mode);
        let ninth = network
            .right
            .run(|| dunlin_xdp::Xdp::open(&one_of_eight(&network.right, mode)));
        let why = ninth.map(|_| ()).unwrap_err();
        assert_eq!(why.kind(), std::io::ErrorKind::ResourceBusy, "{why}");
        let [to_stopped, _] = meet(&mut sender, &mut stopped);
        // The first packet may come through the kernel, which asks for the neighbour's address.
        flood(&mut sender, to_stopped, 1);
        assert_eq!(stopped.await_frames(1).len(), 1);
        for _ in 0..3 {
            flood(&mut sender, to_stopped, 3 * SHARE);
            for echo in &mut echoes {
                for len in [32, 1000, 20_000] {
                    echo.calls(30, len);
                }
            }
        }
        for echo in &mut echoes {
            assert_no_drops(echo);
            assert!(echo.near("tx_datagrams") > 100);
            assert!(echo.far("rx_datagrams") > 100);
        }
        // The packets that found room are there, and the endpoint goes on.
        stopped.await_detail("rx_kernel_dropped", (9 * SHARE - SHARE) as u64);
        assert_eq!(stopped.await_frames(SHARE).len(), SHARE);
        flood(&mut sender, to_stopped, 10);
        assert_eq!(stopped.await_frames(10).len(), 10);
        assert_eq!(stopped.detail("rx_bad_entries"), 0);
        assert_eq!(sender.detail("tx_bad_entries"), 0);
    }
}

#[test]
fn an_endpoint_that_ends_leaves_all_of_its_frames() {
    let Some(network) = Network::new() else {
        return;
    };
    let mode = Mode::Generic;
    let near = open(&network.left, 1, mode);
    let mut echo = Echo::new(near, open(&network.right, 101, mode));
    // The endpoints of all rounds together end with more frames than the queue has.
    for round in 0..2 * ENDPOINTS {
        let mut sender = open(&network.left, 2, mode);
        let mut last = open(&network.right, 102, mode);
        let [to_last, _] = meet(&mut sender, &mut last);
        flood(&mut sender, to_last, 2 * SHARE);
        if round % 2 == 0 {
            // Some packets are shown, and the others wait in the ring.
            dunlin_core::transport::Rx::burst(&mut last.halves.rx);
        }
        drop((sender, last));
        echo.calls(20, 1000);
    }
    assert_no_drops(&mut echo);
    assert_eq!(echo.far("rx_kernel_unfilled"), 0);
    // The kernel has all frames again, so as many packets wait as the ring has places.
    let mut sender = open(&network.left, 2, mode);
    let mut last = open(&network.right, 102, mode);
    let [to_last, _] = meet(&mut sender, &mut last);
    flood(&mut sender, to_last, 2 * SHARE);
    assert_eq!(last.await_frames(SHARE).len(), SHARE);
}

#[test]
fn endpoints_of_one_queue_talk_to_udp_and_to_each_other() {
    let Some(network) = Network::new() else {
        return;
    };
    let mode = Mode::Generic;
    let udp = |number| End::<Udp>::open(&network.right, number, &at(&network.right, false));
    let mut to_udp = Echo::new(open(&network.left, 1, mode), udp(101));
    let mut also = Echo::new(open(&network.left, 2, mode), udp(102));
    // Both ends of `within` are on the same host, so the kernel carries their packets.
    let within = open(&network.left, 3, mode);
    let mut within = Echo::new(within, open(&network.left, 4, mode));
    for len in [32, 1000, 20_000] {
        to_udp.calls(20, len);
        also.calls(20, len);
        within.calls(20, len);
    }
    assert!(to_udp.near("rx_datagrams") > 40);
    assert!(also.near("rx_datagrams") > 40);
    assert_eq!(within.near("tx_datagrams"), 0);
}

#[test]
fn endpoints_of_one_interface_agree_about_its_mode() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.left;
    let first = open(host, 1, Mode::Generic);
    let other = host.run(|| Xdp::open(&one_of_eight(host, Mode::Native)));
    let why = other.map(|_| ()).unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::ResourceBusy, "{why}");
    assert!(why.to_string().contains("the other mode"), "{why}");
    drop(first);
    drop(open(host, 2, Mode::Native));
}
