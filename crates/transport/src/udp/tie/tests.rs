//! A socket that is tied and untied, with real datagrams over loopback.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use super::super::options::Options;
use super::super::socket::Socket;
use super::*;

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A socket at this address, and another program's socket.
fn ends(ip: IpAddr) -> (Socket, UdpSocket) {
    let options = Options {
        ip,
        ..Options::default()
    };
    let peer = UdpSocket::bind((HOST, 0)).expect("there is a loopback interface");
    (Socket::open(&options).expect("the options are good"), peer)
}

fn aim_at(peer: &UdpSocket) -> Aim {
    Aim {
        peer: address_of(peer),
        own: HOST,
    }
}

fn address_of(socket: &UdpSocket) -> RawAddr {
    RawAddr::new(socket.local_addr().expect("it is bound"))
}

/// The number of datagrams that arrive if each of these sends one.
fn arriving(socket: &Socket, from: &[&UdpSocket]) -> usize {
    let to = SocketAddr::new(HOST, socket.bound.port());
    for sender in from {
        sender.send_to(b"x", to).expect("loopback takes it");
    }
    let mut room = [0; 8];
    std::iter::from_fn(|| ffi::recv(socket.fd(), &mut room).ok()).count()
}

#[test]
fn a_tied_socket_serves_only_its_peer_and_an_untied_one_serves_all() {
    for ip in [HOST, Ipv4Addr::UNSPECIFIED.into()] {
        let (socket, peer) = ends(ip);
        let other = UdpSocket::bind((HOST, 0)).unwrap();
        socket.on_only_peer(Some(aim_at(&peer)));
        assert!(socket.wants_sources() && !socket.is_tied());
        assert_eq!(arriving(&socket, &[&peer, &other]), 2);
        socket.on_source(&address_of(&peer));
        assert!(socket.is_tied() && !socket.wants_sources());
        assert_eq!(arriving(&socket, &[&peer, &other]), 1);
        ffi::send_to(socket.fd(), b"to the peer", &RawAddr::TIED).unwrap();
        let mut room = [0; 16];
        let (len, from) = peer.recv_from(&mut room).unwrap();
        assert_eq!((len, from.port()), (11, socket.bound.port()));
        // Taking the same peer again changes nothing.
        socket.on_only_peer(Some(aim_at(&peer)));
        assert!(socket.is_tied());
        socket.on_only_peer(None);
        assert!(!socket.is_tied() && !socket.wants_sources());
        assert_eq!(
            arriving(&socket, &[&peer, &other]),
            2,
            "the socket keeps its port"
        );
        assert_eq!(ffi::local_addr(socket.fd()).unwrap(), socket.bound);
    }
}

#[test]
fn another_only_peer_is_watched_anew() {
    let (socket, peer) = ends(HOST);
    let next = UdpSocket::bind((HOST, 0)).unwrap();
    socket.on_only_peer(Some(aim_at(&peer)));
    socket.on_source(&address_of(&peer));
    socket.on_only_peer(Some(aim_at(&next)));
    assert!(socket.wants_sources());
    assert_eq!(arriving(&socket, &[&peer, &next]), 2);
    socket.on_source(&address_of(&next));
    assert_eq!(arriving(&socket, &[&peer, &next]), 1);
}

#[test]
fn a_peer_that_sends_from_another_address_is_not_tied() {
    let (socket, peer) = ends(HOST);
    let other = UdpSocket::bind((HOST, 0)).unwrap();
    socket.on_only_peer(Some(aim_at(&peer)));
    for _ in 0..MOST_OTHERS {
        assert!(socket.wants_sources());
        socket.on_source(&address_of(&other));
    }
    assert!(!socket.wants_sources());
    socket.on_source(&address_of(&peer));
    assert!(!socket.is_tied());
}

#[test]
fn a_socket_whose_peer_sends_to_another_of_our_addresses_is_not_tied() {
    let (socket, peer) = ends(Ipv4Addr::UNSPECIFIED.into());
    let aim = Aim {
        own: Ipv4Addr::new(127, 0, 0, 7).into(),
        ..aim_at(&peer)
    };
    socket.on_only_peer(Some(aim));
    socket.on_source(&address_of(&peer));
    assert!(!socket.is_tied());
    let to = SocketAddr::new(aim.own, socket.bound.port());
    peer.send_to(b"x", to).unwrap();
    assert_eq!(arriving(&socket, &[]), 1);
}
