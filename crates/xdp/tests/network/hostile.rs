//! Packets of strangers to the address and port of an endpoint, and packets that are not for it.

use std::net::UdpSocket;

use dunlin_core::transport::Tx;
use dunlin_testkit::network::Network;
use dunlin_transport::udp::Udp;
use dunlin_xdp::Xdp;

use crate::ends::{Echo, End, at, meet};

/// A socket at the left host.
fn socket(network: &Network) -> UdpSocket {
    network
        .left
        .run(|| UdpSocket::bind((network.left.address, 0)).unwrap())
}

#[test]
fn a_strangers_datagram_is_a_frame_and_fragments_come_through_the_socket() {
    let Some(network) = Network::new() else {
        return;
    };
    let mut end = End::<Xdp>::open(&network.right, 1, &at(&network.right, false));
    let to = end.halves.rx.local_addr();
    let socket = socket(&network);
    socket.send_to(b"a stranger", to).unwrap();
    assert_eq!(end.await_frames(1), [b"a stranger".to_vec()]);
    assert_eq!(end.detail("rx_datagrams"), 1);
    // Longer than the MTU: three fragments, all of which the kernel gets.
    let long = vec![7; 4000];
    socket.send_to(&long, to).unwrap();
    assert_eq!(end.await_frames(1), [long]);
    assert_eq!(end.detail("rx_datagrams"), 1);
    // An empty datagram holds no packet.
    socket.send_to(b"", to).unwrap();
    assert_eq!(
        end.frames_until("rx_malformed_udp", 1),
        Vec::<Vec<u8>>::new()
    );
}

#[test]
fn packets_for_other_ports_go_to_the_kernel() {
    let Some(network) = Network::new() else {
        return;
    };
    let mut end = End::<Xdp>::open(&network.right, 1, &at(&network.right, false));
    let other = network
        .right
        .run(|| UdpSocket::bind((network.right.address, 0)).unwrap());
    socket(&network)
        .send_to(b"not for xdp", other.local_addr().unwrap())
        .unwrap();
    let mut room = [0; 32];
    let len = other.recv(&mut room).unwrap();
    assert_eq!(&room[..len], b"not for xdp");
    assert_eq!(end.frames(), Vec::<Vec<u8>>::new());
}

#[test]
fn the_port_is_reserved() {
    let Some(network) = Network::new() else {
        return;
    };
    let end = End::<Xdp>::open(&network.right, 1, &at(&network.right, false));
    let to = end.halves.rx.local_addr();
    assert!(network.right.run(|| UdpSocket::bind(to)).is_err());
}

#[test]
fn partial_sums_can_be_refused() {
    let Some(network) = Network::new() else {
        return;
    };
    let strict = dunlin_xdp::Options {
        partial_sums: false,
        ..at(&network.right, false)
    };
    let mut end = End::<Xdp>::open(&network.right, 1, &strict);
    let to = end.halves.rx.local_addr();
    socket(&network).send_to(b"a neighbour's", to).unwrap();
    assert_eq!(end.frames_until("rx_wrong_sum", 1), Vec::<Vec<u8>>::new());
    // Whole checksums are accepted, such as those in frames that we write.
    let near = End::<Xdp>::open(&network.left, 2, &at(&network.left, false));
    network.left.ip("link set link0 up").unwrap();
    let neighbour = |host: &dunlin_testkit::network::Host, of: &str, mac: &str| {
        host.ip(&format!(
            "neigh replace {of} lladdr {mac} dev link0 nud permanent"
        ))
        .unwrap();
    };
    network
        .right
        .ip("link set link0 address 02:00:00:00:00:02")
        .unwrap();
    network
        .left
        .ip("link set link0 address 02:00:00:00:00:01")
        .unwrap();
    neighbour(&network.left, network.right.address, "02:00:00:00:00:02");
    neighbour(&network.right, network.left.address, "02:00:00:00:00:01");
    let mut echo = Echo::new(near, end);
    echo.calls(100, 32);
    assert_eq!(echo.far("rx_wrong_sum"), 1);
    assert_eq!(echo.far("rx_partial_sums"), 0);
}

#[test]
fn sums_that_the_kernel_takes_away_in_front_of_a_bridge_refuse_no_honest_packet() {
    let Some(network) = Network::new() else {
        return;
    };
    let (left, right) = (&network.left, &network.right);
    left.write_sums();
    right.join_datagrams();
    let address = format!("addr add {}/24 dev br0", right.address);
    for command in [
        "addr flush dev link0",
        "link add br0 type bridge",
        "link set link0 master br0",
        "link set br0 up",
        &address,
    ] {
        right.ip(command).unwrap();
    }
    for partial_sums in [true, false] {
        let mut far = dunlin_xdp::Options {
            interface: "br0".to_owned(),
            partial_sums,
            ..at(right, false)
        };
        far.udp.pack = false;
        let far = End::<Xdp>::open(right, 2, &far);
        let mut near = at(left, false);
        near.udp.pack = false;
        let near = End::<Udp>::open(left, 1, &near);
        let mut echo = Echo::new(near, far);
        for _ in 0..10 {
            echo.calls(1, 20_000);
        }
        // The kernel joins datagrams that it finds together, which a busy machine may delay.
        for _ in 0..1000 {
            if !partial_sums || echo.far("rx_partial_sums") > 0 {
                break;
            }
            echo.calls(1, 20_000);
        }
        assert!(echo.far("rx_datagrams") > 10);
        assert_eq!(echo.far("rx_wrong_sum"), 0);
        // Where such packets are accepted, the kernel joins datagrams.
        assert_eq!(echo.far("rx_partial_sums") > 0, partial_sums);
    }
}

#[test]
fn a_flood_drops_packets_and_nothing_else() {
    let Some(network) = Network::new() else {
        return;
    };
    let mut a = End::<Udp>::open(&network.left, 1, &at(&network.left, false));
    let mut b = End::<Xdp>::open(&network.right, 2, &at(&network.right, false));
    let [to_b, _] = meet(&mut a, &mut b);
    let to = b.halves.rx.local_addr();
    let socket = socket(&network);
    for number in 0_u32..3000 {
        socket.send_to(&number.to_le_bytes(), to).unwrap();
    }
    let got = b.await_frames(120);
    // Its share of the queue has 128 frames.
    assert!(got.len() >= 120 && got.len() < 3000, "{}", got.len());
    assert!(b.detail("rx_kernel_dropped") + b.detail("rx_kernel_unfilled") > 0);
    let item = dunlin_core::transport::TxItem {
        peer: to_b,
        inline_len: 24,
        inline: [3; dunlin_core::transport::MAX_INLINE],
        data: dunlin_msgbuf::BufRef::EMPTY,
    };
    a.halves.tx.burst(&[item]);
    assert_eq!(b.await_frames(1), [vec![3; 24]], "and then it goes on");
}
