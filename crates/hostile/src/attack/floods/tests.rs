//! A flood counts only connections that exist and answers that have arrived.

use std::net::TcpListener;

use super::*;

#[test]
fn a_connection_is_answered_once_its_server_speaks_or_leaves() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut rng = Rng::new(4);
    let streams = [(); 3].map(|()| connected(address, &mut rng).unwrap());
    let [mut speaks, leaves, silent] = [(); 3].map(|()| listener.accept().unwrap());
    let sources = [speaks.1, leaves.1, silent.1];
    assert!(sources.iter().all(|source| source.ip().is_loopback()));
    assert_ne!(sources[0].ip(), sources[1].ip());
    assert!(streams.iter().all(|stream| !is_answered(stream)));
    speaks.0.write_all(b"x").unwrap();
    drop(leaves.0);
    let answered = streams.each_ref().map(is_answered);
    assert_eq!(answered, [true, true, false]);
}

#[test]
fn a_port_is_free_again_when_its_connection_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stream = connected(address, &mut Rng::new(5)).unwrap();
    let source = stream.local_addr().unwrap();
    drop(stream);
    assert!(TcpListener::bind(source).is_ok());
}
