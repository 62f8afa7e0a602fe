//! Replicas and a client in the simulator, on the paper's CX5 cluster: hosts at 40 Gb/s and one
//! switch that adds 300 ns. An echo of 32 bytes takes 2.3 µs there, including 850 ns in each host
//! (eRPC §6.1). Three steps of Raft add 0.9 µs to two such echoes (eRPC §7.1), so a step takes 300
//! ns of the thread.
//!
//! | file | what it owns |
//! |---|---|
//! | `simulated/nodes.rs` | the processes: replicas, and a client that puts |
//! | `simulated/latency.rs` | one put at a time, and echoes |
//! | `simulated/failover.rs` | leaders that are killed |
//!
//! This file has the world of both experiments: hosts, network and sessions.

pub(super) mod failover;
pub(super) mod latency;
mod nodes;

use std::collections::VecDeque;

use dunlin::replica::{Member, Members, Options, Replica};
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOffer, SessionOptions};
use dunlin_sim::world::net::{CpuCosts, Fabric};
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{Cluster, Net, NetConfig, NetHandle, PortId, SimEndpoint, World};

use nodes::{ClientNode, Process, ReplicaNode};

/// Replicas of a cluster. They have the first ports, and the client has the next one.
const REPLICAS: usize = 3;
const CLIENT: PortId = PortId(REPLICAS);

/// The cost of a step of Raft, for the thread.
const STEP: Nanos = Nanos(300);

/// Time between two looks at the processes from outside.
const GLANCE: Nanos = Nanos::from_micros(50);

/// The paper's CX5 cluster. `dma`, the time until a NIC reads a packet, is chosen so that an echo
/// takes 2.3 µs.
fn cx5() -> NetConfig {
    NetConfig {
        line_rate: 5_000_000_000,
        cable: Nanos(50),
        tells_base_rtt: true,
        fabric: Fabric {
            latency: Nanos(300),
            ..Fabric::default()
        },
        // Ethernet with its gap and checksum, IP and UDP.
        frame_overhead: 66,
        dma: (Nanos(585), Nanos(585)),
        cpu: CpuCosts {
            // Some 40 instructions (`budget.toml`). Packets cost extra.
            iteration: Nanos(10),
            packet: Nanos(50),
            kilobyte: Nanos(100),
        },
        ..NetConfig::default()
    }
}

/// Makes the processes.
struct Processes {
    members: Members,
    seed: u64,
}

impl Cluster for Processes {
    type Node = Process;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Process {
        let port = process.port;
        let seed = self.seed.wrapping_mul(31).wrapping_add(port.0 as u64);
        if port == CLIENT {
            let addresses = (0..REPLICAS).map(|port| port.to_string());
            let client = ClientNode::boot(net, port, addresses.collect(), seed);
            return Process::Client(Box::new(client));
        }
        let mut replica = Replica::new(id_of(port.0), Options::DEFAULT);
        let seated = replica.on_bootstrap(self.members.clone());
        seated.expect("the replica is a member");
        Process::Replica(Box::new(ReplicaNode::boot(net, port, replica, seed)))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

const fn id_of(port: usize) -> u64 {
    port as u64 + 1
}

/// A session, by the ports and handles of its two ends.
#[derive(Clone, Copy)]
struct Tie([(PortId, Session); 2]);

/// The world.
struct Stage {
    world: World<Processes>,
    ties: Vec<Tie>,
}

impl Stage {
    /// Starts three replicas and a client.
    fn new(seed: u64) -> Self {
        let net = Net::untraced(cx5(), seed);
        let member = |port: usize| Member {
            id: id_of(port),
            address: port.to_string(),
        };
        let members = Members::new((0..REPLICAS).map(member)).expect("three are a cluster");
        let mut world = World::new(&net, Processes { members, seed }, seed);
        for _ in 0..=REPLICAS {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        Self {
            world,
            ties: Vec::new(),
        }
    }

    /// Runs the world for this time, and makes the sessions that processes want.
    fn run_for(&mut self, time: Nanos) {
        let end = self.world.now() + time;
        while self.world.now() < end {
            self.grant();
            let next = (self.world.now() + GLANCE).min(end);
            self.world.run_until(next);
        }
        self.grant();
    }

    /// Runs the world until a replica leads and has applied an entry of its term, and returns its
    /// port; `None`, if that does not happen in time.
    fn elect(&mut self, within: Nanos) -> Option<PortId> {
        let end = self.world.now() + within;
        while self.world.now() < end {
            self.run_for(GLANCE.times(20));
            let leads = |port: &usize| {
                let node = self
                    .replica(PortId(*port))
                    .and_then(|it| it.rpc.app().node());
                node.is_some_and(|node| node.leads() && node.applied() == node.log().last())
            };
            let mut ports = 0..REPLICAS;
            if let Some(port) = ports.find(leads) {
                return Some(PortId(port));
            }
        }
        None
    }

    fn replica(&mut self, port: PortId) -> Option<&mut ReplicaNode> {
        match self.world.node(port) {
            Some(Process::Replica(node)) => Some(node),
            _ => None,
        }
    }

    fn client(&mut self) -> &mut ClientNode {
        match self.world.node(CLIENT) {
            Some(Process::Client(node)) => node,
            _ => unreachable!("the client always runs"),
        }
    }

    /// Makes the sessions that processes want.
    fn grant(&mut self) {
        for port in (0..=REPLICAS).map(PortId) {
            let mut wishes = match self.world.node(port) {
                Some(node) => std::mem::take(node.wishes()),
                None => VecDeque::new(),
            };
            while let Some(address) = wishes.pop_front() {
                let far = address.parse().map(PortId);
                let made = far.ok().and_then(|far| self.connect(port, far));
                if let Some(node) = self.world.node(port) {
                    node.on_connected(&address, made);
                }
                self.world.poke(port);
            }
        }
    }

    /// Makes a session between two processes, if both run.
    fn connect(&mut self, near: PortId, far: PortId) -> Option<Session> {
        self.replica(far)?;
        let (session, offer) = self.world.node(near)?.offer()?;
        let accepted = self
            .replica(far)?
            .rpc
            .lifecycle()
            .accept(peer(near), &offer);
        let (theirs, answer) = accepted.ok()?;
        self.world.node(near)?.opened(session, peer(far), &answer)?;
        self.ties.push(Tie([(near, session), (far, theirs)]));
        Some(session)
    }

    /// Kills a process. The others notice it now, as a nexus does when the sockets of its control
    /// plane close.
    fn kill(&mut self, victim: PortId) {
        self.world.act(Act::Crash(victim));
        for tie in std::mem::take(&mut self.ties) {
            let Some(dead) = tie.0.iter().position(|(port, _)| *port == victim) else {
                self.ties.push(tie);
                continue;
            };
            let (port, session) = tie.0[1 - dead];
            if let Some(node) = self.world.node(port) {
                node.close(session, CloseReason::PeerFailed);
                self.world.poke(port);
            }
        }
    }
}

fn peer(port: PortId) -> PeerId {
    PeerId(u32::try_from(port.0).expect("there are four"))
}

/// Opens a session, which then waits for the answer to its offer.
fn offer<App>(rpc: &mut SimEndpoint<App>) -> Option<(Session, SessionOffer)> {
    let mut lifecycle = rpc.lifecycle();
    let session = lifecycle.open(&SessionOptions::default()).ok()?;
    Some((session, lifecycle.offer_of(session)?))
}
