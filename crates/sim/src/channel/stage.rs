//! The stage: the world and its processes. It does the work of a nexus for them. A session that a
//! client orders opens after a while, if the server is alive and serves. When one side ends a
//! session, the other side learns of it.
//!
//! Invariant: a record in `sessions` is open until its client has ended the session, or learns that
//! the session is gone. Called by `run` and `faults`.

use dunlin_channel::Opened;
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Nanos, Session, SessionOffer, SessionOptions};

use super::client::{Channel, Client};
use super::desk::{Desk, Line, Order};
use super::ledger::Shared;
use super::plan::{Plan, ServerPlan};
use super::server::{self, ServerRpc};
use crate::world::net::{NetHandle, PortId, take_reports};
use crate::world::rng::Rng;
use crate::world::schedule::Schedule;
use crate::world::{Cluster, Node, ProcessId, World};

/// A process.
pub(super) enum Member {
    Client(Box<Client>),
    Server(Box<ServerRpc>),
}

/// Starts the processes; servers have the first ports.
pub(super) struct Members {
    pub(super) plan: Plan,
    pub(super) desk: Desk,
    pub(super) ledger: Shared,
    pub(super) rng: Rng,
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        let (port, rng) = (process.port, self.rng.fork());
        let ledger = self.ledger.clone();
        let versions = self.plan.versions;
        match self.plan.servers.get_mut(port.0) {
            Some(plan) => {
                if process.life > 1 && versions {
                    // The server restarts as another version of the program.
                    *plan = ServerPlan {
                        precise: self.rng.one_in(2),
                        ..*plan
                    };
                }
                let plan = (*plan, self.plan.bug);
                Member::Server(Box::new(server::boot(net, port, plan, ledger, rng)))
            }
            None => {
                let shared = (self.desk.clone(), ledger);
                Member::Client(Box::new(Client::boot(net, port, &self.plan, shared, rng)))
            }
        }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

impl Node for Member {
    fn run_once(&mut self) {
        match self {
            Self::Client(client) => client.run_once(),
            Self::Server(rpc) => {
                rpc.run_once();
                take_reports(rpc);
            }
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Client(client) => client.next_wakeup(),
            Self::Server(rpc) => rpc.next_wakeup(),
        }
    }
}

/// An event that the stage has scheduled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Strike(super::faults::Fault),
    Connect(PortId, Line, usize),
    LookedUp(PortId, usize),
    /// A client learns that its session is gone.
    Lost(usize, CloseReason),
    /// A client learns that a server is draining.
    Draining(usize),
    /// A server learns that a client has ended a session.
    Ended(usize, u32, Session),
}

/// A session that a client has, or had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) client: PortId,
    pub(super) line: Line,
    near: Session,
    pub(super) server: usize,
    pub(super) life: u32,
    far: Session,
    pub(super) is_open: bool,
}

pub(super) struct Stage {
    pub(super) world: World<Members>,
    pub(super) rng: Rng,
    events: Schedule<Event>,
    pub(super) sessions: Vec<Made>,
    /// For each server, whether it is in the list of addresses; `paused`: whether its host is
    /// paused.
    pub(super) listed: Vec<bool>,
    pub(super) paused: Vec<bool>,
}

impl Stage {
    pub(super) fn new(world: World<Members>, servers: usize, rng: Rng) -> Self {
        Self {
            world,
            rng,
            events: Schedule::default(),
            sessions: Vec::new(),
            listed: vec![true; servers],
            paused: vec![false; servers],
        }
    }

    pub(super) fn schedule(&mut self, at: Nanos, event: Event) {
        self.events.add(at, event);
    }

    /// Takes the next event, if it is due.
    pub(super) fn due(&mut self, now: Nanos) -> Option<Event> {
        self.events.take_due(now)
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.events.next_at()
    }

    /// Schedules the orders that clients have made.
    pub(super) fn take_orders(&mut self) {
        let orders = std::mem::take(&mut *self.world.cluster.desk.borrow_mut());
        for (client, order) in orders {
            let (now, rng) = (self.world.now(), &mut self.rng);
            match order {
                Order::Connect(line, server) => {
                    let at = now + Nanos::from_micros(rng.log_between(50, 5_000));
                    self.schedule(at, Event::Connect(client, line, server));
                }
                Order::LookUp(channel) => {
                    let at = now + Nanos::from_micros(rng.log_between(50, 300_000));
                    self.schedule(at, Event::LookedUp(client, channel));
                }
                Order::Disconnected(near) => self.on_disconnected(client, near),
            }
        }
    }

    fn on_disconnected(&mut self, client: PortId, near: Session) {
        let mut made = self.sessions.iter_mut();
        let made = made.find(|it| it.client == client && it.near == near && it.is_open);
        let Some(made) = made else { return };
        made.is_open = false;
        let event = Event::Ended(made.server, made.life, made.far);
        let at = self.world.now() + Nanos::from_micros(200);
        self.schedule(at, event);
    }

    pub(super) fn client(&mut self, port: PortId) -> Option<&mut Client> {
        match self.world.node(port)? {
            Member::Client(client) => Some(client),
            Member::Server(_) => None,
        }
    }

    pub(super) fn channels(&mut self, port: PortId) -> &mut [Channel] {
        self.client(port).map_or(&mut [], Client::channels)
    }

    pub(super) fn server(&mut self, server: usize) -> Option<&mut ServerRpc> {
        match self.world.node(PortId(server))? {
            Member::Server(rpc) => Some(rpc),
            Member::Client(_) => None,
        }
    }

    /// Carries out a client's order.
    pub(super) fn connect(&mut self, client: PortId, line: Line, server: usize) {
        match self.make(client, server) {
            Some((near, far)) => {
                let life = self.world.life(PortId(server));
                self.sessions.push(Made {
                    client,
                    line,
                    near,
                    server,
                    life,
                    far,
                    is_open: true,
                });
                let opened = Opened {
                    server: process(server, life),
                    endpoint: 0,
                    endpoints: 1,
                    window: self.world.cluster.plan.window,
                    draining: false,
                };
                if let Some(client) = self.client(client) {
                    client.on_opened(line, near, &opened);
                }
            }
            None => {
                if let Some(client) = self.client(client) {
                    client.on_closed(line, CloseReason::Refused);
                }
            }
        }
        self.world.poke(client);
    }

    fn make(&mut self, client: PortId, server: usize) -> Option<(Session, Session)> {
        if self.paused[server] || self.server(server)?.app().is_closed() {
            return None;
        }
        if self.server(server)?.app().is_draining() {
            let what = format!("server {server} is draining, but accepts a session");
            self.world.cluster.ledger.borrow_mut().violate(what);
        }
        let peer = |port: usize| PeerId(u32::try_from(port).expect("a world has few ports"));
        let options = SessionOptions::DEFAULT.with_window(self.world.cluster.plan.window);
        let mut near = self.client(client)?.rpc().lifecycle();
        let session = near.open(&options).ok()?;
        let offer = near.offer_of(session)?;
        let rpc = self.server(server)?;
        let keeps_code_rules = rpc.app().is_precise();
        let (far, answer) = rpc.lifecycle().accept(peer(client.0), &offer).ok()?;
        let answer = SessionOffer {
            keeps_code_rules,
            ..answer
        };
        let mut near = self.client(client)?.rpc().lifecycle();
        near.opened(session, peer(server), &answer).ok()?;
        Some((session, far))
    }

    /// Notifies a client that its session is gone, and also the server if it is alive.
    pub(super) fn lose(&mut self, at: usize, reason: CloseReason) {
        let made = &mut self.sessions[at];
        if !std::mem::replace(&mut made.is_open, false) {
            return;
        }
        let made = *made;
        if let Some(client) = self.client(made.client) {
            client.on_closed(made.line, reason);
        }
        self.world.poke(made.client);
        let then = self.world.now() + Nanos::from_millis(1);
        self.schedule(then, Event::Ended(made.server, made.life, made.far));
    }

    /// Notifies a server that a session has ended. A server whose host is paused learns it later.
    pub(super) fn end_far(&mut self, server: usize, life: u32, far: Session) {
        if self.world.life(PortId(server)) != life {
            return;
        }
        if self.paused[server] {
            let later = self.world.now() + Nanos::from_millis(5);
            return self.schedule(later, Event::Ended(server, life, far));
        }
        if let Some(rpc) = self.server(server) {
            rpc.lifecycle().close(far, CloseReason::Disconnected);
        }
        self.world.poke(PortId(server));
    }

    pub(super) fn look_up(&mut self, client: PortId, channel: usize) {
        let names: Vec<String> = (0..self.listed.len())
            .filter(|server| self.listed[*server])
            .map(|server| server.to_string())
            .collect();
        let fails = self.rng.one_in(6);
        if let Some(client) = self.client(client) {
            client.on_names(channel, (!fails).then_some(&names));
        }
        self.world.poke(client);
    }
}

/// The number of a server's process.
pub(super) fn process(server: usize, life: u32) -> u64 {
    server as u64 | u64::from(life) << 32
}
