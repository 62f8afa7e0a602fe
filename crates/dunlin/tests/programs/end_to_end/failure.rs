//! A server process that is killed, restarted under its address, or stopped for a while.

use std::time::{Duration, Instant};

use dunlin::{Auto, Shm, Udp};

use crate::end_to_end::Named;
use crate::end_to_end::client::{Client, FAILURE, MARGIN, assert_peer_failed};
use crate::end_to_end::process::Server;
use crate::end_to_end::server::HOLD;

/// Requests in flight or in the backlog when the server dies: more than the window holds.
const CALLS: usize = 40;

/// How long a server is stopped: its clients declare it dead long before this time ends.
const STOPPED: Duration = Duration::from_secs(3);

fn killed<T: Named>() {
    let mut server = Server::start::<T>("127.0.0.1:0");
    let address = server.address;
    let mut client = Client::<T>::new();
    for round in 0..3 {
        let session = client.connect(address);
        client.exchange(session);
        let (_, bufs) = client.rpc.pool_use();
        for call in 0..CALLS {
            match call % 2 {
                0 => client.call(session, HOLD, b"no answer", 0),
                _ => client.mark(session),
            }
        }
        client.rpc.run_for(Duration::from_millis(5 * round));
        let answered = client.rpc.app().done.len();
        client.rpc.app_mut().done.clear();
        let killed = Instant::now();
        drop(server);
        let ended = client.finish(CALLS - answered, FAILURE + MARGIN);
        println!("{}: ended {:?} after the kill", T::NAME, killed.elapsed());
        // An answer may have been on its way when the server died.
        let failed: Vec<_> = ended
            .into_iter()
            .filter(|done| done.result.is_err())
            .collect();
        assert!(failed.len() >= CALLS / 2);
        assert_peer_failed(&failed);
        drop(failed);
        assert_eq!(client.rpc.session_count(), 0);
        client.rpc.run_for(Duration::from_millis(5));
        assert_eq!(client.rpc.pool_use().1, bufs, "msgbufs stayed behind");
        // Another process at the same address.
        server = Server::start::<T>(&address.to_string());
    }
    let session = client.connect(address);
    client.exchange(session);
    assert_eq!(client.stats(session).marked, 1, "this server has run one");
}

#[test]
fn a_killed_server_fails_its_calls_and_is_found_again_over_shared_memory() {
    killed::<Shm>();
}

#[test]
fn a_killed_server_fails_its_calls_and_is_found_again_over_udp() {
    killed::<Udp>();
}

#[test]
fn a_killed_server_fails_its_calls_and_is_found_again_over_auto() {
    killed::<Auto>();
}

fn stopped<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let mut client = Client::<T>::new();
    let session = client.connect(server.address);
    for _ in 0..100 {
        client.exchange(session);
    }
    // Some calls are in the server or on their way when it stops; the others are sent after that.
    (0..CALLS / 2).for_each(|_| client.mark(session));
    client.rpc.run_once();
    server.stop();
    let begin = Instant::now();
    (0..CALLS / 2).for_each(|_| client.mark(session));
    let ended = client.finish(CALLS, FAILURE + MARGIN);
    let failed: Vec<_> = ended
        .into_iter()
        .filter(|done| done.result.is_err())
        .collect();
    assert!(failed.len() >= CALLS / 2);
    let unsent = assert_peer_failed(&failed);
    assert!(
        unsent > 0,
        "a session has fewer slots than there were calls"
    );
    client.rpc.run_for(STOPPED.saturating_sub(begin.elapsed()));
    assert_eq!(client.rpc.session_count(), 0);
    server.signal(libc::SIGCONT);
    assert_eq!(server.expect("closed"), "Reset", "its side of the session");
    let session = client.connect(server.address);
    for _ in 0..100 {
        client.exchange(session);
    }
    let stats = client.stats_at_rest(session);
    assert_eq!(stats.twice, 0, "a request ran twice: {stats:?}");
    // Each exchange counts too.
    let marked = usize::try_from(stats.marked).unwrap();
    assert!(
        marked + unsent <= CALLS + 200,
        "one ran that had not left: {stats:?}"
    );
    assert_eq!(stats.sessions, 1);
}

#[test]
fn a_stopped_server_is_given_up_and_runs_nothing_twice_over_shared_memory() {
    stopped::<Shm>();
}

#[test]
fn a_stopped_server_is_given_up_and_runs_nothing_twice_over_udp() {
    stopped::<Udp>();
}

#[test]
fn a_stopped_server_is_given_up_and_runs_nothing_twice_over_auto() {
    stopped::<Auto>();
}
