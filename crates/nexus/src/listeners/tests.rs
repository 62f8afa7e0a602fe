//! The origins of connections over loopback, and of connections that only seem to come from this
//! host.

use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};

use dunlin_testkit::user::{STRANGER, as_user};

use super::*;

/// The origin of a connection of user `user`. `can_ask`: the listener can ask the kernel for the
/// user.
fn origin_of(user: u32, can_ask: bool) -> Origin {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let epoll = Epoll::new().unwrap();
    let mut listeners = Listeners::new(tcp, None, &epoll).unwrap();
    if !can_ask {
        listeners.sockets = None;
    }
    let _theirs = as_user(user, || TcpStream::connect(address).unwrap());
    match listeners.next(TCP, &epoll, Nanos(1)) {
        Next::Connection(_, origin) => origin,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_process_is_of_this_user_only_if_the_kernel_says_so() {
    let own = socket::own_uid();
    assert_eq!(origin_of(own, true), Origin::OwnUser);
    assert_eq!(origin_of(own, false), Origin::UnknownUser);
    if own != 0 {
        return dunlin_testkit::skip("only root can be another user");
    }
    assert_eq!(origin_of(STRANGER, true), Origin::User(STRANGER));
    assert_eq!(origin_of(STRANGER, false), Origin::UnknownUser);
}

#[test]
fn a_process_at_the_unix_socket_is_known_by_its_number() {
    let name = format!("dunlin-origin-{}", std::process::id());
    let name = UnixAddr::from_abstract_name(name).unwrap();
    let unix = UnixListener::bind_addr(&name).unwrap();
    let epoll = Epoll::new().unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut listeners = Listeners::new(tcp, Some(unix), &epoll).unwrap();
    let _theirs = UnixStream::connect_addr(&name).unwrap();
    match listeners.next(UNIX, &epoll, Nanos(1)) {
        Next::Connection(_, origin) => assert_eq!(origin, Origin::Process(std::process::id())),
        other => panic!("{other:?}"),
    }
}
