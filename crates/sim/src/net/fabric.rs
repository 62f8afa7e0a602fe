//! Switches and cables: who is connected to whom, and which queue a frame goes to next.
//!
//! Hosts hang on the switches of racks, in turns. If there is more than one rack, each rack has
//! cables to every spine switch, and a frame takes one of them that follows from its flow, that is
//! from whom it goes to whom (ECMP); frames of a flow so keep their order. Each switch has one
//! memory for all of its queues. A NIC is a switch with one queue here.
//!
//! Invariant: nothing here reads a frame. Called by `path`.

use dunlin_core::Nanos;

use crate::net::frames::{End, FrameId, Frames};
use crate::net::queue::{Cable, Departure, Full, Marking, Memory, Queue};
use crate::net::{HostId, PortId};
use crate::rng::Rng;

/// How the switches of a network are made and connected. Rates are in bytes per second.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Switches that hosts are connected to.
    pub racks: usize,
    /// Switches that connect racks. With one rack there are none.
    pub spines: usize,
    /// Cables from each rack to each spine.
    pub uplinks: usize,
    /// Rate of those.
    pub uplink_rate: u64,
    /// Bytes of memory of each switch.
    pub buffer_bytes: u64,
    /// How many times what is free of that a single queue may take.
    pub alpha: f64,
    /// What queues of switches mark.
    pub marking: Marking,
    /// Time that a frame spends in a switch beside its queue.
    pub latency: Nanos,
}

impl Default for Fabric {
    /// One switch with a megabyte, all of which one queue may have.
    fn default() -> Self {
        Self {
            racks: 1,
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
    /// Ways from one rack to another.
    fn ways(&self) -> usize {
        match self.racks {
            0 | 1 => 0,
            _ => self.spines * self.uplinks,
        }
    }
}

/// Where a queue stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueueId(u32);

/// A frame that went into a queue was the first.
pub(super) type Next = Option<(QueueId, Departure)>;

/// All queues of the network.
#[derive(Debug)]
pub(super) struct Wiring {
    config: Fabric,
    queues: Vec<Queue>,
    /// Of the racks, then of the spines, then of the NICs.
    memories: Vec<Memory>,
    /// Queues of switches, those towards hosts included.
    in_switches: Vec<QueueId>,
    hosts: Vec<HostWiring>,
}

#[derive(Clone, Copy, Debug)]
struct HostWiring {
    rack: usize,
    up: QueueId,
    down: QueueId,
}

impl Wiring {
    /// Switches without hosts. `cable`: what a bit takes from one end of a cable to the other.
    pub(super) fn new(config: Fabric, cable: Nanos) -> Self {
        let (racks, ways) = (config.racks.max(1), config.ways());
        let spines = if ways == 0 { 0 } else { config.spines };
        let switch = || Memory::new(config.buffer_bytes, config.alpha);
        let mut wiring = Self {
            memories: std::iter::repeat_with(switch)
                .take(racks + spines)
                .collect(),
            queues: Vec::new(),
            in_switches: Vec::new(),
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
        let rack = self.hosts.len() % self.config.racks.max(1);
        let nic = self.memories.len();
        self.memories.push(Memory::new(nic_bytes, f64::INFINITY));
        let (end, delay) = (End::Ingress(index(rack)), cable + self.config.latency);
        let up = QueueId(index(self.queues.len()));
        self.queues
            .push(Queue::new(Cable { rate, delay, end }, nic));
        let (end, delay) = (End::Nic, cable);
        let down = self.add(Cable { rate, delay, end }, rack);
        self.hosts.push(HostWiring { rack, up, down });
        HostId(self.hosts.len() - 1)
    }

    fn add(&mut self, cable: Cable, memory: usize) -> QueueId {
        let id = QueueId(index(self.queues.len()));
        self.queues.push(Queue::new(cable, memory));
        self.in_switches.push(id);
        id
    }

    /// Puts a frame into the NIC of `host`.
    pub(super) fn send(
        &mut self,
        host: HostId,
        id: FrameId,
        frames: &mut Frames,
        now: Nanos,
    ) -> Result<Next, Full> {
        let up = self.hosts[host.0].up;
        self.push(up, id, frames, now)
    }

    /// Puts a frame into the next queue on its way to host `to`, and marks it if that is long.
    pub(super) fn forward(
        &mut self,
        id: FrameId,
        to: HostId,
        frames: &mut Frames,
        rng: &mut Rng,
        now: Nanos,
    ) -> Result<Next, Full> {
        let frame = frames.at_mut(id);
        let queue = self.next_queue(frame.end, to, frame.from, frame.to);
        frame.congestion |= self.queues[queue.0 as usize].marks(&self.config.marking, rng);
        self.push(queue, id, frames, now)
    }

    fn next_queue(&self, at: End, to: HostId, from_port: PortId, to_port: PortId) -> QueueId {
        let HostWiring { rack, down, .. } = self.hosts[to.0];
        let racks = self.config.racks.max(1);
        match at {
            End::Ingress(here) | End::Rack(here) if here as usize != rack => {
                let ways = self.config.ways();
                let way = pick(from_port, to_port, 1, ways);
                QueueId(index(here as usize * ways + way))
            }
            End::Spine(here) => {
                let (ways, uplinks) = (self.config.ways(), self.config.uplinks);
                let way = here as usize * uplinks + pick(from_port, to_port, 2, uplinks);
                QueueId(index((racks + rack) * ways + way))
            }
            End::Ingress(_) | End::Rack(_) | End::Nic => down,
        }
    }

    fn push(
        &mut self,
        at: QueueId,
        id: FrameId,
        frames: &mut Frames,
        now: Nanos,
    ) -> Result<Next, Full> {
        let queue = &mut self.queues[at.0 as usize];
        let memory = &mut self.memories[queue.memory];
        let first = queue.push(id, frames, memory, now)?;
        Ok(first.map(|departure| (at, departure)))
    }

    /// A frame has left its queue. Returns it, when it arrives, and the departure behind it.
    pub(super) fn pop(
        &mut self,
        at: QueueId,
        ticket: u32,
        frames: &mut Frames,
        now: Nanos,
    ) -> Option<(FrameId, Nanos, Next)> {
        let queue = &mut self.queues[at.0 as usize];
        let memory = &mut self.memories[queue.memory];
        let (id, arrives, next) = queue.pop(ticket, frames, memory, now)?;
        Some((id, arrives, next.map(|departure| (at, departure))))
    }

    /// The switch sends nothing to `host` for `span`.
    pub(super) fn stall(&mut self, host: HostId, now: Nanos, span: Nanos) {
        self.queues[self.hosts[host.0].down.0 as usize].stall(now, span);
    }

    /// Ends all of that. What waited is handed to `late` with the time at which it arrives.
    pub(super) fn end_stalls(
        &mut self,
        now: Nanos,
        frames: &mut Frames,
        mut late: impl FnMut(Nanos, FrameId),
    ) {
        for host in &self.hosts {
            let queue = &mut self.queues[host.down.0 as usize];
            let memory = &mut self.memories[queue.memory];
            queue.end_stall(now, frames, memory, &mut late);
        }
    }

    /// Bytes that wait in the switch for `host`.
    pub(super) fn queued_for(&self, host: HostId) -> u64 {
        self.queues[self.hosts[host.0].down.0 as usize].bytes()
    }

    /// Bytes in the longest queue of any switch.
    pub(super) fn longest(&self) -> u64 {
        let queues = self.in_switches.iter();
        let bytes = queues.map(|id| self.queues[id.0 as usize].bytes());
        bytes.max().unwrap_or(0)
    }

    /// Bytes in the fullest memory of any switch.
    pub(super) fn fullest(&self) -> u64 {
        let nics = self.hosts.len();
        let switches = &self.memories[..self.memories.len() - nics];
        switches.iter().map(Memory::used).max().unwrap_or(0)
    }
}

/// One of `ways`, the same for every frame of a flow. `level` keeps the choices of different
/// switches independent.
fn pick(from: PortId, to: PortId, level: u64, ways: usize) -> usize {
    let flow = (from.0 as u64) << 32 | to.0 as u64;
    Rng::new(flow ^ level << 62).index(ways)
}

fn index(n: usize) -> u32 {
    u32::try_from(n).expect("a network has fewer than 2^32 queues")
}

#[cfg(test)]
mod tests;
