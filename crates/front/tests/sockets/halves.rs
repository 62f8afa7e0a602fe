//! Clients that together send more of long commands than the server keeps.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use dunlin_front::Options;

use crate::server::{Caller, PATIENCE, Running};

const LEN: usize = 1 << 20;

/// memcached's error, after which it closes the connection.
const NO_ROOM: &[u8] = b"SERVER_ERROR out of memory reading request\r\n";

/// Sends half of a value.
fn send_half(client: &mut Caller, number: usize, len: usize) {
    let line = format!("set half{number} 0 0 {len}\r\n");
    client.0.write_all(line.as_bytes()).unwrap();
    client.0.write_all(&vec![b'v'; len / 2]).unwrap();
}

fn send_rest(client: &mut Caller, len: usize) {
    let rest = "v".repeat(len / 2) + "\r\n";
    client.says(&rest, "STORED\r\n");
}

#[test]
fn all_clients_with_half_of_a_value_can_complete_it_one_after_the_other() {
    for threads in [1, 2] {
        let server = Running::start(Options {
            incomplete: 256 << 10,
            threads,
            ..Options::default()
        });
        let mut clients: Vec<_> = (0..20).map(|_| server.call()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            send_half(client, number, LEN);
        }
        // Short commands need no room.
        let mut other = server.call();
        let value = "x".repeat(3000);
        other.says(&format!("set x 0 0 3000\r\n{value}\r\n"), "STORED\r\n");
        other.says("get none\r\n", "END\r\n");
        std::thread::scope(|scope| {
            for client in clients.iter_mut().rev() {
                scope.spawn(|| send_rest(client, LEN));
            }
        });
        // Afterwards there is room for two shorter ones, which can come in any order.
        let len = 200 << 10;
        send_half(&mut clients[0], 0, len);
        send_half(&mut clients[1], 1, len);
        send_rest(&mut clients[1], len);
        send_rest(&mut clients[0], len);
    }
}

#[test]
fn a_client_that_stops_in_a_value_leaves_if_no_other_has_room() {
    let server = Running::start(Options {
        incomplete: 64 << 10,
        patience: 1,
        ..Options::default()
    });
    let (mut silent, mut other) = (server.call(), server.call());
    send_half(&mut silent, 0, LEN);
    send_half(&mut other, 1, LEN);
    send_rest(&mut other, LEN);
    assert_eq!(silent.rest(), NO_ROOM);
}

#[test]
fn a_client_that_stops_in_a_value_stays_while_there_is_room() {
    let server = Running::start(Options {
        patience: 1,
        ..Options::default()
    });
    let mut slow = server.call();
    send_half(&mut slow, 0, LEN);
    std::thread::sleep(Duration::from_millis(3500));
    send_rest(&mut slow, LEN);
}

/// A byte now and then is not enough. The others wait only for a limited time.
#[test]
fn a_slow_client_leaves_if_no_other_has_room() {
    for threads in [1, 2] {
        let server = Running::start(Options {
            incomplete: 64 << 10,
            patience: 1,
            threads,
            ..Options::default()
        });
        let (mut slow, mut other) = (server.call(), server.call());
        send_half(&mut slow, 0, LEN);
        let wait = Some(Duration::from_millis(50));
        slow.0.set_read_timeout(wait).unwrap();
        let (begin, mut seen) = (Instant::now(), [0; NO_ROOM.len()]);
        while slow.0.read_exact(&mut seen).is_err() {
            assert!(begin.elapsed() < PATIENCE, "it goes first for ever");
            slow.0.write_all(b"v").unwrap();
        }
        assert_eq!(seen, NO_ROOM);
        send_half(&mut other, 1, LEN);
        send_rest(&mut other, LEN);
    }
}

/// Neither of the first clients has completed its command.
#[test]
fn clients_that_close_in_the_middle_of_a_value_let_others_go() {
    for threads in [1, 2] {
        let server = Running::start(Options {
            incomplete: 64 << 10,
            threads,
            ..Options::default()
        });
        for number in 0..6 {
            send_half(&mut server.call(), number, LEN);
        }
        let mut other = server.call();
        send_half(&mut other, 9, LEN);
        send_rest(&mut other, LEN);
    }
}
