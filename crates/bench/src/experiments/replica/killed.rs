//! Leaders that are killed (SIGKILL), with three replicas and a client in processes of their own:
//! the time until the client's next acknowledged put. The measurement fails if a put that was
//! acknowledged before the kill is lost.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use dunlin::replica::{ClientOptions, Connection, Options};
use dunlin::{ConnectOptions, Nexus};

use super::apart::{Apart, ELECTING};
use super::client::{KEY, value_of};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::subject::{Medium, Setting, over};
use crate::harness::transport::Transport;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;
use harness::{signal, sys};

/// Puts, and notes when puts are acknowledged.
pub(super) const CLIENT: Role = Role::new("replica-witness", witness);

/// Leaders killed in a measurement. A run can leave out the second number, which takes half a
/// minute. Both are too few for a 99th percentile, so the rows have the longest time. A build with
/// debug assertions kills fewer, because its figures mean nothing.
pub(super) const KILLS: [usize; 2] = match cfg!(debug_assertions) {
    true => [2, 50],
    false => [10, 50],
};

/// How long the client puts before a leader is killed.
const BUSY: Duration = Duration::from_millis(50);

/// The pause between two puts.
const PAUSE: Duration = Duration::from_millis(1);

/// Answers that were in flight when the leader ended arrive within this time.
const UNDER_WAY: Duration = Duration::from_millis(2);

/// Each is compared with the shortest election time-out, the last value of a measurement.
const METRICS: [Metric; 2] = [failover("failover_p50"), failover("failover_worst")];

const fn failover(name: &'static str) -> Metric {
    Metric {
        name,
        unit: "ns",
        against: Against::Own {
            index: 2,
            name: "the shortest election time-out",
        },
    }
}

/// Kills this number of leaders, over this transport.
#[derive(Clone, Copy, Debug)]
pub(super) struct Killed(pub(super) Transport, pub(super) usize);

impl Probe for Killed {
    fn name(&self) -> &'static str {
        "killed leaders"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        Duration::from_millis(700) * u32::try_from(self.1).unwrap_or(u32::MAX)
    }

    /// Elections take as long as their time-outs, whatever the state of the machine.
    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span: it kills a fixed number of leaders.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let setting = Setting::adaptive(self.0, Seat::default());
        let mut took = Vec::new();
        for _ in 0..self.1 {
            signal::check()?;
            took.push(kill(setting)?.as_secs_f64() * 1e9);
        }
        took.sort_by(f64::total_cmp);
        let election = Duration::from(Options::DEFAULT.election).as_secs_f64() * 1e9;
        let [p50, worst] = [50, 100].map(|percent| quantile(&took, percent));
        Ok(vec![p50, worst, election].into())
    }
}

/// The smallest time that at least this percentage of all times does not exceed. `times` must be
/// sorted.
fn quantile(times: &[f64], percent: usize) -> f64 {
    times[(times.len() * percent).div_ceil(100).max(1) - 1]
}

/// Kills the leader of a new cluster, and returns the time until the next acknowledged put.
fn kill(setting: Setting) -> anyhow::Result<Duration> {
    let mut replicas = Apart::start(setting, None)?;
    let leader = replicas.leader()?;
    let witness = (setting, replicas.addresses.clone());
    let mut client = Process::spawn(CLIENT, Seat::default(), &witness)?;
    client.receive::<()>(patience(ELECTING))?;
    thread::sleep(BUSY);
    // The leader may have changed on a busy machine.
    ensure!(replicas.ask(leader)?.leads, "the leader has changed");
    let killed = sys::monotonic_time()?;
    replicas.kill(leader);
    client.send(&killed)?;
    client.receive(patience(ELECTING))
}

/// Puts until the parent reports when it killed the leader, and then until a put is acknowledged.
///
/// # Errors
/// A put that was acknowledged is lost.
fn witness(parent: &Parent) -> anyhow::Result<()> {
    let (setting, addresses): (Setting, Vec<SocketAddr>) = parent.receive()?;
    over!(setting, witness_over(parent, &addresses))
}

/// A put that was acknowledged, and when.
#[derive(Clone, Copy)]
struct Put {
    key: [u8; KEY],
    number: u64,
    at: Duration,
}

fn witness_over<T: Medium>(parent: &Parent, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    let nexus = Nexus::bind((Ipv4Addr::LOCALHOST, 0))?;
    let connect = ConnectOptions {
        endpoint: Some(0),
        ..ConnectOptions::default()
    };
    let endpoint = nexus.endpoint_builder::<T>().index(9);
    let addresses = addresses.iter().map(ToString::to_string);
    let options = ClientOptions::DEFAULT;
    let mut store = Connection::open_with(endpoint, addresses, options, connect)?;
    let mut number = 0;
    let mut put = |store: &mut Connection<T>| -> anyhow::Result<Put> {
        number += 1;
        let key = key_of(number);
        store.put(&key, &value_of(number))?;
        let at = sys::monotonic_time()?;
        Ok(Put { key, number, at })
    };
    let mut before = vec![put(&mut store)?];
    parent.say(&())?;
    let kills = listen();
    let killed = loop {
        thread::sleep(PAUSE);
        let next = put(&mut store)?;
        before.push(next);
        match kills.try_recv() {
            Ok(killed) if next.at > killed + UNDER_WAY => break next.at - killed,
            Ok(killed) => break after(killed, || put(&mut store))?,
            // The parent may have killed the leader, but not reported it yet.
            Err(_) => {}
        }
    };
    for put in before {
        let found = store.get(&put.key)?;
        let found = found.with_context(|| format!("acknowledged put {} is lost", put.number))?;
        ensure!(
            found.1 == value_of(put.number),
            "acknowledged put {} has another value",
            put.number
        );
    }
    parent.say(&killed)
}

/// The key of a put: each has its own, so that all can be read at the end.
fn key_of(number: u64) -> [u8; KEY] {
    let mut key = *b"witness-00000000";
    key[KEY - 8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The time from the kill until a put is acknowledged. Puts that the dead leader may have answered
/// do not count.
fn after(
    killed: Duration,
    mut put: impl FnMut() -> anyhow::Result<Put>,
) -> anyhow::Result<Duration> {
    loop {
        thread::sleep(PAUSE);
        let next = put()?;
        if next.at > killed + UNDER_WAY {
            return Ok(next.at - killed);
        }
    }
}

/// Receives from the parent the time at which it killed the leader.
fn listen() -> Receiver<Duration> {
    let (tx, kills) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(killed) = Parent.receive() {
            if tx.send(killed).is_err() {
                break;
            }
        }
    });
    kills
}
