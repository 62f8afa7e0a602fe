//! Switches and cables: how they connect the hosts, and which queue a frame enters next.
//!
//! Hosts are distributed over racks, `neighbours` at a time. Each rack has a switch, and if there
//! is more than one rack, each has cables to every spine switch. The flow of a frame, which is its
//! sender and its receiver, decides which cable it takes (ECMP), so frames of a flow keep their
//! order. Each switch has one memory for all of its queues. Here a NIC is a switch with one queue.
//!
//! Invariant: no code here reads the bytes of a frame. Called by `path`.

use dunlin_core::Nanos;

use crate::world::net::frames::{End, Frame};
use crate::world::net::queue::{Cable, Full, Marking, Memory, Queue};
use crate::world::net::{HostId, PortId};
use crate::world::rng::Rng;

/// The switches of a network and their connections. Rates are in bytes per second.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Number of racks; the switch of each connects its hosts.
    pub racks: usize,
    /// Number of consecutive hosts that one rack gets before the next rack has its turn.
    pub neighbours: usize,
    /// Switches that connect racks. With one rack there are none.
    pub spines: usize,
    /// Cables from each rack to each spine.
    pub uplinks: usize,
    /// Rate of these cables.
    pub uplink_rate: u64,
    /// Bytes of memory of each switch.
    pub buffer_bytes: u64,
    /// A single queue may take this many times the free part of that memory.
    pub alpha: f64,
    /// Marking by the queues of switches.
    pub marking: Marking,
    /// Time that a frame spends in a switch in addition to its queue.
    pub latency: Nanos,
}

impl Default for Fabric {
    /// One switch with a megabyte of memory, all of which one queue may take.
    fn default() -> Self {
        Self {
            racks: 1,
            neighbours: 1,
            spines: 0,
            uplinks: 0,
            uplink_rate: 0,
            buffer_bytes: 1 << 20,
            alpha: f64::INFINITY,
            marking: Marking::step(100_000),
            latency: Nanos::ZERO,
        }
    }
}

impl Fabric {
    /// The number of paths from one rack to another.
    fn ways(&self) -> usize {
        match self.racks {
            0 | 1 => 0,
            _ => self.spines * self.uplinks,
        }
    }
}

/// All queues of the network.
#[derive(Debug)]
pub(super) struct Wiring {
    config: Fabric,
    queues: Vec<Queue>,
    /// The memories of the racks, then of the spines, then of the NICs.
    memories: Vec<Memory>,
    hosts: Vec<HostWiring>,
}

#[derive(Clone, Copy, Debug)]
struct HostWiring {
    rack: usize,
    /// Indices of the queues from the host to its switch (`up`) and back (`down`).
    up: usize,
    down: usize,
}

impl Wiring {
    /// Makes switches without hosts. `cable`: the time that a bit needs from one end of a cable to
    /// the other.
    pub(super) fn new(config: Fabric, cable: Nanos) -> Self {
        let (racks, ways) = (config.racks.max(1), config.ways());
        let spines = if ways == 0 { 0 } else { config.spines };
        let switch = || Memory::new(config.buffer_bytes, config.alpha);
        let mut wiring = Self {
            memories: std::iter::repeat_with(switch)
                .take(racks + spines)
                .collect(),
            queues: Vec::new(),
            hosts: Vec::new(),
            config,
        };
        let delay = cable + wiring.config.latency;
        let rate = wiring.config.uplink_rate;
        for rack in 0..racks {
            for way in 0..ways {
                let spine = way / wiring.config.uplinks;
                let end = End::Spine(index(spine));
                wiring.add(Cable { rate, delay, end }, rack);
            }
        }
        for rack in 0..racks {
            for way in 0..ways {
                let spine = way / wiring.config.uplinks;
                let end = End::Rack(index(rack));
                wiring.add(Cable { rate, delay, end }, racks + spine);
            }
        }
        wiring
    }

    /// Connects a host; its NIC has room for `nic_bytes`.
    pub(super) fn add_host(&mut self, rate: u64, cable: Nanos, nic_bytes: u64) -> HostId {
        let turn = self.hosts.len() / self.config.neighbours.max(1);
        let rack = turn % self.config.racks.max(1);
        let nic = self.memories.len();
        self.memories.push(Memory::new(nic_bytes, f64::INFINITY));
        let (end, delay) = (End::Ingress(index(rack)), cable + self.config.latency);
        let up = self.add(Cable { rate, delay, end }, nic);
        let (end, delay) = (End::Nic, cable);
        let down = self.add(Cable { rate, delay, end }, rack);
        self.hosts.push(HostWiring { rack, up, down });
        HostId(self.hosts.len() - 1)
    }

    fn add(&mut self, cable: Cable, memory: usize) -> usize {
        self.queues.push(Queue::new(cable, memory));
        self.queues.len() - 1
    }

    /// The rack of `host`.
    pub(super) fn rack_of(&self, host: HostId) -> usize {
        self.hosts[host.0].rack
    }

    /// Puts a frame into the NIC of `host`. Returns when it reaches the switch.
    pub(super) fn send(
        &mut self,
        host: HostId,
        frame: &mut Frame,
        now: Nanos,
    ) -> Result<Nanos, Full> {
        let up = self.hosts[host.0].up;
        self.push(up, frame, now)
    }

    /// When the NIC of `host` will have room for `size` bytes; the present time if it already has.
    pub(super) fn nic_room_at(&mut self, host: HostId, size: u64, now: Nanos) -> Nanos {
        let queue = &mut self.queues[self.hosts[host.0].up];
        queue.room_at(size, &mut self.memories[queue.memory], now)
    }

    /// Puts a frame into the next queue on its path to host `to`, and marks the frame if that queue
    /// is long. Returns when it reaches the end of that cable.
    pub(super) fn forward(
        &mut self,
        frame: &mut Frame,
        to: HostId,
        rng: &mut Rng,
        now: Nanos,
    ) -> Result<Nanos, Full> {
        let at = self.next_queue(frame.end, to, frame.from, frame.to);
        let queue = &mut self.queues[at];
        queue.settle(&mut self.memories[queue.memory], now);
        frame.congestion |= queue.marks(&self.config.marking, rng);
        self.push(at, frame, now)
    }

    fn next_queue(&self, at: End, to: HostId, from_port: PortId, to_port: PortId) -> usize {
        let HostWiring { rack, down, .. } = self.hosts[to.0];
        let racks = self.config.racks.max(1);
        match at {
            End::Ingress(here) | End::Rack(here) if here as usize != rack => {
                let ways = self.config.ways();
                let way = pick(from_port, to_port, 1, ways);
                here as usize * ways + way
            }
            End::Spine(here) => {
                let (ways, uplinks) = (self.config.ways(), self.config.uplinks);
                let way = here as usize * uplinks + pick(from_port, to_port, 2, uplinks);
                (racks + rack) * ways + way
            }
            End::Ingress(_) | End::Rack(_) | End::Nic => down,
        }
    }

    fn push(&mut self, at: usize, frame: &mut Frame, now: Nanos) -> Result<Nanos, Full> {
        let queue = &mut self.queues[at];
        frame.end = queue.end;
        let memory = &mut self.memories[queue.memory];
        let arrives = queue.push(frame.size, memory, now);
        if arrives.is_ok() {
            return arrives;
        }
        // Frames that have left the memory by now make room.
        let of = self.queues[at].memory;
        self.settle(of, now);
        self.queues[at].push(frame.size, &mut self.memories[of], now)
    }

    /// Subtracts the frames that have left the queues of a memory from its count.
    fn settle(&mut self, of: usize, now: Nanos) {
        for queue in self.queues.iter_mut().filter(|queue| queue.memory == of) {
            queue.settle(&mut self.memories[of], now);
        }
    }

    /// Makes the switch send nothing to `host` for `span`, once the frames that are queued have
    /// left.
    pub(super) fn stall(&mut self, host: HostId, now: Nanos, span: Nanos) {
        self.queues[self.hosts[host.0].down].stall(now, span);
    }

    /// Lets all stopped ports send again.
    pub(super) fn end_stalls(&mut self, now: Nanos) {
        for host in &self.hosts {
            let queue = &mut self.queues[host.down];
            queue.end_stall(&mut self.memories[queue.memory], now);
        }
    }

    /// Bytes in the longest queue and in the fullest memory of any switch.
    pub(super) fn fullest(&mut self, now: Nanos) -> (u64, u64) {
        let switches = self.memories.len() - self.hosts.len();
        let mut longest = 0;
        for queue in &mut self.queues {
            queue.settle(&mut self.memories[queue.memory], now);
            if queue.memory < switches {
                longest = longest.max(queue.bytes());
            }
        }
        let used = self.memories[..switches].iter().map(Memory::used);
        (longest, used.max().unwrap_or(0))
    }
}

/// Picks one of `ways` paths, the same for every frame of a flow. `level` makes the choices of
/// different switches independent.
fn pick(from: PortId, to: PortId, level: u64, ways: usize) -> usize {
    let flow = (from.0 as u64) << 32 | to.0 as u64;
    Rng::new(flow ^ level << 62).index(ways)
}

fn index(n: usize) -> u32 {
    u32::try_from(n).expect("a network has fewer than 2^32 queues")
}

#[cfg(test)]
mod tests;
