//! A server with 16 threads in the simulator, as in the paper: 14 dispatch threads and 2 workers
//! for scans, or 16 dispatch threads that also scan. 64 clients on 8 hosts have two operations each
//! in flight, 1 % of them scans, of random keys (eRPC §7.2). As in eRPC's program, clients are
//! assigned to threads in turn, and each has a session with one thread: with a random assignment,
//! the queues of some threads would be many times the mean, and gets would wait for gets.
//!
//! The network is the paper's CX3, where an echo of 32 bytes takes 2.1 µs. A get or a scan costs
//! its thread the time that it takes directly on the tree, which is measured first.
//!
//! | file | what it owns |
//! |---|---|
//! | `simulated/nodes.rs` | the processes: threads of the server, and clients |
//! | `simulated/pool.rs` | workers that all dispatch threads share |
//!
//! This file has the world: hosts, network and sessions.

mod nodes;
mod pool;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use dunlin_core::transport::PeerId;
use dunlin_core::{Nanos, SessionOptions};
use dunlin_sim::world::net::{CpuCosts, Fabric};
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{Cluster, Net, NetConfig, NetHandle, PortId, World};

use super::scans::Scans;
use super::tree::{Costs, SharedCosts};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use nodes::{ClientNode, Process, ServerNode};
use pool::Pool;

/// Threads of the server.
pub(super) const THREADS: usize = 16;

/// Threads that are workers, in cases with workers.
const WORKERS: usize = 2;

const CLIENTS: usize = 64;
const CLIENT_HOSTS: usize = 8;

/// Operations of a client that are in flight.
const OUTSTANDING: usize = 2;

/// Simulated time of a measurement, and of the warm-up before it.
const SPAN: Nanos = Nanos::from_millis(10);
const WARM_UP: Nanos = Nanos::from_millis(1);

/// Simulated time of echoes, one at a time.
const ECHOES: Nanos = Nanos::from_millis(30);

/// The times and the rate of gets have a baseline; the costs on the tree and the echo have none.
const METRICS: [Metric; 6] = [
    Metric {
        name: "get_p99",
        unit: "ns",
        against: Against::Baseline(0),
    },
    Metric {
        name: "get_p50",
        unit: "ns",
        against: Against::Baseline(1),
    },
    Metric {
        name: "gets_per_s",
        unit: "1/s",
        against: Against::Baseline(2),
    },
    Metric::alone("tree_get", "ns"),
    Metric::alone("tree_scan", "ns"),
    Metric::alone("echo_p50", "ns"),
];

/// The paper's CX3 cluster. The time until a NIC reads a packet is set so that an echo takes 2.1
/// µs.
fn cx3() -> NetConfig {
    NetConfig {
        line_rate: 7_000_000_000,
        cable: Nanos(50),
        nic_waits: true,
        fabric: Fabric {
            latency: Nanos(200),
            ..Fabric::default()
        },
        // Headers of InfiniBand.
        frame_overhead: 60,
        dma: (Nanos(600), Nanos(600)),
        cpu: CpuCosts {
            iteration: Nanos(50),
            packet: Nanos(50),
            kilobyte: Nanos(100),
        },
        ..NetConfig::default()
    }
}

/// The state that all rows share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    costs: SharedCosts,
    /// The values of seeds with all threads in dispatch. These values are a row, and the baseline
    /// of the row with workers. They are kept, because a seed always gives the same values.
    dispatch: Rc<RefCell<BTreeMap<u64, Vec<f64>>>>,
}

/// A server, and its clients.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    scans: Scans,
    shared: Shared,
    /// Each measurement has its own seed.
    seed: u64,
}

impl Threads {
    pub(super) const fn new(scans: Scans, shared: Shared) -> Self {
        Self {
            scans,
            shared,
            seed: 0,
        }
    }

    fn values(&self) -> anyhow::Result<Vec<f64>> {
        let costs = self.shared.costs.get()?;
        let times = run(self.scans, costs, self.seed)?;
        let cost = |time: Duration| time.as_secs_f64() * 1e9;
        Ok(vec![
            times.p99,
            times.p50,
            times.per_s,
            cost(costs.get),
            cost(costs.scan),
            echo(self.seed)?,
        ])
    }
}

impl Probe for Threads {
    fn name(&self) -> &'static str {
        match self.scans {
            Scans::Dispatch => "all threads dispatch",
            Scans::None | Scans::Workers => "simulated",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    /// The processor time that a simulation takes here, with something to spare.
    fn overhead(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span, which is real time: the simulator has its own clock.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        self.seed += 1;
        if self.scans != Scans::Dispatch {
            return Ok(self.values()?.into());
        }
        let known = self.shared.dispatch.borrow().get(&self.seed).cloned();
        let values = known.map_or_else(|| self.values(), Ok)?;
        let mut dispatch = self.shared.dispatch.borrow_mut();
        dispatch.insert(self.seed, values.clone());
        Ok(values.into())
    }
}

/// Times of gets in ns, and their rate.
struct Times {
    p50: f64,
    p99: f64,
    per_s: f64,
}

/// Makes the processes. The server's threads have the first ports.
struct Processes {
    dispatch: usize,
    pool: Option<Pool>,
    costs: Costs,
    seed: u64,
}

impl Cluster for Processes {
    type Node = Process;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Process {
        let port = process.port;
        let seed = self.seed.wrapping_mul(31).wrapping_add(port.0 as u64);
        match port.0 < self.dispatch {
            true => {
                let pool = self.pool.clone();
                let server = ServerNode::boot(net, port, pool, self.costs, seed);
                Process::Server(Box::new(server))
            }
            false => Process::Client(Box::new(ClientNode::boot(net, port, seed))),
        }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

fn run(scans: Scans, costs: Costs, seed: u64) -> anyhow::Result<Times> {
    let pool = (scans == Scans::Workers).then(|| Pool::new(WORKERS, costs.scan.into()));
    let dispatch = match pool {
        Some(_) => THREADS - WORKERS,
        None => THREADS,
    };
    let processes = Processes {
        dispatch,
        pool,
        costs,
        seed,
    };
    measure(processes, CLIENTS, OUTSTANDING, SPAN)
}

/// The median time in ns of an echo, which shows whether the network is the paper's: a get that
/// costs nothing, by one client of one thread.
fn echo(seed: u64) -> anyhow::Result<f64> {
    let processes = Processes {
        dispatch: 1,
        pool: None,
        costs: Costs::NONE,
        seed,
    };
    Ok(measure(processes, 1, 1, ECHOES)?.p50)
}

/// Lets clients work, each with this number of operations in flight.
fn measure(
    processes: Processes,
    clients: usize,
    outstanding: usize,
    span: Nanos,
) -> anyhow::Result<Times> {
    let (dispatch, seed) = (processes.dispatch, processes.seed);
    let net = Net::untraced(cx3(), seed);
    let mut world = World::new(&net, processes, seed);
    let server = world.add_host();
    let hosts: Vec<_> = (0..CLIENT_HOSTS).map(|_| world.add_host()).collect();
    let threads: Vec<PortId> = (0..dispatch).map(|_| world.add_port(server)).collect();
    let clients = (0..clients).map(|client| world.add_port(hosts[client % CLIENT_HOSTS]));
    let clients: Vec<PortId> = clients.collect();
    for port in threads.iter().chain(&clients) {
        world.act(Act::Boot(*port));
    }
    for (client, thread) in clients.iter().zip(threads.iter().cycle()) {
        connect(&mut world, *client, *thread).context("no memory for sessions")?;
    }
    for client in &clients {
        of_client(&mut world, *client)?.begin(outstanding)?;
        world.poke(*client);
    }
    world.run_until(WARM_UP);
    for client in &clients {
        of_client(&mut world, *client)?.forget();
    }
    world.run_until(WARM_UP + span);
    let mut all = Vec::new();
    for client in &clients {
        all.append(&mut of_client(&mut world, *client)?.take_times()?);
    }
    times_of(all, span)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a get, and counts of gets, are far below 2^53"
)]
fn times_of(mut all: Vec<Nanos>, span: Nanos) -> anyhow::Result<Times> {
    anyhow::ensure!(all.len() > 10_000, "only {} gets have ended", all.len());
    all.sort_unstable();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100].0 as f64;
    Ok(Times {
        p50: at(50),
        p99: at(99),
        per_s: all.len() as f64 / (span.0 as f64 / 1e9),
    })
}

fn of_client(world: &mut World<Processes>, port: PortId) -> anyhow::Result<&mut ClientNode> {
    match world.node(port) {
        Some(Process::Client(node)) => Ok(node),
        _ => anyhow::bail!("a client has ended"),
    }
}

/// Makes a session from a client to a thread of the server.
fn connect(world: &mut World<Processes>, client: PortId, thread: PortId) -> Option<()> {
    let peer = |port: PortId| PeerId(u32::try_from(port.0).expect("there are a few"));
    let Process::Client(node) = world.node(client)? else {
        return None;
    };
    let session = node.rpc.lifecycle().open(&SessionOptions::default()).ok()?;
    let offer = node.rpc.lifecycle().offer_of(session)?;
    let Process::Server(node) = world.node(thread)? else {
        return None;
    };
    let accepted = node.rpc.lifecycle().accept(peer(client), &offer);
    let (_, answer) = accepted.ok()?;
    let Process::Client(node) = world.node(client)? else {
        return None;
    };
    let opened = node.rpc.lifecycle().opened(session, peer(thread), &answer);
    opened.ok()?;
    node.add(session);
    Some(())
}

#[cfg(test)]
mod tests;
