//! A peer over shared memory that writes into all memory that it shares with the server: rings,
//! bells, and data that it passes by reference, even while the server reads it.
//!
//! It finds the memory in its own `/proc/self/maps` and writes through `/proc/self/mem`, so its own
//! endpoint is ordinary and works until it meets the damage. Then its process ends, and the next
//! one begins.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::{CallOptions, Rng, Tag};
use dunlin_nexus::{ConnectOptions, Nexus, Rpc};
use dunlin_transport::shm::Shm;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

use super::Pace;
use crate::honest::OTHER;
use crate::words::{Deeds, Orders};

/// Starts one process after the other.
pub(crate) const ROLE: Role = Role::new("scribbler", run);
/// One of the processes that [`ROLE`] starts.
pub(crate) const SCRIBE: Role = Role::new("scribe", scribe);

/// Words written per second.
const RATE: u32 = 40_000;
/// Longest life of a process.
const LIFE: Duration = Duration::from_millis(700);
/// For this time after its start, a process changes only its own requests.
const AIMED: Duration = Duration::from_millis(250);
/// Deadline of its own calls.
const DEADLINE: Duration = Duration::from_millis(100);
/// A process that has not ended after this time hangs because of the damage to its own memory.
const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes at the start of a mapping, where positions and flags lie. At least half of the writes hit
/// them.
const NEAR: u64 = 8 << 10;
/// Sizes of requests: in a cell, in several, and by reference.
const SIZES: [usize; 4] = [32, 200, 4_000, 60_000];
/// Each request is filled with this, so that the scribbler finds it again.
const MARK: [u8; 16] = *b"\xD1not-yours-only!";
/// The names of all shared memory begin with this.
const SHARED: &str = "/memfd:dunlin";

/// Memory that is shared with the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Area {
    start: u64,
    len: u64,
    /// Whether it is a channel; otherwise it is a region of data.
    is_channel: bool,
}

/// Words that this process has written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

fn run(parent: &Parent) -> anyhow::Result<()> {
    let orders: Orders = parent.receive()?;
    let mut rng = Rng::new(orders.seed);
    let (mut deeds, end) = (Deeds::default(), Instant::now() + orders.span);
    while Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now());
        let scribe = Orders {
            seed: rng.next_u64(),
            span: left.min(LIFE),
            ..orders.clone()
        };
        let mut scribe = Process::spawn(SCRIBE, Seat::default(), &scribe)?;
        // The process may end before it reports, because of the damage to its own memory.
        if let Ok(done) = scribe.receive(PATIENCE) {
            deeds.add(done);
        }
    }
    parent.say(&deeds)
}

fn scribe(parent: &Parent) -> anyhow::Result<()> {
    let Orders {
        target, seed, span, ..
    } = parent.receive()?;
    // The process's own endpoint panics when it finds its memory changed; unwinding would only meet
    // more damage.
    std::panic::set_hook(Box::new(|_| {
        let _ = say(&Parent);
        std::process::exit(0);
    }));
    // An attacker may end in any way.
    let _ = scribble(target.address, span, &mut Rng::new(seed));
    say(parent)?;
    std::process::exit(0);
}

fn say(parent: &Parent) -> anyhow::Result<()> {
    parent.say(&Deeds {
        words: WRITTEN.load(Ordering::Relaxed),
        ..Deeds::default()
    })
}

/// Runs one endpoint for its lifetime: issues calls, and writes into the shared memory.
fn scribble(server: SocketAddr, life: Duration, rng: &mut Rng) -> anyhow::Result<()> {
    let memory = &File::options()
        .read(true)
        .write(true)
        .open("/proc/self/mem")?;
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut rpc: Rpc<Shm, ()> = nexus.endpoint(())?;
    let options = ConnectOptions {
        patience: Duration::from_secs(1),
        ..ConnectOptions::default()
    };
    let session = rpc.connect_with(server, &options)?;
    rpc.wait_connected(session)?;
    let (begun, mut pace) = (Instant::now(), Pace::begin(life, RATE));
    while let Some(part) = pace.next() {
        let deadline = Some(DEADLINE.into());
        for len in SIZES {
            let marks: Vec<u8> = MARK.iter().copied().cycle().take(len).collect();
            let (Ok(request), Ok(response)) = (rpc.cx().copy(&marks), rpc.buf(len)) else {
                continue;
            };
            let options = CallOptions { deadline };
            // The results do not matter; the server need only read the requests.
            let _ = rpc.call_with(session, OTHER, request, response, Tag(0), options);
        }
        rpc.run_once();
        let areas = areas(&fs::read_to_string("/proc/self/maps")?);
        if begun.elapsed() < AIMED {
            aim(memory, &areas, rng);
        } else {
            scatter(memory, &areas, part, rng);
        }
        rpc.run_once();
    }
    Ok(())
}

/// Finds the shared memory in a table of mappings.
fn areas(maps: &str) -> Vec<Area> {
    let area = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16));
        let (start, end) = (start.ok()?, end.ok()?);
        let is_shared = fields.next()? == "rw-s";
        let name = fields.nth(3)?;
        (is_shared && name.starts_with(SHARED)).then_some(Area {
            start,
            len: end - start,
            is_channel: name != SHARED,
        })
    };
    maps.lines().filter_map(area).collect()
}

/// Writes random words at random places.
fn scatter(memory: &File, areas: &[Area], words: u64, rng: &mut Rng) {
    for _ in 0..words {
        let Some(area) = pick(areas, rng) else { break };
        let near = if rng.next_u32().is_multiple_of(2) {
            NEAR.min(area.len)
        } else {
            area.len
        };
        let place = (rng.next_u64() % near) & !7;
        write(memory, area.start + place, &word(rng).to_le_bytes());
    }
}

/// Changes the attacker's own requests that lie in channels, even while the server reads them.
fn aim(memory: &File, areas: &[Area], rng: &mut Rng) {
    let mut bytes = Vec::new();
    for area in areas.iter().filter(|area| area.is_channel) {
        bytes.resize(usize::try_from(area.len).unwrap_or(0), 0);
        if memory.read_exact_at(&mut bytes, area.start).is_err() {
            continue;
        }
        let found = bytes.chunks_exact(8).zip(0_u64..);
        let found = found.filter(|(chunk, _)| MARK.windows(4).any(|mark| chunk.ends_with(mark)));
        for (_, place) in found.take(2_000) {
            let junk = rng.next_u64().to_le_bytes();
            write(memory, area.start + 8 * place, &junk);
        }
    }
}

/// A word: nonsense, or a plausible position.
fn word(rng: &mut Rng) -> u64 {
    let lap = rng.next_u64() % 6;
    match rng.next_u32() % 5 {
        0 => rng.next_u64(),
        1 => 0,
        2 => u64::MAX,
        3 => lap << 1 | 1 | (rng.next_u64() % 70) << 32,
        _ => lap << 1 | 1 | (rng.next_u64() % 5_000) << 32,
    }
}

fn pick(areas: &[Area], rng: &mut Rng) -> Option<Area> {
    let place = rng.next_u32() as usize;
    (!areas.is_empty()).then(|| areas[place % areas.len()])
}

/// Writes at this address, unless the mapping is gone by now.
fn write(memory: &File, at: u64, bytes: &[u8]) {
    if memory.write_all_at(bytes, at).is_ok() {
        WRITTEN.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
