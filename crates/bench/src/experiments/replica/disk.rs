//! Puts into three replicas with disks in one file system, each in a process of its own, and the
//! rate of the disk alone: three writers that append and sync as many bytes as the leader does,
//! each in a file of its own. A replica that always syncs has the rate of these writers, times the
//! puts that share a sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dunlin::replica::WINDOW;
use rustix::fs::{FallocateFlags, fallocate};

use super::apart::{Apart, REPLICAS, Seen};
use super::client::{self, HEAD, KEY, Running, Step, VALUE, WARM_UP};
use super::folder::Folder;
use super::many::PUTS;
use crate::harness::probe::{Measurement, Metric, Probe};
use crate::harness::subject::{self, Setting};
use crate::harness::transport::Transport;
use harness::seat::Seat;

/// Puts in flight, also in the baseline with etcd.
pub(super) const OUTSTANDING: usize = 128;

/// A client has at most this number of writes in flight, so several clients make these puts.
#[expect(clippy::cast_possible_truncation, reason = "the window is small")]
const EACH: usize = WINDOW as usize;

/// The engine reserves this number of bytes of a file at a time, and so do the writers.
const RESERVED: u64 = 2 << 20;

/// A replica writes zeros ahead of its bytes, so most of its syncs change no metadata of the file
/// system. So do the writers, in pieces of the same size.
const AHEAD: usize = 256 << 10;

/// The most bytes that a writer writes to its file before it starts over.
const MOST: u64 = 32 << 20;

/// The values of [`OnDisk`].
const METRICS: [Metric; 7] = [
    PUTS[0],
    PUTS[1],
    Metric::alone("bound_ratio", ""),
    Metric::alone("puts_per_sync", ""),
    Metric::alone("sync_mean", "ns"),
    Metric::alone("writer_syncs_per_s", "1/s"),
    Metric::alone("elections", ""),
];

/// Puts into replicas with disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnDisk(pub(super) Transport);

/// The directory for files of replicas, of etcd and of the writers.
pub(super) fn folder() -> PathBuf {
    std::env::temp_dir()
}

/// The type of the file system of a directory, as the kernel names it.
///
/// # Errors
/// The kernel does not report it.
pub(super) fn file_system(path: &Path) -> anyhow::Result<String> {
    let path = path.canonicalize()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let of_line = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some((PathBuf::from(words.next()?), words.next()?.to_owned()))
    };
    let mounts = mounts.lines().filter_map(of_line);
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    // If two are mounted at one point, the later one is visible.
    let own = above.max_by_key(|(point, _)| point.as_os_str().len());
    own.map(|it| it.1)
        .context("no file system has this directory")
}

impl Probe for OnDisk {
    fn name(&self) -> &'static str {
        "replicated puts on disks"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + WARM_UP + Duration::from_millis(600)
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let folder = Folder::new(&folder(), "replicas")?;
        let setting = Setting::adaptive(self.0, Seat::default());
        let mut replicas = Apart::start(setting, Some(folder.path()))?;
        let leader = replicas.leader()?;
        let params = client::Params {
            setting,
            replicas: replicas.addresses.iter().map(ToString::to_string).collect(),
            leader: replicas.addresses[leader],
            outstanding: EACH,
            steps: vec![Step::Put],
            span: span * 3 / 4,
        };
        let before = replicas.ask(leader)?;
        let puts = Puts::by_clients(OUTSTANDING / EACH, &params)?;
        let after = replicas.ask(leader)?;
        drop(replicas);
        let syncs = Syncs::between(&before, &after)?;
        let writers = rate_of_writers(folder.path(), syncs.bytes(), span / 4)?;
        let elections = after.term - before.term;
        let changed = (elections > 0).then(|| "the leader has changed".to_owned());
        Ok(Measurement {
            values: vec![
                puts.per_s,
                puts.p99,
                puts.per_s / (syncs.puts * writers),
                syncs.puts,
                syncs.mean_ns,
                writers,
                count(elections),
            ],
            alarms: puts.alarms.into_iter().chain(changed).collect(),
            details: puts.lines,
        })
    }
}

/// The puts of several clients.
struct Puts {
    per_s: f64,
    /// Of the client for which it is the longest.
    p99: f64,
    alarms: Vec<String>,
    lines: Vec<String>,
}

impl Puts {
    fn by_clients(count: usize, params: &client::Params) -> anyhow::Result<Self> {
        let clients = (0..count).map(|_| Running::start(params));
        let clients: Vec<Running> = clients.collect::<anyhow::Result<_>>()?;
        let mut puts = Self {
            per_s: 0.0,
            p99: 0.0,
            alarms: Vec::new(),
            lines: Vec::new(),
        };
        for client in clients {
            let (outcomes, side) = client.end()?;
            puts.per_s += outcomes[0].per_s;
            puts.p99 = puts.p99.max(outcomes[0].p99);
            puts.alarms.extend(side.alarm("client"));
            puts.lines.push(side.line("client"));
        }
        Ok(puts)
    }
}

/// The syncs of a leader.
struct Syncs {
    /// Puts that share one.
    puts: f64,
    mean_ns: f64,
}

impl Syncs {
    fn between(before: &Seen, after: &Seen) -> anyhow::Result<Self> {
        let syncs = after.syncs - before.syncs;
        ensure!(syncs > 0, "the leader has synced nothing");
        let time = after.sync_time - before.sync_time;
        Ok(Self {
            puts: count(after.applied - before.applied) / count(syncs),
            mean_ns: time.as_secs_f64() * 1e9 / count(syncs),
        })
    }

    /// Bytes of the puts that share a sync.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sync has at most the puts that are under way"
    )]
    fn bytes(&self) -> usize {
        (self.puts * count((HEAD + KEY + VALUE) as u64)).ceil() as usize
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn count(number: u64) -> f64 {
    number as f64
}

/// The syncs per second of each of three writers that write this number of bytes before each sync.
///
/// # Errors
/// The disk refuses.
pub(super) fn rate_of_writers(folder: &Path, bytes: usize, span: Duration) -> anyhow::Result<f64> {
    thread::scope(|scope| {
        let write = |place: usize| {
            let path = folder.join(format!("writer-{place}"));
            scope.spawn(move || rate_of_writer(&path, bytes, span))
        };
        let writers: Vec<_> = (0..REPLICAS).map(write).collect();
        let mut sum = 0.0;
        for writer in writers {
            sum += writer.join().expect("a writer does not panic")?;
        }
        Ok(sum / count(REPLICAS as u64))
    })
}

fn rate_of_writer(path: &Path, bytes: usize, span: Duration) -> anyhow::Result<f64> {
    let (block, zeros) = (vec![0x76; bytes], vec![0; AHEAD]);
    let (mut file, mut offset, mut reserved, mut syncs) = (File::create(path)?, 0, 0, 0);
    let mut written = 0;
    let begin = Instant::now();
    while begin.elapsed() < span || syncs == 0 {
        let end = offset + bytes as u64;
        if end > MOST {
            (file, offset, reserved) = (File::create(path)?, 0, 0);
            written = 0;
            continue;
        }
        if end > reserved {
            fallocate(&file, FallocateFlags::empty(), reserved, RESERVED)?;
            reserved += RESERVED;
        }
        file.write_all_at(&block, offset)?;
        if end > written {
            let more = usize::try_from(reserved - end)?.min(AHEAD);
            file.write_all_at(&zeros[..more], end)?;
            written = end + more as u64;
        }
        file.sync_data()?;
        (offset, syncs) = (end, syncs + 1);
    }
    Ok(count(syncs) / begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests;
