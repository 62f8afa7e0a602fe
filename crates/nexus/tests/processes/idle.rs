//! An idle server uses hardly any CPU time and wakes up when needed (design §10).

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
    // The server holds responses for a second; then it has nothing left to do.
    rpc.run_for(Duration::from_millis(1_500));
    let span = Duration::from_secs(2);
    // The same work takes several times as long on a machine that other tests keep busy. One calm
    // span in three is enough, because a server that is not idle has no calm span.
    let is_idle = (0..3).any(|_| {
        let before = server.cpu();
        rpc.run_for(span);
        let used = server.cpu() - before;
        println!("{} of an idle server: {used:?} in {span:?}", T::NAME);
        used < span / 100
    });
    assert!(
        is_idle,
        "the server used more than a hundredth of a core in each span"
    );
    let mut first: Vec<_> = (0..5)
        .map(|_| {
            rpc.run_for(Duration::from_millis(100));
            let before = rpc.counters().retransmissions;
            let start = Instant::now();
            exchange(&mut rpc, sessions[50], REVERSE);
            (rpc.counters().retransmissions - before, start.elapsed())
        })
        .collect();
    // The machine may be busy now and then, but not most of the time.
    first.sort();
    let (again, took) = first[2];
    println!("{} first RPC after silence: {took:?}", T::NAME);
    assert_eq!(again, 0, "idling causes retransmissions");
    assert!(took < Duration::from_millis(10), "{took:?}");
    // Workers and a sleeping endpoint wake each other.
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

/// Makes RPCs just when the server, or the client itself, is about to block. A lost wake-up causes
/// a retransmission, milliseconds later; a busy machine rarely causes one too.
fn edge<T: Named>() {
    let server = Server::start::<T>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
    let (start, mut count, mut slow) = (Instant::now(), 0_u32, 0);
    while start.elapsed() < Duration::from_secs(1) {
        count += 1;
        let pause = Instant::now();
        let micros = u64::from(30 + count.wrapping_mul(2_654_435_761) % 90);
        while pause.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        let issued = Instant::now();
        exchange(&mut rpc, session, REVERSE);
        slow += u32::from(issued.elapsed() > Duration::from_millis(5));
    }
    println!("{}: {slow} of {count} RPCs were slow", T::NAME);
    assert!(slow <= 3 + count / 20, "{slow} of {count}");
}

#[test]
fn no_rpc_waits_for_an_endpoint_that_was_about_to_block() {
    edge::<Shm>();
    edge::<Udp>();
    edge::<Auto>();
}
