//! Endpoints with several queues of an interface that spreads its packets over them.

use std::net::UdpSocket;

use dunlin_core::transport::Rx;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_transport::connect::{Arm, Connect};
use dunlin_transport::udp::Udp;
use dunlin_xdp::{Mode, Options, Xdp};

use crate::ends::{Echo, End, at};

const QUEUES: u32 = 4;

/// Sockets that send: twelve times as many as queues, so that each queue gets the packets of some
/// of them.
const SOCKETS: usize = 48;

/// Bytes of a datagram.
const BYTES: usize = 4;

/// Options of an endpoint with all queues of its host but the `left_out` last ones.
fn options(host: &Host, mode: Mode, left_out: u32) -> Options {
    Options {
        mode,
        queues: QUEUES - left_out,
        endpoints: 2,
        umem_bytes: 2 << 20,
        ..at(host, false)
    }
}

fn sockets(network: &Network) -> Vec<UdpSocket> {
    let open = |_| UdpSocket::bind((network.left.address, 0)).unwrap();
    network.left.run(|| (0..SOCKETS).map(open).collect())
}

/// Sends a datagram from each socket. The endpoint gets them all; returns how many of them the
/// program steered to it.
fn steered(from: &[UdpSocket], to: &mut End<Xdp>) -> u64 {
    let (address, before) = (to.halves.rx.local_addr(), to.detail("rx_datagrams"));
    for (number, socket) in (0_u32..).zip(from) {
        socket.send_to(&number.to_le_bytes(), address).unwrap();
    }
    // The kernel may join datagrams that come through its socket.
    let (mut came, mut numbers) = (0, Vec::new());
    until(|| {
        for frame in to.frames() {
            came += frame.len();
            numbers.extend(frame.chunks(BYTES).map(<[u8]>::to_vec));
        }
        came == from.len() * BYTES
    });
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), from.len(), "each of them once");
    to.detail("rx_datagrams") - before
}

#[test]
fn an_endpoint_gets_the_packets_of_all_of_its_queues() {
    let Some(network) = Network::with_queues_at_both_ends(QUEUES) else {
        return;
    };
    let from = sockets(&network);
    for mode in [Mode::Generic, Mode::Native] {
        let mut all = End::open(&network.right, 1, &options(&network.right, mode, 0));
        for _ in 0..5 {
            assert_eq!(steered(&from, &mut all), SOCKETS as u64, "{mode:?}");
        }
        drop(all);
        // A program that another test starts just now has a copy of the descriptor until it runs.
        until(|| network.right.xdp_programs() == 0);
        // Packets of the other queues come through the kernel.
        let mut some = End::open(&network.right, 1, &options(&network.right, mode, 2));
        let steered = steered(&from, &mut some);
        assert!(
            (1..SOCKETS as u64).contains(&steered),
            "{mode:?}: {steered}"
        );
        drop(some);
        until(|| network.right.xdp_programs() == 0);
    }
}

#[test]
fn an_endpoint_that_sleeps_is_woken_by_each_queue() {
    let Some(network) = Network::with_queues_at_both_ends(QUEUES) else {
        return;
    };
    let from = sockets(&network);
    let options = options(&network.right, Mode::Native, 0);
    let mut end = End::<Xdp>::open(&network.right, 1, &options);
    let to = end.halves.rx.local_addr();
    let mut fds = Vec::new();
    Xdp::fds(&end.halves.rx, &end.halves.tx, &mut fds);
    for socket in &from {
        until(|| {
            end.halves.rx.burst();
            Xdp::disarm(&mut end.halves.rx, &mut end.halves.tx);
            Xdp::arm(&mut end.halves.rx, &mut end.halves.tx) == Arm::Wait
        });
        socket.send_to(b"wake", to).unwrap();
        let waited = |&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut waited: Vec<_> = fds.iter().map(waited).collect();
        // SAFETY: the array is as long as we say.
        let ready = unsafe { libc::poll(waited.as_mut_ptr(), waited.len() as libc::nfds_t, 5000) };
        assert_eq!(ready, 1);
        Xdp::disarm(&mut end.halves.rx, &mut end.halves.tx);
        assert_eq!(end.await_frames(1), [b"wake"]);
    }
    assert_eq!(end.detail("rx_datagrams"), SOCKETS as u64);
}

#[test]
fn calls_reach_endpoints_with_several_queues() {
    let Some(network) = Network::with_queues_at_both_ends(QUEUES) else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        let [left, right] = [&network.left, &network.right];
        let xdp = |host, number| End::<Xdp>::open(host, number, &options(host, mode, 0));
        let mut within = Echo::new(xdp(left, 1), xdp(right, 2));
        let udp = End::<Udp>::open(left, 3, &at(left, false));
        let mut from_udp = Echo::new(udp, xdp(right, 4));
        for len in [32, 1000, 20_000, 200_000] {
            within.calls(10, len);
            from_udp.calls(10, len);
        }
        assert!(within.near("rx_datagrams") > 30);
        assert!(within.far("rx_datagrams") > 30);
        assert!(from_udp.far("rx_datagrams") > 30);
    }
}
