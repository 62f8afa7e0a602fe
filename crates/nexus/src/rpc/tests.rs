//! Endpoints that cannot be made, and the cost of publishing an endpoint's counters. The test of
//! that cost prints it, so it is run by hand.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dunlin_control::SessionKey;
use dunlin_core::{CloseReason, EndpointNum};
use dunlin_transport::shm::Shm;
use dunlin_wire::{SessionNum, Token};

use crate::error::EndpointError;

use super::*;

/// Held while endpoints are made.
static ONE: Mutex<()> = Mutex::new(());

/// Process-wide numbers are never used twice, so a loop that tries to make an endpoint must not use
/// them up. The tests of this process that make endpoints hold [`ONE`].
#[test]
fn an_endpoint_that_cannot_be_made_takes_no_number() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let _taken: Rpc<Shm, ()> = nexus.endpoint_builder().index(1).build(()).unwrap();
    let number = || {
        let taken = EndpointNum::take().unwrap();
        (1..).find(|number| EndpointNum::chosen(*number) == taken)
    };
    let before = number().unwrap();
    for _ in 0..3 {
        let build = |index, bytes| -> Result<Rpc<Shm, ()>, _> {
            let builder = nexus.endpoint_builder().index(index);
            let builder = builder.config(|config| config.pool_bytes = bytes);
            builder.build(())
        };
        let index = build(1, 1 << 30).err();
        assert!(matches!(index, Some(EndpointError::Index(_))), "{index:?}");
        let memory = build(2, 1).err();
        assert!(
            matches!(memory, Some(EndpointError::Config(_))),
            "{memory:?}"
        );
    }
    assert_eq!(number(), Some(before + 1));
    let freed: Result<Rpc<Shm, ()>, _> = nexus.endpoint_builder().index(2).build(());
    assert_eq!(freed.err().map(|error| error.to_string()), None);
}

/// A flood of messages from the control thread.
#[test]
fn an_iteration_handles_a_few_messages_and_the_next_ones_handle_the_rest() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc: Rpc<Shm, ()> = nexus.endpoint_builder().index(7).build(()).unwrap();
    let key = SessionKey {
        endpoint: EndpointIndex(7),
        session: SessionNum(5),
        token: Token(5),
    };
    let all = 10 * MAX_EVENTS;
    for _ in 0..all {
        let reason = CloseReason::PeerFailed;
        rpc.events.send(Event::Closed { key, reason });
    }
    for turn in 1..=10 {
        rpc.iterate(|_| Nanos::ZERO);
        assert_eq!(rpc.events.len(), all - turn * MAX_EVENTS);
    }
}

/// The server still grants the old session, whose number the new one has.
#[test]
fn a_session_that_is_given_up_and_its_successor_do_not_mix() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let [mut client, mut server] = endpoint(0);
    let options = ConnectOptions {
        endpoint: Some(1),
        ..ConnectOptions::default()
    };
    let address = client.nexus().address();
    let old = client.connect_with(address, &options).unwrap();
    // Long enough for the request to reach the server's mailbox.
    let until = Instant::now() + Duration::from_millis(100);
    while Instant::now() < until {
        client.iterate(|_| Nanos::ZERO);
    }
    client.disconnect(old).unwrap();
    let new = client.connect_with(address, &options).unwrap();
    assert_eq!(old.number(), new.number());
    let mut both = || {
        server.iterate(|_| Nanos::ZERO);
        client.iterate(|_| Nanos::ZERO);
        (server.session_count(), client.session_info(new))
    };
    while !both().1.unwrap().open {}
    while both().0 != 1 {}
    for _ in 0..1000 {
        both().1.unwrap();
    }
    assert!(both().1.unwrap().open);
    assert_eq!(
        both().0,
        1,
        "the server has no session that no client wants"
    );
}

/// The number of publications that are timed together, and the number of such timings.
const TOGETHER: u32 = 200;
const RUNS: usize = 25;

/// An endpoint with this number of sessions, and the endpoint of their peers.
fn endpoint(sessions: usize) -> [Rpc<Shm, ()>; 2] {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let server = nexus.endpoint_builder().index(1).build(()).unwrap();
    let client = nexus.endpoint_builder().index(2).build(()).unwrap();
    let (mut server, mut client): (Rpc<Shm, ()>, Rpc<Shm, ()>) = (server, client);
    let options = ConnectOptions {
        endpoint: Some(1),
        ..ConnectOptions::default()
    };
    for _ in 0..sessions {
        let session = client.connect_with(nexus.address(), &options).unwrap();
        while !client.session_info(session).is_ok_and(|info| info.open) {
            client.iterate(|_| Nanos::ZERO);
            server.iterate(|_| Nanos::ZERO);
        }
    }
    [client, server]
}

/// `cargo test --release -p dunlin-nexus --lib -- --ignored --nocapture publication`
#[test]
#[ignore = "it measures, and noise could break any assertion"]
fn the_cost_of_a_publication_is_measured() {
    for sessions in [0, 1, 32, 1000] {
        let [mut client, _server] = endpoint(sessions);
        let mut runs: Vec<u128> = (0..RUNS)
            .map(|_| {
                let start = Instant::now();
                (0..TOGETHER).for_each(|_| client.publish());
                start.elapsed().as_nanos() / u128::from(TOGETHER)
            })
            .collect();
        runs.sort_unstable();
        let (median, least, most) = (runs[RUNS / 2], runs[0], runs[RUNS - 1]);
        println!("{sessions:5} sessions: {median} ns a publication ({least} to {most})");
    }
}
