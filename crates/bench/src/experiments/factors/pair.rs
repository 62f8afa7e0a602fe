//! Two processes, each with an endpoint that issues and serves, as in eRPC §6.2. Time is divided
//! into slices, the same for both processes: in even slices all factors are on, in odd ones one is
//! off. Therefore other work on the machine, and the placement of the processes' memory, affect
//! both sides of a ratio alike.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::Shm;
use serde::{Deserialize, Serialize};

use super::{BATCH, Factor, Peer, SESSIONS, register, switch, use_sessions};
use crate::harness::probe::patience;
use crate::harness::subject;
use crate::harness::subject::side::Side;
use crate::harness::subject::{Setting, pipeline};
use crate::harness::transport::Transport;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;
use harness::sys;

/// Issues and serves RPCs, with a factor switched off in every second slice.
pub(crate) const ROLE: Role = Role::new("factors", run);

/// Time before the first RPC that counts.
pub(super) const WARM_UP: Duration = Duration::from_millis(20);

/// The length of a slice: long enough for 30 000 RPCs, short enough that a noisy machine changes
/// little from one slice to the next.
const SLICE: Duration = Duration::from_millis(10);

/// Time at the beginning of a slice for both sides to switch, and for earlier RPCs to end.
const SETTLE: Duration = Duration::from_millis(1);

/// Fewest slices of a measurement.
const FEWEST: u64 = 4;

/// A process fails this long after the last slice if it has not run in two neighbouring slices.
const STUCK: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    /// The server to connect to. If there is none, this process listens, and begins to issue
    /// requests when the other process does.
    server: Option<SocketAddr>,
    off: Factor,
    slices: u64,
}

/// Measurements of one process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// RPCs per second of each slice.
    pub(super) rates: BTreeMap<u64, f64>,
    pub(super) side: Side,
}

/// True if the factor is off in this slice.
pub(super) const fn is_off(slice: u64) -> bool {
    slice % 2 == 1
}

/// Pairs of rates: of a slice with all factors on, and of the next slice, with one off.
pub(super) fn pairs_of(rates: &BTreeMap<u64, f64>) -> Vec<[f64; 2]> {
    let (mut pairs, mut before) = (Vec::new(), None);
    for (slice, rate) in rates {
        match is_off(*slice) {
            false => before = Some(*rate),
            true => pairs.extend(before.take().map(|on| [on, *rate])),
        }
    }
    pairs
}

/// Measures for `span`, in both processes.
///
/// # Errors
/// [`harness::signal::Interrupted`]; or a process could not be started, failed or hung.
pub(super) fn measure(off: Factor, span: Duration) -> anyhow::Result<[Report; 2]> {
    let (first, second) = subject::spinning_pair(Transport::Shm);
    let slices = span.as_nanos() / SLICE.as_nanos();
    let mut params = Params {
        setting: second,
        server: None,
        off,
        slices: u64::try_from(slices)?.max(FEWEST),
    };
    let mut second = Process::spawn(ROLE, Seat::default(), &params)?;
    params.server = Some(second.receive(patience(Duration::ZERO))?);
    params.setting = first;
    let mut first = Process::spawn(ROLE, Seat::default(), &params)?;
    Ok([
        first.receive(patience(span))?,
        second.receive(patience(span))?,
    ])
}

/// Runs one of the two processes. It issues and serves until the parent kills it.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut rpc: dunlin::Rpc<Shm, Peer> = params.setting.open(Peer::default())?;
    register(rpc.engine_mut());
    let sessions = match params.server {
        Some(server) => subject::connect(&mut rpc, server, SESSIONS)?,
        None => subject::accept(parent, &mut rpc, SESSIONS, |peer| &mut peer.accepted)?,
    };
    use_sessions(rpc.engine_mut(), sessions);
    pipeline::begin(&mut rpc, BATCH, u64::MAX)?;
    pipeline::rate(&mut rpc, WARM_UP)?;
    let rates = slices(&mut rpc, &params)?;
    let side = Side::read(&mut rpc)?;
    // The other process may have started a little later and still be measuring.
    pipeline::rate(&mut rpc, 2 * SLICE)?;
    params.setting.seat.step_back()?;
    parent.say(&Report { rates, side })?;
    loop {
        rpc.run_once();
    }
}

/// The rates of the slices in which this process ran.
fn slices(rpc: &mut dunlin::Rpc<Shm, Peer>, params: &Params) -> anyhow::Result<BTreeMap<u64, f64>> {
    let mut rates = BTreeMap::new();
    let begin = Instant::now();
    let mut end_at = None;
    loop {
        let now = sys::monotonic_time()?;
        let slice = u64::try_from(now.as_nanos() / SLICE.as_nanos())?;
        let is_over = slice >= *end_at.get_or_insert(slice + params.slices);
        if is_over && !pairs_of(&rates).is_empty() {
            return Ok(rates);
        }
        ensure!(
            !is_over || begin.elapsed() < STUCK + SLICE * u32::try_from(params.slices)?,
            "the machine is too busy to compare times of {} ms",
            SLICE.as_millis()
        );
        switch(rpc.engine_mut(), is_off(slice).then_some(params.off))?;
        pipeline::rate(rpc, SETTLE)?;
        let end = SLICE * u32::try_from(slice + 1)?;
        let left = end.saturating_sub(sys::monotonic_time()?);
        // On a busy machine, the slice may have ended before this process runs in it.
        rates.insert(slice, pipeline::rate(rpc, left.max(SLICE / 4))?);
    }
}
