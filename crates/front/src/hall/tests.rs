//! Clients go to all threads in turn.

use std::net::{Ipv4Addr, TcpListener};

use dunlin_store::Seconds;
use mio::{Poll, Token, Waker};

use super::{Hall, Options};
use crate::stream::Stream;

#[test]
fn clients_go_to_the_threads_in_turn_and_none_waits_for_a_thread_that_does_not_run() {
    let hall = Hall::new(Options {
        threads: 3,
        ..Options::default()
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let polls = [0_u16, 1].map(|thread| {
        let poll = Poll::new().unwrap();
        hall.on_thread(thread, Waker::new(poll.registry(), Token(0)).unwrap());
        poll
    });
    // Thread 2 does not run. Thread 0 accepts the clients.
    let mut kept = 0;
    for _ in 0..9 {
        let stream = Stream::Tcp(mio::net::TcpStream::connect(address).unwrap());
        let guest = hall.on_client(None, Seconds(1)).unwrap();
        kept += usize::from(hall.post(0, stream, guest).is_some());
    }
    assert_eq!((kept, hall.arrivals(1).len()), (6, 3));
    assert!(hall.arrivals(0).is_empty() && hall.arrivals(1).is_empty());
    drop(polls);
}

#[test]
fn a_reset_spares_what_is_there_now() {
    let hall = Hall::new(Options {
        max_connections: 2,
        ..Options::default()
    });
    let guests: Vec<_> = (0..3).map(|_| hall.on_client(None, Seconds(1))).collect();
    assert!(guests[2].is_none(), "there are too many");
    hall.on_read(10);
    hall.on_written(20);
    hall.on_authentication(false);
    hall.on_reset();
    let process = hall.process();
    let counts = [
        process.total_connections,
        process.rejected_connections,
        process.bytes_read,
        process.bytes_written,
        process.auth_attempts,
        process.auth_failures,
    ];
    assert_eq!(counts, [0; 6]);
    assert_eq!((process.connections.len(), process.max_connections), (2, 2));
    assert!(
        hall.on_client(None, Seconds(1)).is_none(),
        "both are still there"
    );
    // A later client has a number of its own.
    hall.on_client_gone(guests[0].as_ref().unwrap());
    let later = hall.on_client(None, Seconds(1)).unwrap();
    assert_eq!((later.number(), hall.process().total_connections), (3, 1));
}
