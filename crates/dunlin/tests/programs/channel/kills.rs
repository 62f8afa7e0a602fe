//! One of three servers is killed, or stopped and continued, under load. Calls that are idempotent
//! or were not transmitted end with their values, the others with an error that states that they
//! may have run. All of them end soon, and the channel uses the server again after its return, by
//! the number of calls that it gets. A test has one round. If the variable `DUNLIN_KILLS` sets
//! another number, the bounds are those for a machine without other work.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin::channel::State;
use dunlin::{Channel, Hub, Nexus, Ran};
use futures::future::join_all;

use crate::channel::process::Process;
use crate::channel::server::Role;
use crate::channel::{ECHO, PATIENCE, WAYS, WHICH, Way, block_on, free_port, until};

const ROUNDS: &str = "DUNLIN_KILLS";

/// Calls in flight at once.
const TASKS: usize = 64;

/// Within this time after its return, a server is used as before.
const BACK: Duration = Duration::from_secs(2);

/// The end of the process of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Killed,
    Stopped,
}

impl Fate {
    /// No call takes longer, whether it waits for the server's answer or is repeated.
    const fn bound(self) -> Duration {
        match self {
            Self::Killed => Duration::from_millis(100),
            Self::Stopped => Duration::from_millis(1500),
        }
    }
}

/// Tasks that call without a pause; every second call is idempotent.
struct Load {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicU64>,
    /// Calls that ended with an error, because they may have run.
    unknown: Arc<AtomicU64>,
    /// The time of the longest call, in nanoseconds.
    longest: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Load {
    fn start(channel: Channel) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let counts = [(); 3].map(|()| Arc::<AtomicU64>::default());
        let (stopped, [ended, unknown, longest]) = (Arc::clone(&stop), counts.clone());
        let thread = std::thread::spawn(move || {
            let number = Cell::new(0_u64);
            let failures = RefCell::new(Vec::new());
            let task = || async {
                while !stopped.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let own = number.replace(number.get() + 1);
                    let idempotent = own.is_multiple_of(2);
                    let call = channel.call(ECHO, &own.to_le_bytes());
                    match call.idempotent(idempotent).await {
                        Ok(answer) => assert_eq!(answer.data(), own.to_le_bytes()),
                        Err(error) if !idempotent && error.ran() == Ran::Unknown => {
                            unknown.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => failures.borrow_mut().push((own, error)),
                    }
                    longest.fetch_max(nanos(begin.elapsed()), Ordering::Relaxed);
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            };
            block_on(join_all((0..TASKS).map(|_| task())));
            assert!(failures.borrow().is_empty(), "{failures:?}");
        });
        let [ended, unknown, longest] = counts;
        Self {
            stop,
            ended,
            unknown,
            longest,
            thread,
        }
    }

    /// Calls a second, during this span.
    fn rate(&self, span: Duration) -> f64 {
        let (begin, before) = (Instant::now(), self.ended.load(Ordering::Relaxed));
        std::thread::sleep(span);
        let ended = self.ended.load(Ordering::Relaxed) - before;
        f64::from(u32::try_from(ended).unwrap()) / begin.elapsed().as_secs_f64()
    }

    /// Waits until this many more calls have ended.
    fn wait_for_more(&self, calls: u64) {
        let before = self.ended.load(Ordering::Relaxed);
        until(|| self.ended.load(Ordering::Relaxed) >= before + calls);
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

fn nanos(span: Duration) -> u64 {
    span.as_nanos().try_into().unwrap()
}

fn is_ready(channel: &Channel, address: &str) -> bool {
    let addresses = channel.state().addresses;
    let mut addresses = addresses.iter();
    addresses.any(|it| it.address == address && it.state == State::Ready)
}

/// A server that has returned gets its share of the calls again: of 600, at least a quarter of an
/// equal share, because an outstanding call to a slow server counts as up to four.
fn check_share(channel: &Channel, server: &str) {
    let call = || async { channel.call(WHICH, b"").idempotent(true).await.unwrap() };
    let answers = block_on(join_all((0..600).map(|_| call())));
    let own = answers.iter().filter(|it| it.data() == server.as_bytes());
    let own = own.count();
    assert!(own >= 50, "the server got {own} of 600 calls");
}

/// In each round, kills or stops another one of three servers, as `fate` demands.
fn drill(way: Way, fate: Fate) {
    let rounds = std::env::var(ROUNDS).ok();
    let is_strict = rounds.is_some();
    let rounds = rounds.map_or(1, |rounds| rounds.parse().unwrap());
    let addresses = [0, 1, 2].map(|_| free_port());
    let start = |address: &String| Process::start(way, address, Role::Answers);
    let mut servers = addresses.each_ref().map(start);
    servers.iter().for_each(|server| drop(server.address()));
    let nexus = Nexus::builder().without_unix(way == Way::Udp);
    let hub = Hub::builder().listen("127.0.0.1:0").nexus(nexus);
    let channel = addresses.iter().fold(
        hub.start().unwrap().channel().patience(PATIENCE),
        |channel, address| channel.address(address.as_str()),
    );
    let channel = channel.open().unwrap();
    let load = Load::start(channel.clone());
    let (mut longest_call, mut longest_return) = (Duration::ZERO, Duration::ZERO);
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let at = round % 3;
        until(|| addresses.iter().all(|address| is_ready(&channel, address)));
        load.wait_for_more(100);
        let before = is_strict.then(|| load.rate(Duration::from_secs(1)));
        load.longest.store(0, Ordering::Relaxed);
        match fate {
            Fate::Killed => servers[at].kill(),
            Fate::Stopped => servers[at].signal("STOP"),
        }
        until(|| !is_ready(&channel, &addresses[at]));
        load.wait_for_more(100);
        let returned = Instant::now();
        match fate {
            Fate::Killed => {
                servers[at] = start(&addresses[at]);
                servers[at].address();
            }
            Fate::Stopped => servers[at].signal("CONT"),
        }
        until(|| is_ready(&channel, &addresses[at]));
        longest_return = longest_return.max(returned.elapsed());
        check_share(&channel, &addresses[at]);
        let longest = load.longest.load(Ordering::Relaxed);
        longest_call = longest_call.max(Duration::from_nanos(longest));
        if let Some(before) = before {
            std::thread::sleep(BACK.saturating_sub(returned.elapsed()));
            let after = load.rate(Duration::from_secs(1));
            println!("{way:?} {fate:?}: {before:.0} calls/s before, {after:.0} after");
            ratios.push(after / before);
        }
    }
    println!(
        "{way:?} {fate:?}: the longest call took {longest_call:?}; ready {longest_return:?} after \
         the return ({rounds} rounds; {} calls may have run)",
        load.unknown.load(Ordering::Relaxed)
    );
    load.end();
    // Each ratio is of neighbouring seconds, because the machine's own speed changes over time.
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2);
    assert!(median.is_none_or(|ratio| *ratio >= 0.9), "{ratios:?}");
    assert!(longest_call <= if is_strict { fate.bound() } else { PATIENCE });
    assert!(longest_return <= if is_strict { BACK } else { PATIENCE });
}

#[test]
fn a_server_that_is_killed_costs_few_calls_and_comes_back() {
    for way in WAYS {
        drill(way, Fate::Killed);
    }
}

#[test]
fn a_server_that_is_stopped_costs_few_calls_and_comes_back() {
    for way in WAYS {
        drill(way, Fate::Stopped);
    }
}
