//! Drains under load: channels leave a server that drains, and no call is lost or runs twice.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin::channel::State;
use dunlin::service::Context;
use dunlin::{Channel, Cx, Running, Server};
use dunlin_testkit::address::own_host;

use crate::server::service::{BasedPoll, Book, WorkClient, Worker};
use crate::server::{WAYS, Way, block_on, until};

/// Calls in flight at once.
const TASKS: u64 = 40;

/// The longest handler, in milliseconds.
const LONGEST: u64 = 20;

/// Every drain takes less time. The longest handler takes 20 ms, and the time-out of a drain is 30
/// s; the rest is for a machine that does other work.
const SOON: Duration = Duration::from_secs(10);

pub(crate) fn start(way: Way, at: &str, book: &Arc<Book>) -> Running {
    let server = way.server().threads(2).service(Worker::server(book));
    server.start(at).unwrap()
}

/// Tasks that call without a pause until they are stopped. Each call must return its value.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    calls: JoinHandle<u64>,
}

impl Load {
    /// Starts this many tasks; handlers take at most `longest` milliseconds.
    pub(crate) fn start(channel: Channel, tasks: u64, longest: u64) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let calls = std::thread::spawn(move || {
            let work = WorkClient::over(channel);
            let next = Cell::new(0);
            let task = || async {
                while !stopped.load(Ordering::Relaxed) {
                    let job = next.get();
                    next.set(job + 1);
                    let value = work.run(&(job, job % (longest + 1))).await;
                    assert_eq!(value.unwrap_or_else(|error| panic!("{job}: {error}")), job);
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let tasks = futures::future::join_all((0..tasks).map(|_| task()));
            runtime.unwrap().block_on(tasks);
            next.get()
        });
        Self { stop, calls }
    }

    /// Stops the tasks, and checks that no job has run twice. Returns the number of calls.
    pub(crate) fn check(self, book: &Book) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        until(|| self.calls.is_finished());
        let calls = self.calls.join().unwrap();
        let runs = book.runs.lock().unwrap();
        assert_eq!(runs.len() as u64, calls);
        let twice = runs.iter().find(|(_, count)| **count != 1);
        assert_eq!(twice, None, "a job and how often it has run");
        calls
    }
}

pub(crate) fn is_ready(channel: &Channel, address: &str) -> bool {
    let addresses = channel.state().addresses;
    let mut addresses = addresses.iter();
    addresses.any(|it| it.address == address && it.state == State::Ready)
}

/// Waits until this many more jobs have run.
pub(crate) fn wait_for_more(book: &Book, jobs: u64) {
    let count = || book.runs.lock().unwrap().len() as u64;
    let before = count();
    until(|| count() >= before + jobs);
}

#[test]
fn servers_drain_in_turn_and_no_call_is_lost_or_runs_twice() {
    for way in WAYS {
        let book = Arc::<Book>::default();
        let mut servers = [0, 1].map(|_| Some(start(way, &own_host(), &book)));
        let addresses = servers.each_ref().map(|server| {
            let server = server.as_ref().unwrap();
            server.address().to_string()
        });
        let channel = way.channel().address(&addresses[0]).address(&addresses[1]);
        let channel = channel.open().unwrap();
        let load = Load::start(channel.clone(), TASKS, LONGEST);
        for round in 0..4 {
            let at = round % 2;
            until(|| is_ready(&channel, &addresses[at]));
            wait_for_more(&book, 200);
            let begin = Instant::now();
            let drained = servers[at].take().unwrap().drain();
            let took = begin.elapsed();
            assert_eq!(drained.cut_off, 0);
            assert!(drained.finished > 0, "{way:?} {drained:?}");
            assert!(took < SOON, "{way:?}: {took:?}, {drained:?}");
            // Another process at the same address, as after an upgrade.
            servers[at] = Some(start(way, &addresses[at], &book));
        }
        load.check(&book);
    }
}

#[test]
fn an_idle_channel_leaves_a_server_that_drains() {
    for way in WAYS {
        let running = start(way, "127.0.0.1:0", &Arc::default());
        let channel = way.open(running.address());
        block_on(channel.ready()).unwrap();
        let begin = Instant::now();
        let drained = running.drain();
        assert!(begin.elapsed() < SOON, "{way:?}");
        assert_eq!(drained, dunlin::Drained::default());
        until(|| channel.state().state == State::Gone);
    }
}

#[test]
fn a_drain_may_have_no_time_limit() {
    let server = Way::Shm.server().drain_timeout(Duration::MAX);
    let server = server.service(Worker::server(&Arc::default()));
    let running = server.start("127.0.0.1:0").unwrap();
    let channel = Way::Shm.open(running.address());
    block_on(channel.ready()).unwrap();
    assert_eq!(running.drain(), dunlin::Drained::default());
}

/// The state of a thread: the first one panics when it ends, the second one takes a while.
struct Ending {
    is_first: bool,
    ended: Arc<AtomicBool>,
}

impl BasedPoll for Ending {
    fn twice(&mut self, number: u64, _: &mut Cx<'_>, _: Context<'_>) -> u64 {
        2 * number
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        assert!(!self.is_first, "a planted panic");
        std::thread::sleep(Duration::from_millis(300));
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_thread_outlives_a_drain_even_if_another_has_panicked() {
    let ended = Arc::<AtomicBool>::default();
    let shared = Arc::clone(&ended);
    let state = move |index: usize| Ending {
        is_first: index == 0,
        ended: Arc::clone(&shared),
    };
    let server = Server::builder().threads(2);
    let server = server.poll(state, BasedPoll::register);
    let running = server.start("127.0.0.1:0").unwrap();
    let drain = std::panic::AssertUnwindSafe(|| running.drain());
    assert!(std::panic::catch_unwind(drain).is_err());
    assert!(ended.load(Ordering::Relaxed));
}
