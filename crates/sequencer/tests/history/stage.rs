//! The run of a seed: two hosts that may serve, sessions, faults of hosts, disk and network, and
//! the check of the clients' numbers.

use std::rc::Rc;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOptions};
use dunlin_sequencer::{Desk, Options, Taking, serve, take_directory};
use dunlin_sim::world::schedule::Schedule;
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{Cluster, FaultRates, HostId, Net, NetHandle, PortId, Rng, SimTransport, World};

use crate::bug::Bug;
use crate::nodes::{BUSY, ClientNode, Member, SEQUENCES, ServerNode, endpoint};
use crate::record::{Shared, carries, judge};
use crate::shelf::{SharedShelf, View};

/// Hosts that may serve.
const SERVERS: usize = 2;
const CLIENTS: usize = 4;
/// No fault begins after this time.
const CHAOS: Nanos = Nanos::from_millis(2800);
/// By this time, every call must have ended.
const END: Nanos = Nanos::from_millis(12_000);
const STEP: Nanos = Nanos::from_millis(1);

/// Counts of events, which show that the runs cover the intended cases.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sum {
    pub(crate) taken: u64,
    pub(crate) crashes: u64,
    pub(crate) take_overs: u64,
    pub(crate) refused: u64,
    pub(crate) torn: u64,
    pub(crate) pauses: u64,
    pub(crate) deposed: u64,
    pub(crate) epochs: u64,
    /// Places in sequences where the upper four bytes of the numbers changed.
    pub(crate) carries: u64,
}

impl Sum {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            taken: self.taken + other.taken,
            crashes: self.crashes + other.crashes,
            take_overs: self.take_overs + other.take_overs,
            refused: self.refused + other.refused,
            torn: self.torn + other.torn,
            pauses: self.pauses + other.pauses,
            deposed: self.deposed + other.deposed,
            epochs: self.epochs + other.epochs,
            carries: self.carries + other.carries,
        }
    }
}

/// Makes the processes: servers have the first ports.
struct Members {
    records: Vec<Shared>,
    shelf: SharedShelf,
    rng: Rng,
    bug: Bug,
    block: u64,
    processes: u32,
    /// How the next server takes the directory.
    taking: Taking,
    sum: Sum,
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        let (port, mut rng) = (process.port, self.rng.fork());
        if port.0 >= SERVERS {
            let records = self.records.clone();
            let client = ClientNode::boot(net, port, SERVERS, records, rng);
            return Member::Client(Box::new(client));
        }
        self.processes += 1;
        let (number, seed, options) = (self.processes, rng.next_u64(), self.options());
        let mut disk = View::new(&self.shelf, number, rng.fork());
        let claim = match take_directory(&mut disk, self.taking, &options, number) {
            Ok(claim) => claim,
            Err(_) => {
                self.sum.refused += 1;
                let rpc = SimTransport::endpoint(net, port, (), endpoint(), seed);
                return Member::Idle(Box::new(rpc));
            }
        };
        let desk = Desk::new(claim, options);
        let mut rpc = SimTransport::endpoint(net, port, desk, endpoint(), seed);
        serve(&mut rpc);
        Member::Server(Box::new(ServerNode::new(rpc, disk, number, rng)))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

impl Members {
    fn options(&self) -> Options {
        let mut options = self.bug.options();
        options.block = self.block;
        options
    }
}

/// Events that the stage has scheduled.
#[derive(Clone, Copy, Debug)]
enum Event {
    Connect(PortId, usize, usize),
    Lost(PortId, Session),
    Crash(usize),
    Start(usize, Taking),
    Pause(usize),
    Resume(usize),
    Detach(usize),
    Attach(usize),
    /// Faults are over. If no server serves, the stage starts one.
    Settle,
}

struct Stage {
    world: World<Members>,
    hosts: Vec<HostId>,
    rng: Rng,
    events: Schedule<Event>,
    /// The sessions of clients with each server since its last start.
    sessions: Vec<Vec<(PortId, Session)>>,
    paused: [bool; SERVERS],
    /// The generator for the clocks of servers; `None`: all clocks show the same time.
    clocks: Option<Rng>,
}

/// Runs a seed, perhaps with clocks of servers that differ by minutes.
///
/// # Errors
/// A description of the history's fault.
pub(crate) fn run_seed(seed: u64, bug: Bug, apart: bool) -> Result<Sum, String> {
    let mut stage = Stage::new(seed, bug);
    if apart {
        stage.clocks = Some(Rng::new(!seed));
        (0..SERVERS).for_each(|server| stage.set_clock(server));
    }
    stage.go();
    stage.judge(&format!("{bug:?}-{seed}-{apart}"))
}

/// Draws the time that a clock shows at the start of the run.
pub(crate) fn draw_origin(rng: &mut Rng) -> Nanos {
    Nanos(rng.below(Nanos::from_secs(600).0))
}

impl Stage {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut rng = Rng::new(seed);
        let net = Net::undamaged(&mut rng);
        let members = Members {
            records: SEQUENCES.iter().map(|_| Shared::default()).collect(),
            shelf: SharedShelf::default(),
            rng: rng.fork(),
            bug,
            // A restart goes on where the last block ends. In one of three runs that is shortly
            // before the upper four bytes of the numbers change.
            block: match seed.is_multiple_of(3) {
                true => (1 << 32) - Rng::new(seed).below(1000),
                false => bug.options().block,
            },
            processes: 0,
            taking: Taking::Free,
            sum: Sum::default(),
        };
        let mut world = World::new(&net, members, rng.next_u64());
        let mut hosts = Vec::new();
        for _ in 0..SERVERS + CLIENTS {
            let host = world.add_host();
            hosts.push(host);
            world.add_port(host);
        }
        for port in [0].into_iter().chain(SERVERS..SERVERS + CLIENTS) {
            world.act(Act::Boot(PortId(port)));
        }
        let mut stage = Self {
            world,
            hosts,
            rng,
            events: Schedule::default(),
            sessions: vec![Vec::new(); SERVERS],
            paused: [false; SERVERS],
            clocks: None,
        };
        stage.plan_faults();
        stage
    }

    fn plan_faults(&mut self) {
        for _ in 0..self.rng.between(3, 10) {
            let at = Nanos(self.rng.below(CHAOS.0));
            let server = self.rng.index(SERVERS);
            let event = match self.rng.below(6) {
                0 | 1 => Event::Crash(server),
                2 => Event::Pause(server),
                3 => Event::Detach(server),
                4 => Event::Start(server, Taking::Over),
                _ => Event::Start(server, Taking::Free),
            };
            self.schedule(at, event);
        }
        self.schedule(BUSY, Event::Settle);
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.events.add(at, event);
    }

    fn go(&mut self) {
        // After a violation, the world's time no longer advances.
        while self.world.now() < END && self.world.net().borrow().violation().is_none() {
            let now = self.world.now();
            let next = self.events.next_at().unwrap_or(END).max(now);
            self.world.run_until(next.min(now + STEP).min(END));
            self.take_wishes();
            while let Some(event) = self.events.take_due(self.world.now()) {
                self.on_event(event);
            }
        }
    }

    fn client(&mut self, port: PortId) -> &mut ClientNode {
        match self.world.node(port) {
            Some(Member::Client(client)) => client,
            _ => panic!("the client is gone"),
        }
    }

    fn server(&mut self, server: usize) -> Option<&mut ServerNode> {
        match self.world.node(PortId(server)) {
            Some(Member::Server(server)) => Some(server),
            _ => None,
        }
    }

    fn take_wishes(&mut self) {
        for port in (SERVERS..SERVERS + CLIENTS).map(PortId) {
            for (client, server) in std::mem::take(&mut self.client(port).wishes) {
                let at = self.world.now() + Nanos(self.rng.log_between(50_000, 5_000_000));
                self.schedule(at, Event::Connect(port, client, server));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        let now = self.world.now();
        match event {
            Event::Connect(port, client, server) => self.connect(port, client, server),
            Event::Lost(port, session) => {
                let client = self.client(port);
                client
                    .rpc
                    .lifecycle()
                    .close(session, CloseReason::PeerFailed);
                self.world.poke(port);
            }
            Event::Crash(server) => {
                self.crash(server);
                let down = Nanos::from_micros(self.rng.log_between(100, 300_000));
                let other = self.rng.index(SERVERS);
                self.schedule(now + down, Event::Start(other, Taking::Free));
            }
            Event::Start(server, taking) => self.start(server, taking),
            Event::Pause(server) => {
                self.paused[server] = true;
                self.world.cluster.sum.pauses += 1;
                self.world.act(Act::Pause(self.hosts[server]));
                self.end_after_a_while(server, Event::Resume(server));
            }
            Event::Resume(server) => {
                self.paused[server] = false;
                self.world.act(Act::Resume(self.hosts[server]));
            }
            Event::Detach(server) => {
                if let Some(node) = self.server(server) {
                    node.disk.is_detached = true;
                }
                self.end_after_a_while(server, Event::Attach(server));
            }
            Event::Attach(server) => {
                if let Some(node) = self.server(server) {
                    node.disk.is_detached = false;
                }
            }
            Event::Settle => self.settle(),
        }
    }

    /// Schedules the end of a fault, and sometimes a takeover by the other host before it.
    fn end_after_a_while(&mut self, server: usize, end: Event) {
        let (now, span) = (
            self.world.now(),
            self.rng.log_between(1_000_000, 1_500_000_000),
        );
        self.schedule(now + Nanos(span), end);
        if self.rng.one_in(2) {
            self.schedule(
                now + Nanos(span / 4),
                Event::Start(1 - server, Taking::Over),
            );
        }
    }

    fn connect(&mut self, port: PortId, client: usize, server: usize) {
        let now = self.world.now();
        let session = match self.paused[server] {
            true => None,
            false => self.make(port, server),
        };
        if let Some(session) = session {
            self.sessions[server].push((port, session));
        }
        let client = &mut self.client(port).rpc.app_mut().0[client];
        match session {
            Some(session) => client.on_connecting(session),
            None => client.on_refused(now),
        }
        self.world.poke(port);
    }

    /// Makes a session, if the server runs.
    fn make(&mut self, client: PortId, server: usize) -> Option<Session> {
        let peer = |port: usize| PeerId(u32::try_from(port).unwrap());
        self.world.node(PortId(server))?;
        let mut near = self.client(client).rpc.lifecycle();
        let session = near.open(&SessionOptions::default()).ok()?;
        let offer = near.offer_of(session)?;
        let accepted = match self.world.node(PortId(server)) {
            Some(Member::Server(node)) => node.rpc.lifecycle().accept(peer(client.0), &offer),
            Some(Member::Idle(rpc)) => rpc.lifecycle().accept(peer(client.0), &offer),
            _ => return None,
        };
        let (_, answer) = accepted.ok()?;
        let mut near = self.client(client).rpc.lifecycle();
        near.opened(session, peer(server), &answer).ok()?;
        Some(session)
    }

    fn crash(&mut self, server: usize) {
        let now = self.world.now();
        if self.world.node(PortId(server)).is_none() {
            return;
        }
        self.world.cluster.sum.crashes += 1;
        if let Some(node) = self.server(server) {
            node.on_crash();
            let (process, is_deposed) = (node.process, node.is_deposed());
            let shelf = Rc::clone(&self.world.cluster.shelf);
            shelf.borrow_mut().crash(process, &mut self.rng);
            self.world.cluster.sum.deposed += u64::from(is_deposed);
        }
        self.world.act(Act::Crash(PortId(server)));
        for (client, session) in std::mem::take(&mut self.sessions[server]) {
            let at = now + Nanos(self.rng.below(5_000_000));
            self.schedule(at, Event::Lost(client, session));
        }
    }

    /// Starts a server, in place of one that has ended or did not get the directory.
    fn start(&mut self, server: usize, taking: Taking) {
        if self.paused[server] {
            return;
        }
        let is_alive = self.server(server).is_some_and(|node| !node.has_ended());
        if is_alive {
            return;
        }
        self.crash(server);
        self.world.cluster.taking = taking;
        self.world.cluster.sum.take_overs += u64::from(taking == Taking::Over);
        self.set_clock(server);
        self.world.act(Act::Boot(PortId(server)));
    }

    /// Sets the clock of a server that starts, forward or back by minutes.
    fn set_clock(&mut self, server: usize) {
        if let Some(clocks) = &mut self.clocks {
            self.world.set_clock(PortId(server), draw_origin(clocks));
        }
    }

    fn settle(&mut self) {
        self.world.act(Act::Heal);
        self.paused = [false; SERVERS];
        let net = self.world.net();
        net.borrow_mut().set_rates(FaultRates::NONE);
        for server in 0..SERVERS {
            self.on_event(Event::Attach(server));
        }
        // A server without the last epoch learns that soon, and then the owner of that epoch
        // serves.
        let newest = self.world.cluster.shelf.borrow().newest();
        let serves = |node: &mut ServerNode| {
            let epoch = node.rpc.app().epoch();
            !node.has_ended() && epoch == newest
        };
        let is_served = (0..SERVERS).any(|it| self.server(it).is_some_and(serves));
        if !is_served {
            self.crash(0);
            self.start(0, Taking::Over);
        }
        let now = self.world.now();
        self.schedule(now + Nanos::from_secs(2), Event::Settle);
    }

    /// Checks the clients' numbers.
    fn judge(mut self, name: &str) -> Result<Sum, String> {
        if let Some(what) = self.world.net().borrow().violation() {
            return Err(what.to_owned());
        }
        let mut left = 0;
        for port in (SERVERS..SERVERS + CLIENTS).map(PortId) {
            left += self.client(port).under_way();
        }
        let mut sum = self.world.cluster.sum;
        sum.taken = judge(&self.world.cluster.records, name)?;
        sum.carries = carries(&self.world.cluster.records);
        if left > 0 {
            return Err(format!("{left} calls have not ended"));
        }
        let shelf = self.world.cluster.shelf.borrow();
        sum.torn = shelf.torn;
        sum.epochs = shelf.newest().into();
        Ok(sum)
    }
}
