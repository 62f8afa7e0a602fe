//! What is read from elsewhere is what is read here; whoever hides or is no nexus says so.

use std::net::TcpListener;

use dunlin_transport::shm::Shm;

use super::*;
use crate::insight::{ReadError, Snapshot};
use crate::{Endpoint, Nexus};

#[test]
fn the_same_is_read_over_the_control_plane() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let _endpoint: Endpoint<Shm, ()> = nexus.endpoint(()).unwrap();
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let there = Snapshot::read(&mut remote).unwrap();
    let here = nexus.snapshot().unwrap();
    assert_eq!(there.endpoints, here.endpoints);
    assert_eq!((there.pid, there.address), (here.pid, here.address));
}

#[test]
fn who_hides_has_nothing_to_read() {
    let nexus = Nexus::builder().hidden(true).bind("127.0.0.1:0").unwrap();
    assert!(nexus.snapshot().is_none());
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let error = Snapshot::read(&mut remote).unwrap_err();
    assert!(matches!(error, ReadError::Truncated { at: 0 }), "{error}");
}

#[test]
fn what_is_no_nexus_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let error = Remote::connect(&address).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    other.join().unwrap();
    // Nobody listens there any more.
    assert!(Remote::connect(&address).is_err());
}
