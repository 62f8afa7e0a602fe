//! The world: processes on the ports of a network, which run in virtual time when they get an
//! event; their control plane; pauses, crashes and restarts (design §13).
//!
//! A process is one [`Node`] on one port. It runs when a frame or a control message arrives and
//! when its own wake-up is due, but not before the cost of its last iteration has passed, and not
//! while its host is paused. Invariant: the same seeds give the same run. The world does not know
//! the protocol. Called by scenarios.

mod act;
mod control;
mod node;
mod streams;

use std::rc::Rc;

use dunlin_core::Nanos;

use crate::world::clock::SimClock;
use crate::world::net::{Happening, HostId, NetHandle, PortId};
use crate::world::rng::Rng;
pub use act::Act;
pub use node::{Cluster, Node, ProcessId, StreamEvent, StreamRequest};
use streams::{Lane, Streams};

/// The world and its processes.
pub struct World<C: Cluster> {
    /// Starts the processes, and learns of their ends.
    pub cluster: C,
    net: NetHandle,
    ports: Vec<Process<C::Node>>,
    paused: Vec<bool>,
    streams: Streams,
    due: Vec<Due>,
    free: Vec<usize>,
    requests: Vec<StreamRequest>,
    asked: Option<u64>,
    iterations: u64,
}

#[derive(Debug)]
struct Process<N> {
    node: Option<N>,
    life: u32,
    host: HostId,
    clock: SimClock,
    /// Until this time, the process is busy with its last iteration.
    busy_until: Nanos,
    /// When it will run, and a number that invalidates earlier plans.
    planned: Nanos,
    ticket: u64,
    /// When its control thread will run, and a number that invalidates earlier plans.
    tick_planned: Nanos,
    tick_ticket: u64,
    /// Number of consecutive iterations, without an event between them, after which the process
    /// wanted to run again immediately.
    restless: u32,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    Run(PortId, u64),
    Tick(PortId, u64),
    Lane(Lane),
    Act(Act),
}

/// An endpoint that wants to run again immediately this many times in a row wastes a core.
const RESTLESS_LIMIT: u32 = 1000;
/// Time between the first iterations of an endpoint that spins; it doubles with each iteration.
const SPIN: Nanos = Nanos(200);
const SPIN_DOUBLINGS: u32 = 8;
/// Longest time until a process that waits for its transport notices that the transport has
/// finished.
const SENT: Nanos = Nanos::from_micros(1);
/// Cache lines of a process that are prefetched when it is about to run.
const HOT_LINES: usize = 24;

impl<C: Cluster> World<C> {
    /// Makes a world on `net` whose control plane draws its delays from `seed`.
    pub fn new(net: &NetHandle, cluster: C, seed: u64) -> Self {
        Self {
            cluster,
            net: Rc::clone(net),
            ports: Vec::new(),
            paused: Vec::new(),
            streams: Streams::new(Rng::new(seed)),
            due: Vec::new(),
            free: Vec::new(),
            requests: Vec::new(),
            asked: None,
            iterations: 0,
        }
    }

    /// Adds a host.
    pub fn add_host(&mut self) -> HostId {
        self.paused.push(false);
        self.net.borrow_mut().add_host()
    }

    /// Adds a port to `host`; [`Act::Boot`] starts a process there.
    pub fn add_port(&mut self, host: HostId) -> PortId {
        let port = self.net.borrow_mut().add_port(host);
        self.ports.push(Process {
            node: None,
            life: 0,
            host,
            clock: self.net.borrow().clock(port),
            busy_until: Nanos::ZERO,
            planned: Nanos::MAX,
            ticket: 0,
            tick_planned: Nanos::MAX,
            tick_ticket: 0,
            restless: 0,
        });
        port
    }

    /// The process on `port`, if one is alive.
    pub fn node(&mut self, port: PortId) -> Option<&mut C::Node> {
        self.ports[port.0].node.as_mut()
    }

    /// The number, counted from 1, of the last process on the port, alive or not.
    pub fn life(&self, port: PortId) -> u32 {
        self.ports[port.0].life
    }

    /// The number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Iterations of event loops so far.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The network.
    pub fn net(&self) -> &NetHandle {
        &self.net
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.net.borrow().now()
    }

    /// Plans `act` for time `at`.
    pub fn at(&mut self, at: Nanos, act: Act) {
        self.plan(at, Due::Act(act));
    }

    /// Runs the process on `port` as soon as possible, because its user has given it work.
    pub fn poke(&mut self, port: PortId) {
        let now = self.now();
        self.plan_run(port, now);
    }

    /// Sets the clock of a port: it showed `origin` when the world began. A process on the port
    /// runs as soon as possible, because its next run was planned by the earlier clock.
    pub fn set_clock(&mut self, port: PortId, origin: Nanos) {
        self.net.borrow().clock(port).set_origin(origin);
        self.poke(port);
    }

    /// Runs the world until an [`Act::Ask`], and returns its number. Returns `None` at `end`, or
    /// when an invariant is broken; then the time is before `end`.
    pub fn run_until(&mut self, end: Nanos) -> Option<u64> {
        loop {
            let happening = {
                let mut net = self.net.borrow_mut();
                if net.violation().is_some() {
                    return None;
                }
                net.step(end)?
            };
            match happening {
                Happening::Arrived(port) => self.on_arrival(port),
                Happening::Sent(port) => self.on_sent(port),
                Happening::Due(number) => self.on_due(number),
            }
            if let Some(number) = self.asked.take() {
                return Some(number);
            }
        }
    }

    /// Carries out `act` now.
    pub fn act(&mut self, act: Act) {
        let net = Rc::clone(&self.net);
        net.borrow_mut().note(|| format!("{act:?}"));
        net.borrow().record.note_world(self.now(), &act);
        match act {
            Act::Pause(host) => self.paused[host.0] = true,
            Act::Resume(host) => self.resume(host),
            Act::Crash(port) => self.crash(port),
            Act::Exit(port) => self.exit(port),
            Act::Boot(port) => self.boot(port),
            Act::Block(from, to) => self.net.borrow_mut().set_blocked(from, to, true),
            Act::Unblock(from, to) => self.net.borrow_mut().set_blocked(from, to, false),
            Act::Unplug(host) => self.net.borrow_mut().set_connected(host, false),
            Act::Plug(host) => self.net.borrow_mut().set_connected(host, true),
            Act::Heal => self.heal(),
            Act::Ask(number) => self.asked = Some(number),
        }
    }

    fn heal(&mut self) {
        self.net.borrow_mut().heal();
        for host in 0..self.paused.len() {
            self.resume(HostId(host));
        }
        for port in 0..self.ports.len() {
            self.boot(PortId(port));
        }
    }

    fn resume(&mut self, host: HostId) {
        let stood_still = std::mem::take(&mut self.paused[host.0]);
        for port in 0..self.ports.len() {
            if self.ports[port].host == host {
                if let Some(node) = self.ports[port].node.as_mut().filter(|_| stood_still) {
                    node.on_resume();
                }
                self.poke(PortId(port));
                self.plan_tick(PortId(port), Nanos::ZERO);
            }
        }
    }

    fn crash(&mut self, port: PortId) {
        let Some(node) = self.ports[port.0].node.as_mut() else {
            return;
        };
        node.on_end();
        let process = self.process(port);
        self.cluster.on_end(process);
        // The NIC forgets the process first: frames that it has not read are lost with the memory.
        self.net.borrow_mut().kill(port);
        self.ports[port.0].node = None;
        self.close_streams(process);
    }

    fn exit(&mut self, port: PortId) {
        let Some(node) = self.ports[port.0].node.as_mut() else {
            return;
        };
        node.on_exit();
        node.on_end();
        self.collect(port);
        let process = self.process(port);
        self.cluster.on_end(process);
        self.ports[port.0].node = None;
        // The NIC now reads waiting frames, because the process frees their memory.
        self.net.borrow_mut().drain(port);
        self.net.borrow_mut().kill(port);
        self.close_streams(process);
    }

    fn close_streams(&mut self, process: ProcessId) {
        for name in self.streams.of(process) {
            let plan = self.streams.close(process, name, self.now());
            self.plan_lane(plan);
        }
    }

    fn boot(&mut self, port: PortId) {
        if self.ports[port.0].node.is_some() {
            return;
        }
        let process = &mut self.ports[port.0];
        process.life += 1;
        process.busy_until = Nanos::ZERO;
        let id = ProcessId {
            port,
            life: process.life,
        };
        process.node = Some(self.cluster.boot(&self.net, id));
        self.poke(port);
    }

    fn on_arrival(&mut self, port: PortId) {
        self.ports[port.0].restless = 0;
        self.poke(port);
    }

    /// Wakes an endpoint that may spin until a transmission is done: see [`Self::run`]. Other
    /// endpoints only have memory to take back, which can wait for the next frame.
    fn on_sent(&mut self, port: PortId) {
        if self.ports[port.0].restless > 0 {
            let soon = self.now() + SENT;
            self.plan_run(port, soon);
        }
    }

    fn on_due(&mut self, number: u64) {
        let at = usize::try_from(number).expect("it was an index");
        self.free.push(at);
        match self.due[at] {
            Due::Run(port, ticket) if self.ports[port.0].ticket == ticket => self.run(port),
            Due::Run(..) => {}
            Due::Tick(port, ticket) if self.ports[port.0].tick_ticket == ticket => self.tick(port),
            Due::Tick(..) => {}
            Due::Lane(lane) => self.deliver(lane),
            Due::Act(act) => self.act(act),
        }
    }

    /// One iteration of the process on `port`.
    ///
    /// A process that wants to run again immediately spins until the transport is done with a
    /// packet. Its iterations before that would change nothing, so only a few of them are
    /// simulated; it runs when the transport is done.
    fn run(&mut self, port: PortId) {
        let process = &mut self.ports[port.0];
        process.planned = Nanos::MAX;
        let Some(node) = process
            .node
            .as_mut()
            .filter(|_| !self.paused[process.host.0])
        else {
            return;
        };
        node.run_once();
        self.iterations += 1;
        let next = process.clock.to_world(node.next_wakeup());
        let now = self.net.borrow().now();
        process.busy_until = now + process.clock.settle() + self.net.borrow().iteration_cost();
        process.restless = if next > now { 0 } else { process.restless + 1 };
        if process.restless > RESTLESS_LIMIT {
            let what = format!("port {} always wants to run at once", port.0);
            self.net.borrow_mut().violate(what);
        }
        // If the transport is busy, the process runs when the transport has finished, or earlier if
        // an event with a time of its own, such as a paced packet, is due.
        let doublings = match process.restless {
            0 => 0,
            _ if self.net.borrow().is_sending(port) => SPIN_DOUBLINGS,
            restless => restless.min(SPIN_DOUBLINGS),
        };
        let spin = SPIN.times(1 << doublings);
        let waits = self.net.borrow().waiting(port) != 0;
        let next = if waits { now } else { next.max(now + spin) };
        self.plan_run(port, next);
        self.collect(port);
    }

    fn plan_run(&mut self, port: PortId, at: Nanos) {
        let process = &mut self.ports[port.0];
        let at = at.max(process.busy_until).max(self.net.borrow().now());
        if at >= process.planned {
            return;
        }
        dunlin_msgbuf::prefetch_lines(process, HOT_LINES);
        process.planned = at;
        process.ticket += 1;
        let ticket = process.ticket;
        self.plan(at, Due::Run(port, ticket));
    }

    fn plan(&mut self, at: Nanos, due: Due) {
        if at == Nanos::MAX {
            return;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.due[number] = due;
                number
            }
            None => {
                self.due.push(due);
                self.due.len() - 1
            }
        };
        self.net.borrow_mut().schedule(at, number as u64);
    }
}

#[cfg(test)]
mod tests;
