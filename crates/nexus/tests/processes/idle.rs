//! An idle server costs next to nothing and wakes up when it is needed (design §10).

use std::time::{Duration, Instant};

use dunlin_nexus::Nexus;
use dunlin_transport::auto::Auto;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;

use super::child::{Named, Server};
use super::{BACKGROUND, REVERSE, endpoint, exchange};

fn idle<T: Named>() {
    let server = Server::start::<T>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let sessions: Vec<_> = (0..100)
        .map(|_| rpc.connect(server.address).unwrap())
        .collect();
    for session in &sessions {
        rpc.wait_connected(*session).unwrap();
        exchange(&mut rpc, *session, REVERSE);
    }
    // What was used is held for a second; then there is nothing left to do.
    rpc.run_for(Duration::from_millis(1_500));
    let span = Duration::from_secs(2);
    let before = server.cpu();
    rpc.run_for(span);
    let used = server.cpu() - before;
    println!("{} of an idle server: {used:?} in {span:?}", T::NAME);
    assert!(used < span / 100, "{used:?} in {span:?}");
    let counters = *rpc.counters();
    let start = Instant::now();
    exchange(&mut rpc, sessions[50], REVERSE);
    println!("{} first RPC after that: {:?}", T::NAME, start.elapsed());
    assert!(
        start.elapsed() < Duration::from_millis(20),
        "{:?}",
        start.elapsed()
    );
    let again = rpc.counters().retransmissions - counters.retransmissions;
    assert_eq!(again, 0, "idling caused a retransmission");
    // Workers and a sleeping endpoint find each other.
    for _ in 0..20 {
        rpc.run_for(Duration::from_millis(1));
        exchange(&mut rpc, sessions[0], BACKGROUND);
    }
}

#[test]
fn an_idle_server_uses_less_than_a_hundredth_of_a_core_over_udp() {
    idle::<Udp>();
}

#[test]
fn an_idle_server_uses_less_than_a_hundredth_of_a_core_over_shared_memory() {
    idle::<Shm>();
}

#[test]
fn an_idle_server_uses_less_than_a_hundredth_of_a_core_over_both() {
    idle::<Auto>();
}

/// RPCs that come just when the server, or the client itself, is about to block.
fn edge<T: Named>() {
    let server = Server::start::<T>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
    let start = Instant::now();
    let (mut slow, mut count) = (Vec::new(), 0_u64);
    while start.elapsed() < Duration::from_secs(10) {
        count += 1;
        let micros = 30 + count.wrapping_mul(2_654_435_761) % 90;
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        let before = rpc.counters().retransmissions;
        let issued = Instant::now();
        exchange(&mut rpc, session, REVERSE);
        let again = rpc.counters().retransmissions - before;
        if again > 0 || issued.elapsed() > Duration::from_millis(10) {
            slow.push((micros, issued.elapsed(), again));
        }
    }
    println!("{}: {count} RPCs, {} slow: {:?}", T::NAME, slow.len(), &slow[..slow.len().min(20)]);
}

#[test]
fn edge_shm() {
    edge::<Shm>();
}
#[test]
fn edge_auto() {
    edge::<Auto>();
}
#[test]
fn edge_udp() {
    edge::<Udp>();
}
