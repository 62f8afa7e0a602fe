//! Channels of one hub that share the sessions with a server.

use std::cell::{Cell, RefCell};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dunlin::{Channel, Hub};
use dunlin_testkit::child::Child;
use futures::future::join_all;

use crate::channel::process::Process;
use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, HOLD, PATIENCE, WAYS, Way, block_on, own_host, until};

fn hub(way: Way) -> Hub {
    let hub = Hub::builder().listen("127.0.0.1:0").nexus(way.nexus());
    hub.start().unwrap()
}

fn open(hub: &Hub, address: impl ToString) -> Channel {
    let channel = hub.channel().patience(PATIENCE);
    channel.address(address.to_string()).open().unwrap()
}

fn echo(channel: &Channel) {
    let answer = block_on(channel.call(ECHO, b"shared")).unwrap();
    assert_eq!(answer.data(), b"shared");
}

#[test]
fn channels_to_one_server_share_a_session_until_the_last_one_is_dropped() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Holds);
        let sessions = || server.seen.sessions.load(Ordering::Relaxed);
        let hub = hub(way);
        let mut channels: Vec<_> = (0..20).map(|_| open(&hub, server.address)).collect();
        channels.iter().for_each(echo);
        assert_eq!(sessions(), 1);
        // One of them is dropped while the server has its request.
        let first = channels.remove(0);
        let mut call = Box::pin(first.call(HOLD, b""));
        block_on(async {
            futures::future::poll_immediate(&mut call).await;
        });
        until(|| server.seen.held.load(Ordering::Relaxed) == 1);
        drop((call, first));
        until(|| server.seen.given_up.load(Ordering::Relaxed) == 1);
        channels.iter().for_each(echo);
        assert_eq!(sessions(), 1);
        // One that is opened later shares it too.
        channels.push(open(&hub, server.address));
        channels.iter().for_each(echo);
        assert_eq!(sessions(), 1);
        let counts = channels[0].counters();
        assert!(
            counts.calls <= 3 && counts.answered <= counts.calls,
            "{counts:?}"
        );
        until(|| channels[0].counters().answered == 3);
        assert_eq!(channels[0].counters().failed, 0);
        drop(channels);
        until(|| sessions() == 0);
        echo(&open(&hub, server.address));
    }
}

/// `dunlin top` and `dunlin stats` show the sums of a hub's channels, open and closed.
#[test]
fn tools_show_the_sums_of_all_channels() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Answers);
        let hub = hub(way);
        let [one, two] = [(); 2].map(|()| open(&hub, server.address));
        [&one, &one, &two].into_iter().for_each(echo);
        let shown = |calls, channels| {
            let snapshot = hub.nexus().snapshot().unwrap();
            let [endpoint] = snapshot.endpoints.as_slice() else {
                panic!("{snapshot:?}");
            };
            let (counters, gauges) = (&endpoint.own_counters, &endpoint.own_gauges);
            counters.get("channel_calls") == calls
                && counters.get("channel_answered") == calls
                && gauges.get("channels") == channels
                && gauges.get("channel_sessions") == 1
        };
        until(|| shown(3, 2));
        drop(one);
        echo(&two);
        until(|| shown(4, 1));
    }
}

#[test]
fn a_busy_channel_opens_further_sessions_and_leaves_room_for_others() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Keeps);
        let hub = hub(way);
        let [greedy, other] = [(); 2].map(|()| open(&hub, server.address));
        echo(&other);
        let calls: Vec<_> = (0..200).map(|_| greedy.call(HOLD, b"")).collect();
        let calls = std::thread::spawn(|| block_on(join_all(calls)));
        // Seven eighths of eight sessions with eight slots each.
        until(|| server.seen.held.load(Ordering::Relaxed) == 56);
        echo(&other);
        assert_eq!(server.seen.sessions.load(Ordering::Relaxed), 8);
        assert_eq!(server.seen.held.load(Ordering::Relaxed), 56);
        server.seen.may_answer.store(true, Ordering::Relaxed);
        for end in calls.join().unwrap() {
            assert_eq!(end.unwrap().data(), b"late");
        }
    }
}

/// Long calls of several channels need more sessions than a single channel may have.
#[test]
fn long_calls_of_some_channels_do_not_block_those_of_others() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Keeps);
        let hub = hub(way);
        let channels: Vec<_> = (0..72).map(|_| open(&hub, server.address)).collect();
        let calls: Vec<_> = channels.iter().map(|it| it.call(HOLD, b"")).collect();
        let calls = std::thread::spawn(|| block_on(join_all(calls)));
        until(|| server.seen.held.load(Ordering::Relaxed) == channels.len());
        // Nine sessions have room for all.
        assert_eq!(server.seen.sessions.load(Ordering::Relaxed), 9);
        server.seen.may_answer.store(true, Ordering::Relaxed);
        for end in calls.join().unwrap() {
            assert_eq!(end.unwrap().data(), b"late");
        }
    }
}

/// Nothing else happens on the hub's thread when it can open the session at last.
#[test]
fn a_call_that_waits_gets_a_session_after_one_could_not_be_opened() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Keeps);
        let other = Server::start(way, "127.0.0.1:0", Role::Answers);
        let hub = Hub::builder().listen("127.0.0.1:0").nexus(way.nexus());
        let hub = hub.endpoint(|it| it.config(|config| config.max_sessions = 2));
        let hub = hub.start().unwrap();
        let [channel, last] = [&server, &other].map(|it| open(&hub, it.address));
        [&channel, &last].into_iter().for_each(echo);
        // A session has eight slots.
        let calls: Vec<_> = (0..9).map(|_| channel.call(HOLD, b"")).collect();
        let calls = std::thread::spawn(|| block_on(join_all(calls)));
        until(|| server.seen.held.load(Ordering::Relaxed) == 8);
        drop(last);
        until(|| server.seen.held.load(Ordering::Relaxed) == 9);
        server.seen.may_answer.store(true, Ordering::Relaxed);
        for end in calls.join().unwrap() {
            assert_eq!(end.unwrap().data(), b"late");
        }
    }
}

#[test]
fn channels_that_share_a_session_all_live_through_a_restart() {
    for way in WAYS {
        let at = own_host();
        let server = Server::start(way, &at, Role::Answers);
        let at = server.address.to_string();
        let hub = hub(way);
        let channels: Vec<_> = (0..20).map(|_| open(&hub, &at)).collect();
        channels.iter().for_each(echo);
        drop(server);
        let server = Server::start(way, &at, Role::Answers);
        for channel in &channels {
            // A call that leaves before the channel notices the loss may fail.
            until(|| block_on(channel.call(ECHO, b"again")).is_ok());
        }
        until(|| server.seen.sessions.load(Ordering::Relaxed) == 1);
    }
}

/// With this variable, the test also measures times.
const FAIR: &str = "DUNLIN_FAIR";

/// Each of `channels` makes `calls` calls, one at a time. Returns two 99th percentiles over all
/// these calls: the time of a call, and the number of calls, by any channel, that end during it.
/// That number does not depend on the other work of the machine. `ended` counts the calls that have
/// ended.
async fn p99(channels: &[Channel], ended: &Cell<u64>, calls: u32) -> (Duration, u64) {
    let (times, counts) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let calls = channels.iter().map(|channel| async {
        for _ in 0..calls {
            let (begin, before) = (Instant::now(), ended.get());
            channel.call(ECHO, b"fair").await.unwrap();
            ended.set(ended.get() + 1);
            times.borrow_mut().push(begin.elapsed());
            counts.borrow_mut().push(ended.get() - before);
        }
    });
    join_all(calls).await;
    (p99_of(times.into_inner()), p99_of(counts.into_inner()))
}

fn p99_of<T: Copy + Ord>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() * 99 / 100]
}

/// Like [`p99`], while another channel has as many calls in flight as it can.
async fn p99_beside(greedy: &Channel, channels: &[Channel], calls: u32) -> (Duration, u64) {
    let (is_over, ended) = (Cell::new(false), Cell::new(0));
    let greedy = (0..4000).map(|_| async {
        while !is_over.get() {
            greedy.call(ECHO, b"greedy").await.unwrap();
            ended.set(ended.get() + 1);
        }
    });
    let others = async {
        let p99 = p99(channels, &ended, calls).await;
        is_over.set(true);
        p99
    };
    futures::join!(join_all(greedy), others).1
}

/// Of 1 000 channels to a server, one has as many calls in flight as it can. During the slowest
/// calls of the others, at most three times as many calls end as without it. With `DUNLIN_FAIR=1`,
/// on a machine that does nothing else, these calls also take at most three times as long.
#[test]
fn a_greedy_channel_delays_the_others_little() {
    let measures = std::env::var_os(FAIR).is_some();
    let (rounds, calls) = if measures { (7, 200) } else { (3, 20) };
    let server = Process::start(Way::Shm, "127.0.0.1:0", Role::Answers);
    let hub = hub(Way::Shm);
    let address = server.address();
    let channels: Vec<_> = (0..1000).map(|_| open(&hub, &address)).collect();
    channels.iter().for_each(echo);
    let (greedy, others) = channels.split_first().unwrap();
    let (mut ratios, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let alone = block_on(p99(others, &Cell::new(0), calls));
        let beside = block_on(p99_beside(greedy, others, calls));
        println!("p99 {alone:?} alone, {beside:?} with a greedy channel");
        counts.push(beside.1 as f64 / alone.1 as f64);
        ratios.push(beside.0.as_secs_f64() / alone.0.as_secs_f64());
    }
    counts.sort_by(f64::total_cmp);
    assert!(
        counts[rounds / 2] <= 3.0,
        "calls that end during one: {counts:?}"
    );
    ratios.sort_by(f64::total_cmp);
    let median = ratios[rounds / 2];
    println!("1000 channels: the others' p99 is {median:.2} times as long ({ratios:.2?})");
    assert!(!measures || median <= 3.0, "{ratios:?}");
}

/// The servers of [`crowd`].
const SERVERS: usize = 8;

/// Channels in the crowd.
const CROWD: usize = 1000;

/// In a process of its own, because it looks at the memory and the files of the process.
#[test]
fn many_channels_need_little_memory_one_thread_and_one_connection_per_server() {
    let servers: Vec<_> = (0..SERVERS)
        .map(|_| Process::start(Way::Shm, "127.0.0.1:0", Role::Answers))
        .collect();
    let addresses: Vec<_> = servers.iter().map(Process::address).collect();
    let crowd = Child::start(&format!("Crowd {}", addresses.join(" ")));
    let line = crowd.line();
    println!("{line}");
    let figures: Vec<usize> = line.split(' ').map(|it| it.parse().unwrap()).collect();
    let &[threads, connections, first_kib, further_bytes] = figures.as_slice() else {
        panic!("{line}");
    };
    assert_eq!((threads, connections), (1, SERVERS));
    assert!(first_kib <= 8 << 10, "{first_kib} KiB for {CROWD} channels");
    assert!(further_bytes <= 4 << 10, "{further_bytes} bytes a channel");
}

/// The client of the test above: prints the threads of the hub, the connections, the memory in KiB
/// that 1 000 channels to all servers need beyond the first channel, and the bytes of a further
/// channel to a known server.
pub(crate) fn crowd(addresses: &[&str]) {
    let hub = hub(Way::Shm);
    let before = sockets();
    let mut channels = vec![open(&hub, addresses[0])];
    echo(&channels[0]);
    // A connection is one socket or more.
    let connection = sockets() - before;
    let first = memory_kib();
    for number in 1..CROWD {
        channels.push(open(&hub, addresses[number % addresses.len()]));
        echo(&channels[number]);
    }
    let (all, connections) = (memory_kib(), (sockets() - before) / connection);
    for number in 0..CROWD {
        channels.push(open(&hub, addresses[0]));
        echo(&channels[CROWD + number]);
    }
    let further = memory_kib();
    channels.iter().for_each(echo);
    let (all, further) = (all.saturating_sub(first), further.saturating_sub(all));
    println!(
        "#{} {connections} {all} {}",
        threads(),
        (further << 10) / CROWD
    );
}

/// Resident memory of this process, shared memory included.
fn memory_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1);
    kib.unwrap().parse().unwrap()
}

fn sockets() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links
        .filter(|it| it.to_string_lossy().starts_with("socket:"))
        .count()
}

/// The endpoint threads of hubs in this process.
fn threads() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names = threads.filter_map(|it| fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "dunlin-hub").count()
}
