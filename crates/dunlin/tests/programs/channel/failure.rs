//! Servers that end, and servers that come back.

use std::sync::atomic::Ordering;

use dunlin::{Answer, Channel, ChannelError, Ran};
use futures::future::join_all;

use crate::channel::process::Process;
use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, HOLD, WAYS, Way, block_on, free_port, own_host, until};

/// More calls than all sessions with one server take at once.
const CALLS: usize = 100;

/// Begins calls; every third one is idempotent. A server holds some of them; sessions and the
/// channel hold the others.
fn begin(channel: &Channel) -> std::thread::JoinHandle<Vec<Result<Answer, ChannelError>>> {
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let call = channel.call(HOLD, &number.to_le_bytes());
            call.idempotent(number % 3 == 0)
        })
        .collect();
    std::thread::spawn(|| block_on(join_all(calls)))
}

/// Checks how the calls ended. By now a second server, which answers, has replaced the first.
fn check(way: Way, ends: Vec<Result<Answer, ChannelError>>) {
    let (mut answered, mut unknown) = (0, 0);
    for (number, end) in ends.into_iter().enumerate() {
        match end {
            Ok(answer) => {
                assert_eq!(answer.data(), number.to_le_bytes());
                answered += usize::from(number % 3 != 0);
            }
            Err(error) => {
                assert_ne!(number % 3, 0, "an idempotent call is repeated: {error}");
                assert_eq!(error.ran(), Ran::Unknown, "{error}");
                unknown += 1;
            }
        }
    }
    assert!(unknown > 0, "{way:?}: some were held");
    assert!(
        answered > 0,
        "{way:?}: some were never sent, and are repeated"
    );
}

#[test]
fn calls_live_through_a_restart_of_their_server() {
    for way in WAYS {
        let server = Server::start(way, &own_host(), Role::Holds);
        let address = server.address.to_string();
        let channel = way.open(&address);
        block_on(channel.call(ECHO, b"")).unwrap();
        let calls = begin(&channel);
        until(|| server.seen.held.load(Ordering::Relaxed) >= 8);
        let first = std::sync::Arc::clone(&server.seen);
        drop(server);
        let server = Server::start(way, &address, Role::Answers);
        let ends = calls.join().unwrap();
        let unknown = ends.iter().filter(|end| end.is_err()).count();
        check(way, ends);
        let ran = [&first, &server.seen].map(|seen| seen.held.load(Ordering::Relaxed));
        // The second server does not run a call that the first ran and that is not idempotent.
        assert_eq!(ran[1], CALLS - unknown, "{way:?}, {ran:?}");
    }
}

#[test]
fn calls_live_through_a_kill_of_their_server() {
    for way in WAYS {
        let server = Process::start(way, &own_host(), Role::Holds);
        let address = server.address();
        let channel = way.open(&address);
        block_on(channel.call(ECHO, b"")).unwrap();
        let calls = begin(&channel);
        server.wait_for("held");
        server.kill();
        let server = Process::start(way, &address, Role::Answers);
        check(way, calls.join().unwrap());
        drop(server);
    }
}

#[test]
fn calls_wait_for_a_server_that_starts_later() {
    let port = free_port();
    let channel = Way::Shm.open(&port);
    let waiting = channel.clone();
    let call = std::thread::spawn(move || block_on(waiting.call(ECHO, b"early")));
    let ready = std::thread::spawn(move || block_on(channel.ready()));
    // Time for a failed attempt. On a slow machine the server may start before it, and the test
    // still passes.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let _server = Server::start(Way::Shm, &port, Role::Answers);
    assert_eq!(call.join().unwrap().unwrap().data(), b"early");
    ready.join().unwrap().unwrap();
}
