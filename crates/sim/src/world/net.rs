//! The network: hosts on one switch or on racks of a two-tier fabric, ports (the NIC queues of one
//! endpoint) on the hosts, frames in flight, and their faults (design §12, §13).
//!
//! A frame's path: the endpoint's burst; DMA, some time later, in order; the NIC and the host's
//! cable; the switch of its rack, where faults strike; perhaps a spine switch and the switch of
//! another rack; the port's bounded RX queue. NICs and switches have bounded memory. Invariant: the
//! fate of a frame does not depend on its bytes. Called by `world`, which runs the endpoints, and
//! through [`SimRx`] and [`SimTx`] by the endpoints themselves.

mod address;
mod capture;
pub(crate) mod channels;
mod config;
mod counters;
mod descriptors;
mod fabric;
mod fact;
mod faults;
mod frames;
mod packet;
mod path;
mod port;
mod queue;
mod transport;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use dunlin_core::Nanos;

pub use address::{HostId, PortId};
pub use capture::{Capture, Captured};
pub use config::{CpuCosts, HandOver, NetConfig};
pub use counters::NetCounters;
pub use descriptors::Fd;
pub use fabric::Fabric;
pub use faults::FaultRates;
pub use packet::StagedPackets;
pub use port::Traffic;
pub use queue::Marking;
pub use transport::{SimEndpoint, SimRx, SimTransport, SimTx, take_reports};

use crate::world::clock::SimClock;
use crate::world::events::EventQueue;
use crate::world::hostile::Tap;
use crate::world::record::Recorder;
use crate::world::rng::{Ppm, Rng};
use crate::world::trace::Trace;
use fabric::Wiring;
use frames::{FrameId, Frames};
use port::Port;

/// Events for the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// A frame lies in the RX queue of this port.
    Arrived(PortId),
    /// The transport has finished with a burst of this port.
    Sent(PortId),
    /// A time that the world had scheduled has come; the number is the one that the world gave.
    Due(u64),
}

/// The network, shared by the world and by all halves of transports.
pub type NetHandle = Rc<RefCell<Net>>;

/// State of the network.
#[derive(Debug)]
pub struct Net {
    config: NetConfig,
    time: Rc<Cell<Nanos>>,
    events: EventQueue<Event>,
    rng: Rng,
    rates: FaultRates,
    wiring: Wiring,
    frames: Frames,
    hosts: Vec<Host>,
    ports: Vec<Port>,
    blocked: BTreeSet<(HostId, HostId)>,
    tap: Tap,
    capture: Option<Capture>,
    /// Buffers of dropped and delivered frames, for reuse.
    spare: Vec<Vec<u8>>,
    /// Descriptors that are open, in processes and in transit between them.
    descriptors: Rc<Cell<u64>>,
    /// Counts so far.
    pub counters: NetCounters,
    /// The last events.
    pub trace: Trace,
    /// The recorder, for a run that is compared.
    pub(crate) record: Recorder,
    violation: Option<String>,
    digest: u64,
}

#[derive(Debug)]
struct Host {
    connected: bool,
    /// Ports whose frames wait because the NIC has no room, in the order of their turns.
    waiting: VecDeque<PortId>,
    /// Number of further frames to this host that the present burst of losses takes.
    losing: u32,
}

#[derive(Debug)]
enum Event {
    /// The NIC reads the first burst of a port, unless its process has died.
    Dma(u32, u32),
    /// The NIC of a host has room again.
    Room(HostId),
    /// A frame is at the end of a cable.
    Arrive(FrameId),
    /// A frame has reached its host, by whatever path.
    Deliver(FrameId),
    Due(u64),
}

impl Net {
    /// A network without hosts.
    pub fn new(config: NetConfig, seed: u64, trace: Trace) -> NetHandle {
        Rc::new(RefCell::new(Self {
            wiring: Wiring::new(config.fabric.clone(), config.cable),
            frames: Frames::default(),
            config,
            time: Rc::default(),
            events: EventQueue::default(),
            rng: Rng::new(seed),
            rates: FaultRates::NONE,
            hosts: Vec::new(),
            ports: Vec::new(),
            blocked: BTreeSet::new(),
            tap: Tap::default(),
            capture: None,
            spare: Vec::new(),
            descriptors: Rc::default(),
            counters: NetCounters::default(),
            trace,
            record: Recorder::default(),
            violation: None,
            digest: 0,
        }))
    }

    /// A network without hosts, faults and trace.
    pub fn untraced(config: NetConfig, seed: u64) -> NetHandle {
        Self::new(config, seed, Trace::new(false))
    }

    /// The default network, without hosts and faults.
    pub fn sound(seed: u64) -> NetHandle {
        Self::untraced(NetConfig::default(), seed)
    }

    /// The default network, without hosts, with all kinds of faults except damage, drawn from
    /// `rng`. Tests of message contents use it, because damage that no checksum detects would
    /// change messages.
    pub fn undamaged(rng: &mut Rng) -> NetHandle {
        let net = Self::sound(rng.next_u64());
        net.borrow_mut().set_rates(FaultRates {
            damage: Ppm::NEVER,
            ..FaultRates::draw(rng)
        });
        net
    }

    /// Descriptors that are open, in processes and in transit between them.
    pub(crate) fn descriptors(&self) -> u64 {
        self.descriptors.get()
    }

    /// Adds a host and its cable.
    pub fn add_host(&mut self) -> HostId {
        let config = &self.config;
        self.hosts.push(Host {
            connected: true,
            waiting: VecDeque::new(),
            losing: 0,
        });
        self.wiring
            .add_host(config.line_rate, config.cable, config.nic_bytes)
    }

    /// Adds a port to `host`. No process listens on it before [`SimTransport::open`].
    pub fn add_port(&mut self, host: HostId) -> PortId {
        self.ports
            .push(Port::new(host, SimClock::new(Rc::clone(&self.time))));
        PortId(self.ports.len() - 1)
    }

    /// The time of the world.
    pub fn now(&self) -> Nanos {
        self.time.get()
    }

    /// Least cost of an iteration of an event loop.
    pub fn iteration_cost(&self) -> Nanos {
        self.config.cpu.iteration
    }

    /// The clock of the thread that owns `port`.
    pub fn clock(&self, port: PortId) -> SimClock {
        self.ports[port.0].clock.clone()
    }

    /// The host of `port`.
    pub fn host_of(&self, port: PortId) -> HostId {
        self.ports[port.0].host
    }

    /// Frames that `port` has sent and received.
    pub fn traffic(&self, port: PortId) -> Traffic {
        self.ports[port.0].traffic
    }

    /// Bytes in the longest queue and in the fullest memory of any switch.
    pub fn fullest(&mut self) -> (u64, u64) {
        self.wiring.fullest(self.time.get())
    }

    /// Whether some frames that `port` handed over have not been read from its memory yet.
    pub fn is_sending(&self, port: PortId) -> bool {
        self.ports[port.0].is_sending()
    }

    /// Frames that wait in the RX queue of `port`.
    pub fn waiting(&self, port: PortId) -> usize {
        self.ports[port.0].rx.len()
    }

    /// Sets how often faults strike from now on.
    pub fn set_rates(&mut self, rates: FaultRates) {
        self.rates = rates;
    }

    /// Pulls the cable of `host` or puts it back.
    pub fn set_connected(&mut self, host: HostId, connected: bool) {
        self.hosts[host.0].connected = connected;
    }

    /// Begins or stops dropping everything that `from` sends to `to`; the other direction is
    /// unaffected.
    pub fn set_blocked(&mut self, from: HostId, to: HostId, blocked: bool) {
        if blocked {
            self.blocked.insert((from, to));
        } else {
            self.blocked.remove(&(from, to));
        }
    }

    /// True if a frame from `from` has a path to `to` now.
    pub fn has_path(&self, from: HostId, to: HostId) -> bool {
        let connected = self.hosts[from.0].connected && self.hosts[to.0].connected;
        connected && !self.blocked.contains(&(from, to))
    }

    /// Ends every lasting fault: the network is sound from now on.
    pub fn heal(&mut self) {
        self.rates = FaultRates::NONE;
        self.blocked.clear();
        let now = self.time.get();
        for host in &mut self.hosts {
            host.connected = true;
            host.losing = 0;
        }
        self.wiring.end_stalls(now);
    }

    /// Kills the process on `port`: its queues are gone, with the frames that it was sending.
    pub fn kill(&mut self, port: PortId) {
        self.ports[port.0].kill();
    }

    /// Makes the NIC read, now, all frames that `port` is sending.
    pub fn drain(&mut self, port: PortId) {
        self.read_bursts(port, Nanos::MAX);
    }

    /// Asks for [`Happening::Due`] at `at`.
    pub fn schedule(&mut self, at: Nanos, number: u64) {
        self.events.push(at, Event::Due(number));
    }

    /// Advances the time to the next event to which the world must react. If there is none until
    /// `end`, the time becomes `end`, and the result is `None`.
    pub fn step(&mut self, end: Nanos) -> Option<Happening> {
        loop {
            let frames = &self.frames;
            let next = self.events.pop_until(end, |event| match event {
                Event::Arrive(id) | Event::Deliver(id) => frames.prefetch(*id),
                Event::Dma(..) | Event::Room(_) | Event::Due(_) => {}
            });
            let Some((at, event)) = next else {
                self.time.set(self.time.get().max(end));
                return None;
            };
            self.time.set(at);
            let happening = match event {
                Event::Dma(port, life) => self.on_dma(PortId(port as usize), life),
                Event::Room(host) => self.on_room(host),
                Event::Arrive(id) => self.on_arrival(id),
                Event::Deliver(id) => self.deliver(id),
                Event::Due(number) => Some(Happening::Due(number)),
            };
            if happening.is_some() {
                return happening;
            }
        }
    }

    /// Puts a forged frame on the wire, which arrives at `to` at once.
    pub fn inject(&mut self, to: PortId, bytes: &[u8]) {
        self.counters.hostile += 1;
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        let id = self.frame(to, to, copy, 0);
        self.events.push(self.now(), Event::Deliver(id));
    }

    /// Passes every frame that arrives to `capture`.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// The recorder at the switch.
    pub fn tap(&mut self) -> &mut Tap {
        &mut self.tap
    }

    /// Records that an invariant was broken. The first report counts.
    pub fn violate(&mut self, what: String) {
        let now = self.now();
        self.trace.note(now, || format!("VIOLATION {what}"));
        self.violation.get_or_insert(what);
    }

    /// The first broken invariant.
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// A number that follows from all deliveries: receiver, time and content.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Adds a line to the trace at the present time.
    pub fn note(&mut self, what: impl FnOnce() -> String) {
        let now = self.time.get();
        self.trace.note(now, what);
    }
}

#[cfg(test)]
mod tests;
