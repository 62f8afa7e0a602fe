//! Processes that are killed or stopped (design §6).

use std::time::{Duration, Instant};

use dunlin_core::{CloseReason, SessionEvent};
use dunlin_nexus::Nexus;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;

use super::child::{Named, Server};
use super::{
    App, NEVER, REVERSE, ended_by_failure, endpoint, exchange, finish, issue, run_within, serve_all,
};

/// The time within which a failed peer must be found: the configured second, and half a second
/// because a busy machine may delay our threads. `control` tests the detector itself to the
/// nanosecond.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// The longest time for which another test may keep many descriptors open.
const RETURN: Duration = Duration::from_secs(60);

fn killed_server<T: Named>() {
    let mut server = Server::start::<T>(0);
    let address = server.address;
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let mut session = rpc.connect_blocking(address).unwrap();
    for _ in 0..3 {
        exchange(&mut rpc, session, REVERSE);
        issue(&mut rpc, session, NEVER, b"no answer");
        rpc.run_for(Duration::from_millis(10));
        server.signal(libc::SIGKILL);
        let killed = Instant::now();
        let done = finish(&mut rpc, TIMEOUT);
        assert!(ended_by_failure(done.result), "{:?}", done.result);
        assert!(killed.elapsed() < TIMEOUT);
        assert_eq!(rpc.session_count(), 0);
        // Another process at the same address.
        drop(server);
        server = Server::start::<T>(address.port());
        session = rpc.connect_blocking(address).unwrap();
    }
    exchange(&mut rpc, session, REVERSE);
}

#[test]
fn a_killed_server_fails_its_calls_in_time_over_udp() {
    killed_server::<Udp>();
}

#[test]
fn a_killed_server_fails_its_calls_in_time_over_shared_memory() {
    killed_server::<Shm>();
}

fn stopped_server<T: Named>() {
    let mut server = Server::start::<T>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
    server.stop();
    let stopped = Instant::now();
    issue(&mut rpc, session, REVERSE, b"still there?");
    let done = finish(&mut rpc, TIMEOUT);
    assert!(ended_by_failure(done.result), "{:?}", done.result);
    rpc.run_for(Duration::from_secs(3).saturating_sub(stopped.elapsed()));
    server.signal(libc::SIGCONT);
    // The stopped server finds its side of the old session reset, and serves new ones.
    assert_eq!(server.expect("closed"), format!("{:?}", CloseReason::Reset));
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
}

#[test]
fn a_stopped_server_fails_its_calls_in_time_and_is_reset_over_udp() {
    stopped_server::<Udp>();
}

#[test]
fn a_stopped_server_fails_its_calls_in_time_and_is_reset_over_shared_memory() {
    stopped_server::<Shm>();
}

/// A client ends in the middle of a call; the server frees its session and continues.
fn leaving_client<T: Named>() {
    let mut server = Server::start::<T>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut stays = endpoint::<T>(&nexus);
    let kept = stays.connect_blocking(server.address).unwrap();
    {
        let leaving = Nexus::bind("127.0.0.1:0").unwrap();
        let mut goes = endpoint::<T>(&leaving);
        let session = goes.connect_blocking(server.address).unwrap();
        issue(&mut goes, session, NEVER, b"never mind");
        goes.run_for(Duration::from_millis(5));
    }
    assert_eq!(server.expect("closed"), "Reset");
    exchange(&mut stays, kept, REVERSE);
    let closed = |event: &SessionEvent| matches!(event, SessionEvent::Closed { .. });
    assert!(
        !stays.app().events.iter().any(closed),
        "other sessions notice nothing"
    );
}

/// A client is killed in the middle of its calls, so the server gets no goodbye.
fn killed_client<T: Named>() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let other = Server::start::<T>(0);
    let kept = rpc.connect_blocking(other.address).unwrap();
    for _ in 0..5 {
        let client = Server::client::<T>(nexus.address());
        run_within(
            &mut rpc,
            Duration::from_secs(10),
            "the client's first request",
            |rpc| !rpc.app().held.is_empty(),
        );
        client.signal(libc::SIGKILL);
        let closed = run_within(&mut rpc, TIMEOUT, "noticing its end", |rpc| {
            rpc.session_count() == 1
        });
        assert!(closed < TIMEOUT);
        rpc.app_mut().held.clear();
        exchange(&mut rpc, kept, REVERSE);
    }
    rpc.run_for(Duration::from_millis(1_200));
    let (_, bufs) = rpc.pool_use();
    assert!(bufs <= 8, "{bufs} msgbufs leaked");
}

#[test]
fn a_killed_client_disturbs_no_other_over_udp() {
    killed_client::<Udp>();
}

#[test]
fn a_killed_client_disturbs_no_other_over_shared_memory() {
    killed_client::<Shm>();
}

/// The number of descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Kills clients at random moments under load; `DUNLIN_KILLS` sets their number.
fn killed_under_load<T: Named>() {
    let kills = std::env::var("DUNLIN_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let other = Server::start::<T>(0);
    let kept = rpc.connect_blocking(other.address).unwrap();
    let mut fds = None;
    for kill in 0_u64..kills {
        let client = Server::load::<T>(nexus.address());
        // This is some time between the middle of the handshake and the middle of the load.
        let micros = kill.wrapping_mul(2_654_435_761) % 20_000;
        rpc.run_for(Duration::from_micros(micros));
        client.signal(libc::SIGKILL);
        drop(client);
        run_within(&mut rpc, TIMEOUT, "noticing its end", |rpc| {
            rpc.session_count() == 1
        });
        exchange(&mut rpc, kept, REVERSE);
        // Other tests of this process use descriptors too, but return them; a leak would grow with
        // every kill.
        let first = *fds.get_or_insert_with(descriptors);
        run_within(&mut rpc, RETURN, "the return of descriptors", |_| {
            descriptors() < first + 100
        });
    }
    rpc.run_for(Duration::from_millis(1_200));
    let (_, bufs) = rpc.pool_use();
    assert!(bufs <= 8, "{bufs} msgbufs leaked");
}

#[test]
fn clients_killed_under_load_leave_nothing_over_udp() {
    killed_under_load::<Udp>();
}

#[test]
fn clients_killed_under_load_leave_nothing_over_shared_memory() {
    killed_under_load::<Shm>();
}

/// An endpoint has places for 4 peers. The places of clients that disconnect, and are then killed,
/// become free again.
#[test]
fn places_of_killed_clients_are_used_again() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = nexus
        .endpoint_builder::<Shm>()
        .transport(|options| options.max_peers = 4)
        .build(App::default())
        .unwrap();
    serve_all(&mut rpc);
    for visit in 0..12 {
        let mut visitor = Server::visitor::<Shm>(nexus.address());
        run_within(&mut rpc, Duration::from_secs(10), "a visit", |rpc| {
            rpc.app().events.len() == 2 * (visit + 1)
        });
        rpc.run_for(Duration::from_millis(40));
        visitor.expect("done");
    }
}

#[test]
fn a_client_that_goes_leaves_the_others_alone() {
    leaving_client::<Udp>();
    leaving_client::<Shm>();
}

#[test]
fn a_process_that_was_stopped_for_a_moment_keeps_its_sessions() {
    let server = Server::start::<Udp>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    for _ in 0..3 {
        server.stop();
        rpc.run_for(Duration::from_millis(300));
        server.signal(libc::SIGCONT);
        rpc.run_for(Duration::from_millis(300));
        exchange(&mut rpc, session, REVERSE);
    }
}
