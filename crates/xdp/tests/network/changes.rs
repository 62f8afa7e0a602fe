//! Changes during the life of an endpoint: of the neighbour, the interface, the routes.

use std::time::{Duration, Instant};

use dunlin_core::transport::{MAX_INLINE, PeerId, Tx, TxItem};
use dunlin_msgbuf::BufRef;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_transport::connect::{Arm, Connect};
use dunlin_xdp::Xdp;

use crate::ends::{Echo, End, at, meet};

fn pair(network: &Network) -> (End<Xdp>, End<Xdp>) {
    let open = |host: &Host, number| End::open(host, number, &at(host, false));
    (open(&network.left, 1), open(&network.right, 2))
}

/// An inline packet that carries its number.
fn packet(peer: PeerId, number: u8) -> TxItem {
    TxItem {
        peer,
        inline_len: 24,
        inline: [number; MAX_INLINE],
        data: BufRef::EMPTY,
    }
}

#[test]
fn the_neighbours_address_follows_the_kernels_table() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = pair(&network);
    let [to_b, _] = meet(&mut a, &mut b);
    a.halves.tx.burst(&[packet(to_b, 1)]);
    assert_eq!(
        a.detail("tx_kernel_no_neighbour"),
        1,
        "nothing is known yet"
    );
    assert_eq!(b.await_frames(1), [vec![1; 24]]);
    a.frames();
    a.halves.tx.burst(&[packet(to_b, 2)]);
    assert_eq!(b.await_frames(1), [vec![2; 24]]);
    assert_eq!(
        a.detail("tx_datagrams"),
        1,
        "the kernel has asked meanwhile"
    );
    // The right host gets another Ethernet address, and announces it.
    network
        .right
        .ip("link set link0 address 02:00:00:00:77:77")
        .unwrap();
    let moved = format!(
        "neigh replace {} lladdr 02:00:00:00:77:77 dev link0 nud reachable",
        network.right.address
    );
    network.left.ip(&moved).unwrap();
    a.frames();
    b.frames();
    a.halves.tx.burst(&[packet(to_b, 3)]);
    assert_eq!(b.await_frames(1), [vec![3; 24]]);
    assert_eq!(a.detail("tx_datagrams"), 2);
    assert_eq!(
        b.detail("rx_datagrams"),
        3,
        "that of the kernel is steered too"
    );
    assert_eq!(b.detail("rx_foreign_mac"), 0);
    // Packets to the old address are no longer for `b`.
    let wrong = moved.replace("77:77", "77:78");
    network.left.ip(&wrong).unwrap();
    a.frames();
    a.halves.tx.burst(&[packet(to_b, 4)]);
    assert_eq!(b.frames_until("rx_foreign_mac", 1), Vec::<Vec<u8>>::new());
}

#[test]
fn an_idle_neighbour_is_confirmed_by_a_packet_through_the_kernel() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = pair(&network);
    let [to_b, _] = meet(&mut a, &mut b);
    until_it_leaves(&mut a, to_b);
    assert_eq!(a.detail("tx_kernel_confirm"), 0);
    let stale = format!(
        "neigh replace {} lladdr {} dev link0 nud stale",
        network.right.address, "02:00:00:00:00:31"
    );
    network
        .right
        .ip("link set link0 address 02:00:00:00:00:31")
        .unwrap();
    network.left.ip(&stale).unwrap();
    a.frames();
    b.frames();
    let before = a.detail("tx_datagrams");
    a.halves.tx.burst(&[packet(to_b, 3), packet(to_b, 4)]);
    assert_eq!(a.detail("tx_kernel_confirm"), 1);
    assert_eq!(a.detail("tx_datagrams"), before + 1);
    // Earlier packets may come meanwhile.
    let mut came = Vec::new();
    until(|| {
        came.extend(b.frames());
        [3, 4]
            .iter()
            .all(|&number| came.contains(&vec![number; 24]))
    });
}

#[test]
fn packets_take_the_kernels_way_while_the_interface_is_down() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = pair(&network);
    let [to_b, _] = meet(&mut a, &mut b);
    until_it_leaves(&mut a, to_b);
    for _ in 0..2 {
        network.left.ip("link set link0 down").unwrap();
        let before = falls(&a);
        for _ in 0..200 {
            a.halves.tx.burst(&[packet(to_b, 9)]);
        }
        assert!(falls(&a) > before + 190);
        network.left.ip("link set link0 up").unwrap();
        until_it_leaves(&mut a, to_b);
        b.frames();
        a.halves.tx.burst(&[packet(to_b, 7)]);
        assert_eq!(b.await_frames(1), [vec![7; 24]]);
    }
    assert_eq!(a.detail("tx_bad_entries") + b.detail("rx_bad_entries"), 0);
}

/// Packets that the kernel had to send because it was the only way.
fn falls(end: &End<Xdp>) -> u64 {
    end.detail("tx_kernel_down") + end.detail("tx_kernel_no_road")
}

/// Sends packets until one leaves in a frame, for at most ten seconds.
fn until_it_leaves(end: &mut End<Xdp>, peer: PeerId) {
    let (before, start) = (end.detail("tx_datagrams"), Instant::now());
    while end.detail("tx_datagrams") == before {
        end.halves.tx.burst(&[packet(peer, 1)]);
        std::thread::sleep(Duration::from_millis(1));
        assert!(start.elapsed() < Duration::from_secs(10), "no way is found");
    }
}

#[test]
fn packets_reach_a_peer_through_a_gateway() {
    let Some(network) = Network::new() else {
        return;
    };
    // The right host gets a second IP address, on its loopback interface.
    network.right.ip("addr add 10.201.0.1/32 dev lo").unwrap();
    let route = format!("route add 10.201.0.0/16 via {}", network.right.address);
    network.left.ip(&route).unwrap();
    let mut far = at(&network.right, false);
    far.udp.ip = [10, 201, 0, 1].into();
    let mut a = End::<Xdp>::open(&network.left, 1, &at(&network.left, false));
    let mut b = End::<Xdp>::open(&network.right, 2, &far);
    let [to_b, _] = meet(&mut a, &mut b);
    until_it_leaves(&mut a, to_b);
    b.frames();
    a.halves.tx.burst(&[packet(to_b, 5)]);
    assert_eq!(b.await_frames(1), [vec![5; 24]]);
    // The route moves to another interface, where we do not follow it.
    network.left.ip("route del 10.201.0.0/16").unwrap();
    network.left.ip("route add 10.201.0.0/16 dev lo").unwrap();
    a.frames();
    let before = a.detail("tx_datagrams");
    a.halves.tx.burst(&[packet(to_b, 6)]);
    assert_eq!(a.detail("tx_datagrams"), before);
    assert_eq!(a.detail("tx_kernel_no_road"), 1);
    network.left.ip("route del 10.201.0.0/16").unwrap();
    network.left.ip(&route).unwrap();
    until_it_leaves(&mut a, to_b);
}

#[test]
fn an_endpoint_that_lost_events_follows_its_interface() {
    let Some(network) = Network::new() else {
        return;
    };
    network.link_further("10.80.0");
    let (mut a, mut b) = pair(&network);
    let [to_b, to_a] = meet(&mut a, &mut b);
    until_it_leaves(&mut a, to_b);
    network.left.ip("link set link0 down").unwrap();
    // The endpoint sees that the interface is down, and then sleeps.
    a.frames();
    for number in 0..600 {
        let mac = format!("02:00:00:00:{:02x}:01", number % 200);
        let replace = format!("neigh replace 10.80.0.9 lladdr {mac} dev link1");
        network.left.ip(&replace).unwrap();
    }
    for command in ["address 02:00:00:00:00:57", "up"] {
        network
            .left
            .ip(&format!("link set link0 {command}"))
            .unwrap();
    }
    // The kernel reports some consequences a second later, and those are lost too.
    std::thread::sleep(Duration::from_secs(2));
    until_it_leaves(&mut a, to_b);
    // Packets for the new address are accepted, and leave with it.
    let moved = format!(
        "neigh replace {} lladdr 02:00:00:00:00:57 dev link0 nud permanent",
        network.left.address
    );
    network.right.ip(&moved).unwrap();
    b.frames();
    until_it_leaves(&mut b, to_a);
    assert!(!a.await_frames(1).is_empty());
    assert_eq!(a.detail("rx_foreign_mac"), 0);
}

#[test]
fn an_endpoint_outlives_its_interface() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = pair(&network);
    let [to_b, _] = meet(&mut a, &mut b);
    until_it_leaves(&mut a, to_b);
    network.left.ip("link del link0").unwrap();
    for _ in 0..200 {
        a.halves.tx.burst(&[packet(to_b, 9)]);
    }
    assert!(falls(&a) > 190);
    assert_eq!(a.frames(), Vec::<Vec<u8>>::new());
    b.frames();
    // The endpoint can sleep: no error keeps the descriptors readable.
    let mut fds = Vec::new();
    Xdp::fds(&a.halves.rx, &a.halves.tx, &mut fds);
    assert_eq!(Xdp::arm(&mut a.halves.rx, &mut a.halves.tx), Arm::Wait);
    let mut polled = fds
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect::<Vec<_>>();
    // SAFETY: the array is as long as we say.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    assert_eq!(
        ready,
        0,
        "{:?}",
        polled.iter().map(|poll| poll.revents).collect::<Vec<_>>()
    );
}

/// Calls `bpf(2)` with these numbers. Returns its result, and the numbers that the kernel changed.
fn bpf<const N: usize>(command: i64, mut numbers: [u32; N]) -> (i64, [u32; N]) {
    let len = size_of_val(&numbers);
    // SAFETY: the commands below read and write numbers of a live array of this length.
    let rc = unsafe { libc::syscall(libc::SYS_bpf, command, numbers.as_mut_ptr(), len) };
    (rc, numbers)
}

/// Detaches the program of this host's interface, as `bpftool link detach` does, although its
/// owners keep their descriptors.
fn detach(host: &Host) {
    const INFO: i64 = 15;
    const OPEN: i64 = 30;
    const NEXT: i64 = 31;
    const DETACH: i64 = 34;
    let program = host.xdp_program().unwrap();
    let mut id = 0;
    loop {
        let (rc, [_, next, _]) = bpf(NEXT, [id, 0, 0]);
        assert_eq!(rc, 0, "no link has program {program}");
        id = next;
        let (link, _) = bpf(OPEN, [id, 0, 0]);
        // The link may have ended meanwhile.
        let Ok(link) = u32::try_from(link) else {
            continue;
        };
        let mut facts = [0_u32; 8];
        let at = (facts.as_mut_ptr() as u64).to_ne_bytes();
        let [low, high] = [0, 4].map(|from| u32::from_ne_bytes(*at[from..].first_chunk().unwrap()));
        // The kernel writes 32 bytes to the live array.
        bpf(INFO, [link, 32, low, high]);
        let is_it = std::hint::black_box(facts)[2] == program;
        let rc = if is_it {
            bpf(DETACH, [link, 0, 0]).0
        } else {
            0
        };
        // SAFETY: the descriptor is this function's.
        unsafe { libc::close(i32::try_from(link).unwrap()) };
        assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
        if is_it {
            return;
        }
    }
}

#[test]
fn packets_take_the_kernels_way_when_the_program_is_detached() {
    let Some(network) = Network::new() else {
        return;
    };
    let (a, b) = pair(&network);
    let mut echo = Echo::new(a, b);
    echo.calls(500, 32);
    assert_eq!(echo.near("tx_kernel_unsteered"), 0);
    detach(&network.left);
    assert_eq!(network.left.xdp_programs(), 0);
    let (steered, begin) = (echo.near("rx_datagrams"), Instant::now());
    while echo.near("tx_kernel_unsteered") == 0 {
        echo.calls(100, 32);
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it still sends frames"
        );
    }
    let sent = echo.near("tx_datagrams");
    for len in [32, 1000, 20_000] {
        echo.calls(100, len);
    }
    assert_eq!(
        echo.near("tx_datagrams"),
        sent,
        "all packets leave through the socket"
    );
    assert_eq!(echo.near("rx_datagrams"), steered, "and come through it");
    // The other end still has its program.
    assert_eq!(echo.far("tx_kernel_unsteered"), 0);
    assert!(echo.far("rx_datagrams") > 500);
}

#[test]
fn an_endpoint_that_is_opened_after_the_program_was_detached_has_it_again() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut b, _other) = (
        End::<Xdp>::open(&network.right, 9, &at(&network.right, false)),
        End::<Xdp>::open(&network.left, 1, &at(&network.left, false)),
    );
    let open = |number| End::<Xdp>::open(&network.left, number, &at(&network.left, false));
    let first = open(2);
    detach(&network.left);
    assert_eq!(network.left.xdp_programs(), 0);
    // The other endpoint of this process still has the interface.
    drop(first);
    let mut again = open(3);
    assert_eq!(network.left.xdp_programs(), 1);
    let [to_b, to_again] = meet(&mut again, &mut b);
    until_it_leaves(&mut again, to_b);
    until_it_leaves(&mut b, to_again);
    assert!(!again.await_frames(1).is_empty());
    assert!(again.detail("rx_datagrams") > 0);
    assert_eq!(again.detail("tx_kernel_unsteered"), 0);
}
