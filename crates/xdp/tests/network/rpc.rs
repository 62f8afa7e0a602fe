//! An echo over every pair of transports, modes, families and forms of packets.

use dunlin_core::transport::Transport;
use dunlin_testkit::network::{Host, Network};
use dunlin_transport::udp::Udp;
use dunlin_xdp::{AutoXdp, Mode, Options, Xdp};

use crate::ends::{Echo, End, Side, at};

/// Lengths of messages: in one packet, in several, in a whole window.
const LENGTHS: [usize; 6] = [8, 32, 1000, 1441, 20_000, 200_000];

/// Runs an echo of all lengths with these changes to the options of both.
fn echo<A, B>(network: &Network, is_v6: bool, change: impl Fn(&mut Options)) -> Echo<A, B>
where
    A: Side + Transport<Rx: Send, Tx: Send>,
    B: Side + Transport<Rx: Send, Tx: Send>,
{
    let options = |host| {
        let mut options = at(host, is_v6);
        change(&mut options);
        options
    };
    let near = End::<A>::open(&network.left, 1, &options(&network.left));
    let far = End::<B>::open(&network.right, 2, &options(&network.right));
    let mut echo = Echo::new(near, far);
    for len in LENGTHS {
        let count = if len > 10_000 { 3 } else { 40 };
        echo.calls(count, len);
    }
    for counters in echo.counters() {
        let drops = counters.named().into_iter().filter(|(name, _)| {
            name.contains("dropped") || ["rx_overflow", "rx_corrupt"].contains(name)
        });
        for (name, count) in drops {
            assert_eq!(count, 0, "{name}");
        }
    }
    // Packets that the kernel's side of the rings dropped. A `udp` endpoint has none.
    for name in [
        "rx_kernel_dropped",
        "rx_kernel_unfilled",
        "tx_refused_entries",
    ] {
        assert_eq!(echo.near_if(name).unwrap_or(0), 0, "{name}");
        assert_eq!(echo.far_if(name).unwrap_or(0), 0, "{name}");
    }
    echo
}

/// Runs `run` for both modes and both families, with packing and without.
fn each_form(mut run: impl FnMut(Mode, bool, &dyn Fn(&mut Options))) {
    for mode in [Mode::Generic, Mode::Native] {
        for is_v6 in [false, true] {
            for pack in [false, true] {
                println!("{mode:?}, IPv6: {is_v6}, packing: {pack}");
                run(mode, is_v6, &|options| {
                    options.mode = mode;
                    options.udp.pack = pack;
                });
            }
        }
    }
}

#[test]
fn xdp_talks_to_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    each_form(|_, is_v6, change| {
        let mut echo = echo::<Xdp, Xdp>(&network, is_v6, change);
        let pack = packs(change);
        carried(pack, &[echo.near("tx_datagrams"), echo.far("rx_datagrams")]);
        copied(&mut echo, pack);
        assert!(echo.near("tx_kernel_no_neighbour") < 10);
        // Full packets fit the MTU in either family, unless they have an extension.
        assert!(echo.near("tx_kernel_long") < 20);
        for refused in ["rx_wrong_sum", "rx_malformed_ip", "rx_foreign_mac"] {
            assert_eq!(echo.far(refused), 0, "{refused}");
        }
    });
}

/// Checks that each packet in a frame is counted for one cause of its copy.
fn copied(echo: &mut Echo<Xdp, Xdp>, pack: bool) {
    let short = echo.near("tx_copied_short");
    let packed = echo.near("tx_copied_packed");
    let msgbuf = echo.near("tx_copied_msgbuf");
    let datagrams = echo.near("tx_datagrams");
    // Short messages and credits are in the queue, and long messages in msgbufs.
    assert!(short > 0 && msgbuf > 0, "{short} and {msgbuf}");
    assert_eq!(packed > 0, pack, "{packed}");
    let all = short + packed + msgbuf;
    let is_right = if pack {
        all > datagrams
    } else {
        all == datagrams
    };
    assert!(is_right, "{short}, {packed}, {msgbuf}: {datagrams}");
}

#[test]
fn xdp_talks_to_udp_and_udp_to_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    for gso in [false, true] {
        each_form(|mode, is_v6, change| {
            let change = |options: &mut Options| {
                change(options);
                options.udp.gso = gso;
            };
            let pack = packs(change);
            let mut to_udp = echo::<Xdp, Udp>(&network, is_v6, change);
            // The kernel's neighbour leaves sums to the device.
            let sums = to_udp.near("rx_partial_sums");
            carried(pack, &[to_udp.near("tx_datagrams")]);
            // With segmentation offload, messages that an endpoint sends together share a frame.
            carried(pack || gso, &[sums]);
            drop(to_udp);
            let mut from_udp = echo::<Udp, Xdp>(&network, is_v6, change);
            carried(pack || gso, &[from_udp.far("rx_datagrams")]);
            // A message of 200 000 bytes leaves the kernel as a few large packets, unless the
            // device cuts them, as veth does in front of a native program.
            let arrive_whole = gso && mode == Mode::Generic;
            assert_eq!(from_udp.far("rx_joined") > 0, arrive_whole);
        });
    }
}

#[test]
fn auto_over_xdp_talks_to_udp_and_xdp_and_itself() {
    let Some(network) = Network::new() else {
        return;
    };
    each_form(|_, is_v6, change| {
        let mut to_udp = echo::<AutoXdp, Udp>(&network, is_v6, change);
        used(&[to_udp.near("tx_datagrams"), to_udp.near("rx_datagrams")]);
        drop(to_udp);
        let mut from_udp = echo::<Udp, AutoXdp>(&network, is_v6, change);
        used(&[from_udp.far("tx_datagrams"), from_udp.far("rx_datagrams")]);
        drop(from_udp);
        let mut to_xdp = echo::<AutoXdp, Xdp>(&network, is_v6, change);
        used(&[to_xdp.near("tx_datagrams"), to_xdp.far("tx_datagrams")]);
        drop(to_xdp);
        let mut from_xdp = echo::<Xdp, AutoXdp>(&network, is_v6, change);
        used(&[from_xdp.near("tx_datagrams"), from_xdp.far("tx_datagrams")]);
        drop(from_xdp);
        let mut both = echo::<AutoXdp, AutoXdp>(&network, is_v6, change);
        used(&[both.near("tx_datagrams"), both.far("tx_datagrams")]);
        assert!(both.near("tx_kernel_no_neighbour") < 10);
    });
}

/// Whether an endpoint with these changes to its options packs.
fn packs(change: impl Fn(&mut Options)) -> bool {
    let mut options = Options::default();
    change(&mut options);
    options.udp.pack
}

/// Checks that frames carried all but the first messages: one each, unless several may share one.
fn carried(share: bool, counts: &[u64]) {
    used(counts);
    assert!(
        share || counts.iter().all(|count| *count > 150),
        "{counts:?}"
    );
}

/// Checks that frames carried the messages of 166 calls, up to four of which share a datagram.
fn used(counts: &[u64]) {
    assert!(counts.iter().all(|count| *count > 40), "{counts:?}");
}

#[test]
fn a_large_call_is_complete_without_further_packets() {
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        let end = |host, number| {
            let options = Options {
                mode,
                ..at(host, false)
            };
            End::<Xdp>::open(host, number, &options)
        };
        let mut echo = Echo::new(end(&network.left, 1), end(&network.right, 2));
        echo.calls(4, 32);
        ends_complete(&mut echo);
    }
}

fn ends_complete(echo: &mut Echo<Xdp, Xdp>) {
    let before = echo.client.pool_use();
    echo.calls(1, 200_000);
    // The buffers come back with the answer, although no packet follows. They do not wait for the
    // kernel: every byte was copied.
    assert_eq!(echo.client.pool_use(), before);
    let (_, tx) = echo.client.lifecycle().halves_mut();
    let given = dunlin_core::transport::Tx::burst(tx, &[]);
    assert_eq!(dunlin_core::transport::Tx::done(tx), given);
    echo.ends_soon();
}

#[test]
fn frames_of_nine_thousand_bytes_cross_in_several_pieces() {
    let Some(network) = Network::new() else {
        return;
    };
    for host in [&network.left, &network.right] {
        host.ip("link set link0 mtu 9000").unwrap();
    }
    for mode in [Mode::Generic, Mode::Native] {
        for is_v6 in [false, true] {
            let change = |options: &mut Options| {
                options.mode = mode;
                options.udp.data_size = 8880;
                options.udp.datagram_bytes = Some(8952);
            };
            let mut echo = echo::<Xdp, Xdp>(&network, is_v6, change);
            assert!(echo.far("rx_joined") > 50, "{}", echo.far("rx_joined"));
            assert!(echo.near("tx_kernel_long") < 10);
            drop(echo);
            joined_from_udp(&network, is_v6, change);
        }
    }
}

/// Checks that packets of a sender over `udp` that fill an MTU of 9000 come in several pieces.
fn joined_from_udp(network: &Network, is_v6: bool, change: impl Fn(&mut Options)) {
    for gso in [false, true] {
        let mut echo = echo::<Udp, Xdp>(network, is_v6, |options| {
            change(options);
            options.udp.gso = gso;
        });
        // With segmentation offload, one frame has several packets.
        assert!(echo.far("rx_joined") > 10, "{}", echo.far("rx_joined"));
        assert!(echo.far("tx_kernel_long") < 10);
    }
}

#[test]
fn a_peer_with_another_mtu_gets_packets_that_fit() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.ip("link set link0 mtu 9000").unwrap();
    for pack in [false, true] {
        let long = Options {
            udp: dunlin_transport::udp::Options {
                data_size: 8900,
                pack,
                ..at(&network.left, false).udp
            },
            ..at(&network.left, false)
        };
        let mut short = at(&network.right, false);
        short.udp.pack = pack;
        let near = || End::<Xdp>::open(&network.left, 1, &long);
        let far = End::<Xdp>::open(&network.right, 2, &short);
        let mut to_short = Echo::new(near(), far);
        lengths(&mut to_short);
        drop(to_short);
        let far = End::<Xdp>::open(&network.right, 2, &short);
        let mut from_short = Echo::new(far, near());
        lengths(&mut from_short);
        drop(from_short);
        let udp = End::<Udp>::open(&network.right, 2, &short);
        let mut to_udp = Echo::new(near(), udp);
        lengths(&mut to_udp);
        assert_eq!((lost(&network.left), lost(&network.right)), (0, 0));
    }
}

/// Makes calls of all lengths.
fn lengths<A, B>(echo: &mut Echo<A, B>)
where
    A: Side + Transport<Rx: Send, Tx: Send>,
    B: Side + Transport<Rx: Send, Tx: Send>,
{
    for len in LENGTHS {
        echo.calls(if len > 10_000 { 3 } else { 40 }, len);
    }
}

/// Packets that this end of the link has lost, for example because they were too long for the other
/// end.
fn lost(host: &Host) -> u64 {
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line = table
        .lines()
        .find_map(|line| line.trim().strip_prefix("link0:"));
    let mut fields = line.unwrap().split_whitespace();
    fields.nth(11).unwrap().parse().unwrap()
}
