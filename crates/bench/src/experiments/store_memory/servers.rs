//! Measures servers with limited resident memory: the hit ratio of a trace, and the memory of a
//! full server.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::trace::{self, Trace};
use crate::experiments::memcached::generator;
use crate::experiments::memcached::server::{Kind, Running, STARTING};
use crate::harness::items::{Items, VALUE};
use crate::harness::probe::{Against, Measurement, Metric, Probe, SET_UP};
use harness::process::Process;
use harness::seat::Seats;

const MIB: f64 = (1 << 20) as f64;

/// A server may have up to this many times the resident memory of the other one.
const ALLOWED: f64 = 1.01;

/// MiB by which a server's resident memory grows after its start, for the buffers of its
/// connection.
const GROWS_BY: f64 = 0.5;

/// The most starts of a server until its memory fits.
const STARTS: u32 = 4;

/// A kind of server with this `-m`.
#[derive(Debug)]
pub(super) struct Server {
    kind: Kind,
    memory_mib: u32,
    resident: Rc<Cell<f64>>,
}

impl Server {
    pub(super) fn new(kind: Kind, memory_mib: u32) -> Self {
        Self {
            kind,
            memory_mib,
            resident: Rc::new(Cell::new(0.0)),
        }
    }

    /// The cell with the last measured resident memory in MiB; 0 before the first measurement.
    pub(super) fn resident(&self) -> Rc<Cell<f64>> {
        Rc::clone(&self.resident)
    }

    fn is_ours(&self) -> bool {
        self.kind != Kind::Memcached
    }

    fn start(&self, memory_mib: u32) -> anyhow::Result<Running> {
        let running = Running::start_with(self.kind, memory_mib)?;
        await_answer(running.door())?;
        self.note(&running)?;
        Ok(running)
    }

    /// Measures the resident memory of its process.
    fn note(&self, running: &Running) -> anyhow::Result<f64> {
        self.resident.set(resident_mib(running.id())?);
        Ok(self.resident.get())
    }
}

/// The hit ratio of a trace.
pub(super) struct Hits {
    server: Server,
    trace: Trace,
    /// The resident memory in MiB that the server may have.
    most: Option<Rc<Cell<f64>>>,
}

const HITS: [Metric; 3] = [
    against("hit_ratio", "", 0),
    against("resident_mib", "MiB", 1),
    Metric::alone("given_mib", "MiB"),
];

/// A server with more items than it has room for.
pub(super) struct Filled(pub(super) Server);

const FILLED: [Metric; 2] = [
    against("resident_mib", "MiB", 0),
    Metric::alone("over_memory_percent", "%"),
];

const fn against(name: &'static str, unit: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit,
        against: Against::Baseline(index),
    }
}

impl Hits {
    pub(super) fn new(server: Server, trace: Trace, most: Option<Rc<Cell<f64>>>) -> Self {
        Self {
            server,
            trace,
            most,
        }
    }

    /// The resident memory that the server may have, if the baseline was measured.
    fn most(&self) -> Option<f64> {
        let most = self.most.as_ref().map(|most| most.get());
        most.filter(|most| *most > 0.0)
    }

    /// Starts the server with its own `-m`, or with the largest `-m` that fits into the memory of
    /// the other.
    fn start(&self) -> anyhow::Result<(Running, u32)> {
        let mut memory_mib = self.server.memory_mib;
        for _ in 1..STARTS {
            let running = self.server.start(memory_mib)?;
            let Some(most) = self.most() else {
                return Ok((running, memory_mib));
            };
            let left = (most - GROWS_BY - self.server.resident.get()).floor();
            if left == 0.0 {
                return Ok((running, memory_mib));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a few MiB more or less, and a cast saturates"
            )]
            let next = (f64::from(memory_mib) + left).max(1.0) as u32;
            memory_mib = next;
        }
        Ok((self.server.start(memory_mib)?, memory_mib))
    }
}

impl Probe for Hits {
    fn name(&self) -> &'static str {
        match self.server.is_ours() {
            true => "dunlin memcached",
            false => "memcached with this trace",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &HITS
    }

    fn overhead(&self) -> Duration {
        STARTS * SET_UP + self.trace.takes()
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span: the trace has a fixed number of requests.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let (running, memory_mib) = self.start()?;
        let params = (running.door(), self.trace);
        let mut client = Process::spawn(trace::ROLE, Seats::pick().client, &params)?;
        let hit_ratio: f64 = client.receive(20 * self.trace.takes())?;
        let resident = self.server.note(&running)?;
        Ok(vec![hit_ratio, resident, f64::from(memory_mib)].into())
    }

    fn is_overloaded(&self, medians: &[f64]) -> bool {
        let most = self.most().unwrap_or(f64::INFINITY);
        medians.get(1).is_some_and(|mib| *mib > ALLOWED * most)
    }
}

impl Probe for Filled {
    fn name(&self) -> &'static str {
        match self.0.is_ours() {
            true => "dunlin memcached, full",
            false => "memcached, full",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &FILLED
    }

    fn overhead(&self) -> Duration {
        SET_UP + Duration::from_millis(100) * self.0.memory_mib
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span: keys and values have as many bytes as the memory, and items take more.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let memory_mib = self.0.memory_mib;
        let running = self.0.start(memory_mib)?;
        let params = (running.door(), Items::of_mib(memory_mib, VALUE));
        let mut load = Process::spawn(generator::LOAD, Seats::pick().client, &params)?;
        load.receive::<()>(STARTING)?;
        let resident = self.0.note(&running)?;
        let over = 100.0 * (resident / f64::from(memory_mib) - 1.0);
        Ok(vec![resident, over].into())
    }
}

/// Waits until a server answers: it listens before it has touched its memory.
fn await_answer(door: SocketAddr) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect(door)?;
    socket.set_read_timeout(Some(STARTING))?;
    socket.write_all(b"mn\r\n")?;
    let mut answer = [0; 4];
    socket.read_exact(&mut answer)?;
    ensure!(
        &answer == b"MN\r\n",
        "the server answers {}",
        answer.escape_ascii()
    );
    Ok(())
}

/// Resident memory of a process in MiB, including its reserved huge pages.
pub(super) fn resident_mib(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kib = |name: &str| -> anyhow::Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let words = line.and_then(|line| line.split_whitespace().next());
        let kib = words.with_context(|| format!("the kernel does not show {name}"))?;
        Ok(kib.parse()?)
    };
    Ok((kib("VmRSS:")? + kib("HugetlbPages:")?) * 1024.0 / MIB)
}
