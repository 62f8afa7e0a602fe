//! Questions about sockets of this process, and about those of a thread with another user.

use std::net::{TcpListener, TcpStream};

use dunlin_testkit::user::{STRANGER, as_user};

use super::*;
use crate::ffi::socket::own_uid;

/// Connects as `user`, and returns the user that the other end finds.
fn found(at: &str, user: u32) -> Option<u32> {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let _theirs = as_user(user, || TcpStream::connect(address).unwrap());
    let (ours, remote) = listener.accept().unwrap();
    let local = ours.local_addr().unwrap();
    Sockets::new().unwrap().user_of(remote, local)
}

#[test]
fn the_user_of_a_loopback_connection_is_found() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        assert_eq!(found(at, own_uid()), Some(own_uid()), "{at}");
    }
}

/// An IPv6 socket that also takes IPv4 connections sees their addresses as IPv6 ones.
#[test]
fn the_user_of_an_ipv4_connection_to_an_ipv6_socket_is_found() {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let theirs = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (ours, remote) = listener.accept().unwrap();
    let local = ours.local_addr().unwrap();
    assert!(remote.is_ipv6() && local.is_ipv6(), "{remote} {local}");
    let mut sockets = Sockets::new().unwrap();
    assert_eq!(sockets.user_of(remote, local), Some(own_uid()));
    let (near, far) = (theirs.local_addr().unwrap(), theirs.peer_addr().unwrap());
    assert!(sockets.user_of(far, near).is_some());
}

/// The kernel looks for a listening socket if it finds no connection.
#[test]
fn a_listening_socket_is_not_the_end_of_a_connection() {
    for (at, theirs, ours) in [
        ("0.0.0.0:0", "10.79.0.2", "10.79.0.1:2"),
        ("[::]:0", "fd79::2", "[fd79::1]:2"),
        ("[::]:0", "10.79.0.2", "10.79.0.1:2"),
        ("[::]:0", "::ffff:10.79.0.2", "[::ffff:10.79.0.1]:2"),
        ("127.0.0.1:0", "127.0.0.1", "127.0.0.1:2"),
    ] {
        let listener = TcpListener::bind(at).unwrap();
        let port = listener.local_addr().unwrap().port();
        let theirs = SocketAddr::new(theirs.parse().unwrap(), port);
        let found = Sockets::new()
            .unwrap()
            .user_of(theirs, ours.parse().unwrap());
        assert_eq!(found, None, "{at} {theirs}");
    }
}

#[test]
fn a_connection_that_its_process_has_closed_has_no_user() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, remote) = listener.accept().unwrap();
    drop(theirs);
    let local = ours.local_addr().unwrap();
    assert_eq!(Sockets::new().unwrap().user_of(remote, local), None);
}

/// The answer to an earlier question does not count for a later one.
#[test]
fn an_answer_to_an_earlier_question_is_ignored() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, remote) = listener.accept().unwrap();
    let local = ours.local_addr().unwrap();
    let mut sockets = Sockets::new().unwrap();
    let nothing = "127.0.0.1:1".parse().unwrap();
    let left = question(77, nothing, nothing);
    socket::send(sockets.netlink.as_fd(), &left, &[]).unwrap();
    assert_eq!(sockets.user_of(remote, local), Some(own_uid()));
}

#[test]
fn another_user_is_distinguished_from_this_one() {
    if own_uid() != 0 {
        return dunlin_testkit::skip("only root can be another user");
    }
    for at in ["127.0.0.1:0", "[::1]:0"] {
        assert_eq!(found(at, STRANGER), Some(STRANGER), "{at}");
    }
}

#[test]
fn a_socket_that_does_not_exist_has_no_user() {
    let [one, other] = ["127.0.0.1:1", "127.0.0.1:2"].map(|at| at.parse().unwrap());
    assert_eq!(Sockets::new().unwrap().user_of(one, other), None);
}
