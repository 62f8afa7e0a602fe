//! Handlers that take longer than the failure timeout: their process is alive, and its control
//! connection reports that (rule C11).

use std::time::{Duration, Instant};

use dunlin_core::{CallOptions, RpcError, Tag};
use dunlin_nexus::Nexus;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;
use dunlin_wire::Ran;

use super::child::{Named, Server};
use super::{REVERSE, SLOW, endpoint, exchange, finish, issue};

/// The longest of these handlers takes three seconds; the rest is for a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A handler that takes the requested milliseconds, called by a process whose failure timeout is
/// `timeout`.
fn slow_handler<T: Named>(says: &str, timeout: Duration) {
    let server = Server::start::<T>(0);
    let nexus = Nexus::builder()
        .failure_timeout(timeout)
        .bind("127.0.0.1:0")
        .unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    issue(&mut rpc, session, SLOW, says.as_bytes());
    let done = finish(&mut rpc, LIMIT);
    assert_eq!(done.result, Ok(()));
    assert_eq!(done.response.data(), [7; 2]);
    assert!(rpc.counters().inquiries > 0, "no inquiry was sent");
    exchange(&mut rpc, session, REVERSE);
}

#[test]
fn a_handler_of_more_than_a_second_does_not_fail_its_session_over_udp() {
    slow_handler::<Udp>("1600 2", Duration::from_secs(1));
}

#[test]
fn a_handler_of_more_than_a_second_does_not_fail_its_session_over_shared_memory() {
    slow_handler::<Shm>("1600 2", Duration::from_secs(1));
}

#[test]
fn a_handler_of_many_timeouts_does_not_fail_its_session_over_udp() {
    slow_handler::<Udp>("3000 2", Duration::from_millis(500));
}

#[test]
fn a_handler_of_many_timeouts_does_not_fail_its_session_over_shared_memory() {
    slow_handler::<Shm>("3000 2", Duration::from_millis(500));
}

#[test]
fn a_deadline_ends_the_call_of_a_handler_that_hangs() {
    let server = Server::start::<Udp>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    let request = rpc.cx().copy(b"600000 2").unwrap();
    let response = rpc.buf(64).unwrap();
    let deadline = Some(Duration::from_millis(2_500).into());
    let options = CallOptions { deadline };
    let begun = Instant::now();
    rpc.call_with(session, SLOW, request, response, Tag(0), options)
        .unwrap();
    let done = finish(&mut rpc, Duration::from_secs(4));
    assert_eq!(done.result, Err(RpcError::DeadlinePassed(Ran::Unknown)));
    assert!(begun.elapsed() > Duration::from_millis(2_400));
    // The process is alive, so its session stays open.
    rpc.run_for(Duration::from_millis(1_500));
    assert_eq!(rpc.session_count(), 1);
}
