//! Descriptors over sockets, dialling without blocking, and the process at the other end.

use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::time::Duration;

use super::*;

#[test]
fn descriptors_travel_with_the_first_byte() {
    let (here, there) = UnixStream::pair().unwrap();
    let mut file = temporary_file();
    file.write_all(b"over there").unwrap();
    let fds = [
        OwnedFd::from(file.try_clone().unwrap()),
        OwnedFd::from(file),
    ];
    assert_eq!(send(here.as_fd(), b"xyz", &fds).unwrap(), 3);
    let (mut bytes, mut got) = ([0; 8], Vec::new());
    assert_eq!(receive(there.as_fd(), &mut bytes, &mut got).unwrap(), 3);
    assert_eq!(&bytes[..3], b"xyz");
    assert_eq!(got.len(), 2);
    let mut copy = std::fs::File::from(got.pop().unwrap());
    let mut text = String::new();
    copy.rewind().unwrap();
    copy.read_to_string(&mut text).unwrap();
    assert_eq!(text, "over there");
}

#[test]
fn the_largest_number_of_descriptors_fits_and_more_are_refused() {
    let (here, there) = UnixStream::pair().unwrap();
    let fds = |n: usize| -> Vec<OwnedFd> {
        (0..n)
            .map(|_| here.as_fd().try_clone_to_owned().unwrap())
            .collect()
    };
    let error = send(here.as_fd(), b"a", &fds(MAX_FDS + 1)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    send(here.as_fd(), b"a", &fds(MAX_FDS)).unwrap();
    let mut got = Vec::new();
    receive(there.as_fd(), &mut [0; 8], &mut got).unwrap();
    assert_eq!(got.len(), MAX_FDS);
}

#[test]
fn descriptors_of_a_reader_that_does_not_want_them_are_closed() {
    let (mut here, there) = UnixStream::pair().unwrap();
    let (probe, far) = UnixStream::pair().unwrap();
    send(here.as_fd(), b"a", &[OwnedFd::from(far)]).unwrap();
    here.write_all(b"b").unwrap();
    let mut got = Vec::new();
    receive(there.as_fd(), &mut [0; 1], &mut got).unwrap();
    drop(got);
    // The other socket's end of stream shows that no descriptor holds its peer any more.
    probe
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    assert_eq!((&probe).read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn an_abstract_name_can_be_dialled_by_the_same_user() {
    let name = format!("dunlin-test-{}", std::process::id());
    let address = UnixAddr::from_abstract_name(name.as_bytes()).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let dialled = dial_unix(format!("\0{name}").as_bytes()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let this = Peer {
        pid: std::process::id(),
        uid: own_uid(),
    };
    assert_eq!(peer(dialled.as_fd()).unwrap(), this);
    assert_eq!(peer(accepted.as_fd()).unwrap(), this);
    assert_eq!(
        dial_unix(&[7; 200]).unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
    assert!(dial_unix(b"\0dunlin-no-listener-here").is_err());
}

#[test]
fn tcp_is_dialled_without_blocking_on_both_address_families() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = std::net::TcpListener::bind(host) else {
            continue; // A machine without IPv6 has nothing to dial there.
        };
        let socket = dial_tcp(listener.local_addr().unwrap(), Ipv4Addr::LOCALHOST.into()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        assert_eq!(send(socket.as_fd(), b"hello", &[]).unwrap(), 5);
        let mut bytes = [0; 5];
        accepted.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
    }
}

#[test]
fn a_connection_comes_from_the_address_of_its_nexus_if_it_can() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    for (own, from) in [
        ("127.0.0.5", "127.0.0.5"),
        ("0.0.0.0", "127.0.0.1"),
        ("10.99.99.99", "127.0.0.1"),
        ("::1", "127.0.0.1"),
    ] {
        let _socket = dial_tcp(to, own.parse().unwrap()).unwrap();
        let (_, remote) = listener.accept().unwrap();
        assert_eq!(
            remote.ip(),
            from.parse::<IpAddr>().unwrap(),
            "the nexus is at {own}"
        );
    }
}

/// A file without a name.
fn temporary_file() -> std::fs::File {
    let path = std::env::temp_dir().join(format!("dunlin-ffi-{}", std::process::id()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = file.unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}
