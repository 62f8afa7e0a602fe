//! Puts, one at a time, while the leader makes an image of its items and sends it to a fourth
//! replica, which joins. For comparison, the same puts for as long without a snapshot.
//!
//! One thread runs all replicas, another one the client. So a put also waits for the slices of the
//! snapshot that the joining replica reads. Each put replaces an item, and many of these items are
//! not in the image yet, so the leader must keep them aside.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dunlin::replica::{ClientOptions, Connection, Node, Order, Status, Write};
use dunlin::{ConnectOptions, Idle, Rng};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::client::KEY;
use super::members::{BLOCK, REPLICAS, Seated, elect, open};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::server::{apart, listen_to_parent};
use crate::harness::subject::{Medium, Setting, over, spinning_pair};
use crate::harness::transport::Transport;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Runs the replicas.
pub(super) const MEMBERS: Role = Role::new("replica-snapshot", replicate);

/// Fills them, and puts.
pub(super) const CLIENT: Role = Role::new("replica-snapshot-put", put);

/// MiB of the items. A build with debug assertions has few, because its figures mean nothing.
pub(super) const MIB: u32 = match cfg!(debug_assertions) {
    true => 8,
    false => 1024,
};

/// Bytes of a value.
const VALUE: usize = 1024;

/// Bytes of an item in an image, beside key and value: its version, its time, and two lengths.
const FRAME: usize = 22;

/// Items of a transaction that fills the store.
const TOGETHER: u64 = 32;

/// A put that takes longer than this is late.
const LATE: Duration = Duration::from_millis(1);

/// The time in which the store is filled, or the fourth replica joins, even on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// A replica that lacks fewer entries than this has caught up.
const FEW: u64 = 100;

/// The first three are compared with the same figures without a snapshot, which follow all others.
const METRICS: [Metric; 5] = [
    compared("put_p50", 5),
    compared("put_p999", 6),
    compared("put_longest", 7),
    Metric::alone("puts_over_ms", ""),
    Metric::alone("snapshot_time", "ns"),
];

const fn compared(name: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit: "ns",
        against: Against::Own {
            index,
            name: "puts without a snapshot",
        },
    }
}

/// Puts during a snapshot, over this transport.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot(pub(super) Transport);

/// The times of puts, in ns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Times {
    puts: u64,
    p50: f64,
    p999: f64,
    longest: f64,
    over_ms: f64,
}

/// A snapshot, as the replicas have seen it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Taken {
    bytes: u64,
    time: Duration,
    elections: u64,
}

/// The client's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    addresses: Vec<SocketAddr>,
}

impl Probe for Snapshot {
    fn name(&self) -> &'static str {
        "replicated puts during a snapshot"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    /// For each GiB: some seconds to fill the store, and some for each of the two stretches.
    fn overhead(&self) -> Duration {
        Duration::from_millis(500 + 30 * u64::from(MIB))
    }

    /// Ignores the span: a snapshot takes its own time.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let (setting, other) = spinning_pair(self.0);
        let mut members = Process::spawn(MEMBERS, Seat::default(), &other)?;
        let addresses = members.receive(patience(LONG))?;
        let params = Params { setting, addresses };
        let mut client = Process::spawn(CLIENT, Seat::default(), &params)?;
        client.receive::<()>(patience(LONG))?;
        // The client begins, the fourth replica joins, and the client ends.
        client.send(&())?;
        members.send(&())?;
        let taken: Taken = members.receive(patience(LONG))?;
        client.send(&())?;
        let during: Times = client.receive(patience(LONG))?;
        // The fourth replica leaves.
        members.send(&())?;
        members.receive::<()>(patience(LONG))?;
        client.send(&())?;
        thread::sleep(taken.time);
        client.send(&())?;
        let without: Times = client.receive(patience(LONG))?;
        Ok(measurement(taken, during, without))
    }
}

fn measurement(taken: Taken, during: Times, without: Times) -> Measurement {
    let changed = (taken.elections > 0).then(|| "the leader has changed".to_owned());
    let line = |what: &str, times: Times| {
        let (puts, over_ms) = (times.puts, times.over_ms);
        format!("{what}: {puts} puts, {over_ms} of them longer than a millisecond")
    };
    Measurement {
        values: vec![
            during.p50,
            during.p999,
            during.longest,
            during.over_ms,
            taken.time.as_secs_f64() * 1e9,
            without.p50,
            without.p999,
            without.longest,
        ],
        alarms: changed.into_iter().collect(),
        details: vec![
            format!("a snapshot of {} bytes", taken.bytes),
            line("with it", during),
            line("without", without),
        ],
    }
}

/// The number of items whose image has [`MIB`].
const fn items() -> u64 {
    ((MIB as u64) << 20) / (FRAME + KEY + VALUE) as u64
}

/// # Errors
/// An endpoint cannot be opened, or the replicas do not do their work.
fn replicate(parent: &Parent) -> anyhow::Result<()> {
    let setting: Setting = parent.receive()?;
    over!(setting, replicate_over(parent, &setting))
}

fn replicate_over<T: Medium>(parent: &Parent, setting: &Setting) -> anyhow::Result<()> {
    let asked = listen_to_parent();
    let mut seats = Seats(open::<T>(setting, REPLICAS + 1)?);
    let leader = elect(&mut seats.0[..usize::try_from(REPLICAS)?])?;
    seats.0.swap(0, leader);
    let term = seats.0[0].term();
    let founders = seats.0.iter().take(usize::try_from(REPLICAS)?);
    let addresses = founders.map(|it| it.rpc.nexus().address());
    parent.say(&addresses.collect::<Vec<_>>())?;
    seats.run_until(|_| asked.swap(false, Ordering::Relaxed))?;
    let mut taken = seats.join()?;
    taken.elections = seats.0[0].term() - term;
    parent.say(&taken)?;
    seats.run_until(|_| asked.swap(false, Ordering::Relaxed))?;
    seats.leave()?;
    parent.say(&())?;
    loop {
        seats.turns();
    }
}

/// The replicas. The first one leads, and the last one joins.
struct Seats<T: Medium>(Vec<Seated<T>>);

impl<T: Medium> Seats<T> {
    /// Gives the replicas turns. The leader has one before that of each follower.
    fn turns(&mut self) {
        let mut none = Recorder::skipping(u64::MAX);
        for _ in 0..BLOCK {
            for place in [0, 1, 0, 2, 3] {
                self.0[place].turn(&mut none);
            }
        }
    }

    fn run_until(&mut self, mut is_done: impl FnMut(&Self) -> bool) -> anyhow::Result<()> {
        let begin = Instant::now();
        while !is_done(self) {
            self.turns();
            ensure!(begin.elapsed() < LONG, "the replicas take too long");
        }
        Ok(())
    }

    fn status(&self, place: usize) -> Status {
        self.0[place].rpc.app().replica.status()
    }

    /// Lets the last replica join, and waits until it has the leader's snapshot and almost all
    /// entries after it.
    fn join(&mut self) -> anyhow::Result<Taken> {
        let begin = Instant::now();
        let roster = self.status(0).members.context("the leader has a seat")?;
        let [leader, .., joiner] = &mut self.0[..] else {
            unreachable!("there are four");
        };
        let member = joiner.member();
        let leader = &mut leader.rpc.app_mut().replica;
        joiner
            .rpc
            .app_mut()
            .replica
            .on_join(roster.for_joining(member.clone()))?;
        for order in [Order::Snapshot, Order::Join(member)] {
            ensure!(leader.on_order(order), "the leader has changed");
        }
        let mut bytes = 0;
        self.run_until(|seats| {
            let [leader, joiner] = [0, 3].map(|place| seats.status(place));
            let sizes = leader.followers.iter().map(|it| it.size);
            bytes = sizes.max().unwrap_or(0).max(bytes);
            let node = seats.0[3].rpc.app().replica.node();
            node.map_or(0, Node::restores) > 0 && joiner.applied + FEW > leader.applied
        })?;
        Ok(Taken {
            bytes,
            time: begin.elapsed(),
            elections: 0,
        })
    }

    /// Lets the last replica leave.
    fn leave(&mut self) -> anyhow::Result<()> {
        let id = self.status(3).id;
        let order = Order::Leave(id);
        let is_obeyed = self.0[0].rpc.app_mut().replica.on_order(order);
        ensure!(is_obeyed, "the leader has changed");
        self.run_until(|seats| {
            let members = seats.status(0).members;
            members.is_some_and(|it| !it.is_joint() && it.get(id).is_none())
        })
    }
}

/// # Errors
/// A put fails.
fn put(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, put_over(parent, &params))
}

fn put_over<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let asked = listen_to_parent();
    let nexus = params.setting.bind()?;
    let says = |times: &Times| parent.say(times);
    apart(|| {
        params.setting.seat.take()?;
        let endpoint = nexus.endpoint_builder::<T>().idle(Idle::Spin);
        let addresses = params.addresses.iter().map(ToString::to_string);
        let (options, connect) = (ClientOptions::DEFAULT, ConnectOptions::default());
        let mut store = Connection::open_with(endpoint, addresses, options, connect)?;
        fill(&mut store)?;
        parent.say(&())?;
        loop {
            says(&stretch(&mut store, &asked)?)?;
        }
    })
}

/// Writes all items.
fn fill<T: Medium>(store: &mut Connection<T>) -> anyhow::Result<()> {
    let value = [0x76; VALUE];
    let mut first = 0;
    while first < items() {
        let end = items().min(first + TOGETHER);
        let keys: Vec<[u8; KEY]> = (first..end).map(key_of).collect();
        let write = |key| Write::Put {
            key,
            value: &value,
            lifetime: 0,
        };
        let writes: Vec<Write<'_>> = keys.iter().map(|key| write(&key[..])).collect();
        let written = store.transact(&[], &writes)?;
        ensure!(written.is_ok(), "a transaction compares nothing");
        first = end;
    }
    Ok(())
}

/// Waits for the parent, and puts until the parent asks again.
fn stretch<T: Medium>(store: &mut Connection<T>, asked: &AtomicBool) -> anyhow::Result<Times> {
    while !asked.swap(false, Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
    let mut took = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3)?;
    let (mut rng, value) = (Rng::new(items()), [0x77; VALUE]);
    let mut late = 0;
    while !asked.swap(false, Ordering::Relaxed) {
        let key = key_of(rng.below(u32::try_from(items())?).into());
        let begin = Instant::now();
        store.put(&key, &value)?;
        let time = begin.elapsed();
        took.saturating_record(u64::try_from(time.as_nanos())?);
        late += u32::from(time > LATE);
    }
    #[expect(clippy::cast_precision_loss, reason = "ns of a put are far below 2^53")]
    let at = |quantile: f64| took.value_at_quantile(quantile) as f64;
    Ok(Times {
        puts: took.len(),
        p50: at(0.5),
        p999: at(0.999),
        longest: at(1.0),
        over_ms: late.into(),
    })
}

fn key_of(number: u64) -> [u8; KEY] {
    let mut key = *b"item-00000000000";
    key[KEY - 8..].copy_from_slice(&number.to_be_bytes());
    key
}
