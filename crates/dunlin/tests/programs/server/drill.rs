//! Drains under load, again and again, as in rolling upgrades: three servers drain in turn, or the
//! only server drains and comes back within a second. A test has four rounds. The variable
//! `DUNLIN_DRAINS` sets their number, and then no drain may take more than 100 ms longer than the
//! longest handler. The same drills in the simulator, whose clock no other work delays, always have
//! this bound (`crates/sim/src/channel/drill.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use dunlin::Rng;
use dunlin_testkit::address::own_host;
use dunlin_testkit::network::Network;

use crate::server::drain::{Load, is_ready, start, wait_for_more};
use crate::server::service::Book;
use crate::server::{Way, until};

/// Calls in flight at once.
const CALLS: u64 = 200;

/// The longest handler, in milliseconds.
const LONGEST: u64 = 50;

/// The default patience of a channel.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest time for which the only server is away.
const AWAY: Duration = Duration::from_secs(1);

const ROUNDS: &str = "DUNLIN_DRAINS";

/// The longest drain in a test, on a machine that does other work.
const ANYWHERE: Duration = Duration::from_secs(10);

/// The longest drain in the drill.
const STRICT: Duration = Duration::from_millis(LONGEST + 100);

fn rounds() -> (usize, Duration) {
    match std::env::var(ROUNDS) {
        Ok(rounds) => (rounds.parse().unwrap(), STRICT),
        Err(_) => (4, ANYWHERE),
    }
}

/// Drains this many servers in turn, and starts each again after a pause.
fn drill(way: Way, servers: usize, away: Duration) {
    let (rounds, most) = rounds();
    let book = Arc::<Book>::default();
    let at = own_host();
    let mut running: Vec<_> = (0..servers).map(|_| Some(start(way, &at, &book))).collect();
    let addresses: Vec<String> = running
        .iter()
        .map(|server| server.as_ref().unwrap().address().to_string())
        .collect();
    let channel = addresses.iter().fold(way.channel(), |channel, address| {
        channel.address(address.as_str())
    });
    let channel = channel.patience(PATIENCE).open().unwrap();
    let load = Load::start(channel.clone(), CALLS, LONGEST);
    let mut rng = Rng::new(0xD2A1);
    let mut took = Vec::new();
    for round in 0..rounds {
        let at = round % servers;
        until(|| is_ready(&channel, &addresses[at]));
        // If a server were up only for milliseconds, calls could wait longer than their patience.
        wait_for_more(&book, CALLS);
        std::thread::sleep(Duration::from_millis(rng.below(100).into()));
        let begin = Instant::now();
        let drained = running[at].take().unwrap().drain();
        took.push(begin.elapsed());
        assert_eq!(drained.cut_off, 0);
        std::thread::sleep(away.mul_f64(f64::from(rng.below(1000)) / 1000.0));
        running[at] = Some(start(way, &addresses[at], &book));
    }
    let calls = load.check(&book);
    took.sort_unstable();
    let [median, longest] = [took[took.len() / 2], took[took.len() - 1]];
    let late = took.iter().filter(|took| **took > most).count();
    println!(
        "{way:?}, {servers} servers: {rounds} drains of {median:?} (median) to {longest:?}, {late} \
         too long; {calls} calls"
    );
    assert_eq!(late, 0, "drains longer than {most:?}");
}

/// Runs `task` in a network of its own, which loses 1 % of UDP packets at random.
fn with_loss(task: impl FnOnce() + Send) {
    let Some(network) = Network::new() else {
        return;
    };
    // The receiver drops them: if the sender did, its system call would return an error.
    for rule in [
        "add table inet lossy",
        "add chain inet lossy in { type filter hook input priority 0 ; }",
        "add rule inet lossy in meta l4proto udp numgen random mod 100 == 0 drop",
    ] {
        if let Err(why) = network.left.execute(&format!("nft {rule}")) {
            return dunlin_testkit::skip(&why);
        }
    }
    network.left.run(task);
}

#[test]
fn three_servers_drain_in_turn_over_shared_memory() {
    drill(Way::Shm, 3, Duration::ZERO);
}

#[test]
fn three_servers_drain_in_turn_over_udp_with_loss() {
    with_loss(|| drill(Way::Udp, 3, Duration::ZERO));
}

#[test]
fn the_only_server_drains_and_comes_back_over_shared_memory() {
    drill(Way::Shm, 1, AWAY);
}

#[test]
fn the_only_server_drains_and_comes_back_over_udp_with_loss() {
    with_loss(|| drill(Way::Udp, 1, AWAY));
}
