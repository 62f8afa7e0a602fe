//! The health of servers: threads that are stuck and come back, drains, and services by name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dunlin::service::{Context, Postcard};
use dunlin::{
    Auto, Cx, HealthError, HealthState, Nexus, Running, ServerBuilder, ask_health, service,
};

use crate::server::service::{Book, WorkClient, Worker};
use crate::server::{PATIENCE, WAYS, Way, block_on, until};

const ANY: &str = "127.0.0.1:0";

#[service(codec = Postcard, base = 200)]
trait Trap {
    /// Keeps the thread until the test opens the trap.
    #[method(1)]
    fn enter(nothing: ()) -> ();
}

#[derive(Clone, Default)]
struct Trapper {
    is_open: Arc<AtomicBool>,
    entered: Arc<AtomicUsize>,
}

impl Trapper {
    fn wait(&self) {
        self.entered.fetch_add(1, Ordering::Relaxed);
        until(|| self.is_open.load(Ordering::Relaxed));
    }
}

impl Trap for Trapper {
    async fn enter(&self, (): (), _: Context<'_>) {
        self.wait();
    }
}

impl TrapPoll for Trapper {
    fn enter(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {
        self.wait();
    }
}

/// Asks as a probe does: from a nexus that has no session with the server.
fn ask(way: Way, server: &Running, service: &str) -> Result<HealthState, HealthError> {
    let nexus: Nexus = way.nexus().hidden(true).bind(ANY).unwrap();
    ask_health(
        nexus.endpoint_builder::<Auto>(),
        server.address(),
        service,
        PATIENCE,
    )
}

fn is_serving(way: Way, server: &Running) -> bool {
    ask(way, server, "").unwrap() == HealthState::Serving
}

fn reason(way: Way, server: &Running) -> String {
    match ask(way, server, "").unwrap() {
        HealthState::NotServing(reason) => reason,
        HealthState::Serving => panic!("the server serves"),
    }
}

/// Two servers of two threads each: one with futures, one with the poll API.
fn with_traps(way: Way, trapper: &Trapper) -> [ServerBuilder; 2] {
    let (futures, polls) = (trapper.clone(), trapper.clone());
    [
        way.server()
            .threads(2)
            .service(move |_| TrapServer(futures.clone())),
        way.server()
            .threads(2)
            .poll(move |_| polls.clone(), TrapPoll::register),
    ]
}

#[test]
fn a_stuck_thread_makes_the_server_unhealthy_until_it_goes_on() {
    for way in WAYS {
        // A client that names no thread connects to the first one.
        for stuck in [0, 1] {
            let trapper = Trapper::default();
            for server in with_traps(way, &trapper) {
                let server = server.start(ANY).unwrap();
                assert!(is_serving(way, &server));
                let entered = trapper.entered.swap(0, Ordering::Relaxed);
                assert_eq!(entered, 0);
                let trap = TrapClient::over(way.open(server.address()));
                // The time is taken before the call, so that no pause of this thread makes the span
                // too short.
                let begin = Instant::now();
                let trapped = std::thread::spawn(move || block_on(trap.enter(&()).endpoint(stuck)));
                until(|| trapper.entered.load(Ordering::Relaxed) == 1);
                until(|| !is_serving(way, &server));
                let took = begin.elapsed();
                assert!(took > Duration::from_millis(800), "{way:?}: {took:?}");
                let reason = reason(way, &server);
                assert!(reason.contains(&format!("thread {stuck}")), "{reason}");
                trapper.is_open.store(true, Ordering::Relaxed);
                trapped.join().unwrap().unwrap();
                until(|| is_serving(way, &server));
                trapper.is_open.store(false, Ordering::Relaxed);
                trapper.entered.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn a_channel_reaches_a_server_whose_first_thread_is_stuck() {
    for way in WAYS {
        let trapper = Trapper::default();
        for server in with_traps(way, &trapper) {
            let server = server.start(ANY).unwrap();
            let trap = TrapClient::over(way.open(server.address()));
            let trapped = std::thread::spawn(move || block_on(trap.enter(&()).endpoint(0)));
            until(|| trapper.entered.load(Ordering::Relaxed) == 1);
            // A hub of its own, which has no session with the server.
            let channel = way.open(server.address());
            block_on(channel.ready()).unwrap();
            trapper.is_open.store(true, Ordering::Relaxed);
            block_on(TrapClient::over(channel).enter(&())).unwrap();
            trapped.join().unwrap().unwrap();
            trapper.is_open.store(false, Ordering::Relaxed);
            trapper.entered.store(0, Ordering::Relaxed);
        }
    }
}

#[test]
fn threads_without_requests_are_healthy() {
    let trapper = Trapper::default();
    let servers = with_traps(Way::Shm, &trapper).map(|server| {
        // Longer than the system may suspend a thread, and shorter than the test.
        let server = server.health_stuck(Duration::from_secs(4));
        server.start(ANY).unwrap()
    });
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(6) {
        assert!(servers.iter().all(|server| is_serving(Way::Shm, server)));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_says_that_it_leaves_while_it_still_serves_and_while_it_drains() {
    for way in WAYS {
        let delay = Duration::from_secs(2);
        let server = way.server().drain_delay(delay);
        let server = server.service(Worker::server(&Arc::default()));
        let server = server.start(ANY).unwrap();
        let address = server.address();
        let work = WorkClient::over(way.open(address));
        assert_eq!(block_on(work.run(&(0, 0))).unwrap(), 0);
        let slow = {
            let work = work.clone();
            std::thread::spawn(move || block_on(work.run(&(1, 3000))))
        };
        let begin = Instant::now();
        let drains = std::thread::spawn(move || server.drain());
        let (mut asked, mut served) = (0, 0);
        while !drains.is_finished() {
            let nexus = way.nexus().hidden(true).bind(ANY).unwrap();
            let patience = Duration::from_secs(1);
            match ask_health(nexus.endpoint_builder::<Auto>(), address, "", patience) {
                Ok(HealthState::NotServing(reason)) => {
                    assert_eq!(reason, "the server shuts down");
                    asked += 1;
                }
                // This question may have come before the drain.
                Ok(HealthState::Serving) => {
                    assert!(begin.elapsed() < PATIENCE, "{way:?}: {:?}", begin.elapsed());
                }
                // The server has just ended, or a busy machine made it late.
                Err(_) => {}
            }
            if begin.elapsed() < delay / 2 {
                let value = block_on(work.run(&(2 + served, 0)));
                assert_eq!(value.unwrap(), 2 + served);
                served += 1;
            }
        }
        assert_eq!(slow.join().unwrap().unwrap(), 1);
        drains.join().unwrap();
        assert!(asked > 0 && served > 0, "{asked} {served}");
    }
}

#[test]
fn services_have_health_by_name() {
    let way = Way::Shm;
    let trapper = Trapper::default();
    let server = way
        .server()
        .service(Worker::server(&Arc::<Book>::default()));
    let server = server.service(move |_| TrapServer(trapper.clone()));
    let server = server.start(ANY).unwrap();
    for name in ["", "Work", "Trap"] {
        let state = ask(way, &server, name).unwrap();
        assert_eq!(state, HealthState::Serving, "{name}");
    }
    for name in ["work", "Wor", "\u{1F980}"] {
        let error = ask(way, &server, name).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, HealthError::NoSuchService(_)), "{said}");
        assert!(said.ends_with("its services are Trap, Work"), "{said}");
    }
    let long = ask(way, &server, &"x".repeat(256));
    assert!(matches!(long, Err(HealthError::LongName)));
}

#[test]
fn a_server_without_health_and_one_that_is_gone_are_told_apart() {
    for way in WAYS {
        let server = || way.server().service(Worker::server(&Arc::default()));
        let mute = server().health(false).start(ANY).unwrap();
        let error = ask(way, &mute, "").unwrap_err();
        assert!(matches!(error, HealthError::NoHealth), "{error}");
        let address = mute.address();
        drop(mute);
        let nexus = way.nexus().bind(ANY).unwrap();
        let patience = Duration::from_millis(300);
        let gone = ask_health(nexus.endpoint_builder::<Auto>(), address, "", patience);
        let error = gone.unwrap_err();
        assert!(matches!(error, HealthError::Unreachable(_)), "{error}");
    }
}

/// A channel finds all threads of a server, and never the endpoint for health, which would refuse
/// its calls.
#[test]
fn channels_do_not_choose_the_endpoint_of_health() {
    let server = Way::Shm.server().threads(2);
    let server = server.service(Worker::server(&Arc::default()));
    let server = server.start(ANY).unwrap();
    let work = WorkClient::over(Way::Shm.open(server.address()));
    let mut seen = [false; 2];
    until(|| {
        let burst = (0..200).map(|_| work.thread(&()));
        for index in block_on(futures::future::join_all(burst)) {
            seen[index.unwrap()] = true;
        }
        seen == [true; 2]
    });
    for _ in 0..20 {
        let burst = (0..200).map(|_| work.thread(&()));
        let values = block_on(futures::future::join_all(burst));
        assert!(values.into_iter().all(|value| value.is_ok()));
    }
}
