//! A reader reports an error if the answer cannot come from a nexus.

use std::net::TcpListener;

use super::*;

#[test]
fn a_server_that_is_no_nexus_is_an_error() {
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
    // No process listens at this address any more.
    assert!(Remote::connect(&address).is_err());
}
