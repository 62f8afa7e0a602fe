//! The time of one publication of an endpoint's counters. The test prints it, so it is run by hand.

use std::time::Instant;

use dunlin_transport::shm::Shm;

use super::*;

/// Publications that are timed together, and the number of such timings.
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
#[ignore = "it measures, and asserts nothing that noise could not break"]
fn what_a_publication_costs() {
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
