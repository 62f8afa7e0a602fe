//! Sockets of this process, and of a thread that has taken another user.

use std::net::{TcpListener, TcpStream};

use super::*;
use crate::ffi::socket::own_uid;

/// The user that connects: one without rights.
const STRANGER: u32 = 65_534;

/// Connects as a user, and returns the user that the other end finds.
fn found(at: &str, user: u32) -> Option<u32> {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = move || {
        // SAFETY: no pointers are passed; it concerns this thread alone, and does nothing without
        // rights.
        unsafe { libc::setfsuid(user) };
        TcpStream::connect(address).unwrap()
    };
    let _theirs = std::thread::spawn(connect).join().unwrap();
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

#[test]
fn another_user_is_told_from_this_one() {
    if own_uid() != 0 {
        return dunlin_testkit::skip("only root can be another user");
    }
    for at in ["127.0.0.1:0", "[::1]:0"] {
        assert_eq!(found(at, STRANGER), Some(STRANGER), "{at}");
    }
}

#[test]
fn a_socket_that_is_not_there_has_no_user() {
    let [one, other] = ["127.0.0.1:1", "127.0.0.1:2"].map(|at| at.parse().unwrap());
    assert_eq!(Sockets::new().unwrap().user_of(one, other), None);
}
