//! Cuts of the network between some clients and some servers, in one direction or in both.
//!
//! The stage is the control plane, so it also ends the sessions across a cut that lasts: each end
//! notices separately, and at a time of its own, that its peer does not answer. If only the way
//! back is cut, a server runs requests that its clients must then repeat over another session.

use dunlin_core::Nanos;
use dunlin_sim::world::Act;
use dunlin_sim::{HostId, PortId};

use super::{Event, Stage};

/// Bounds of a cut's length in microseconds.
const LENGTH: (u64, u64) = (20_000, 400_000);
/// Bounds of the time until an end of a session notices that its peer does not answer.
const PATIENCE: (u64, u64) = (20_000, 120_000);
/// Bounds of the time after a cut until an end of a session learns that the other end has given it
/// up.
const NEWS: (u64, u64) = (50, 5_000);

impl Stage {
    /// Cuts some clients off from some servers for a while.
    pub(super) fn cut(&mut self) {
        self.sum.cuts += 1;
        let until = self.world.now() + self.draw(LENGTH);
        let victim = self.rng.index(self.plan.servers);
        let servers: Vec<usize> = (0..self.plan.servers)
            .filter(|server| *server == victim || self.rng.one_in(3))
            .collect();
        let all: Vec<PortId> = self.clients().collect();
        let first = *self.rng.pick(&all);
        let clients: Vec<PortId> = all
            .into_iter()
            .filter(|client| *client == first || self.rng.one_in(2))
            .collect();
        let ports: Vec<PortId> = servers
            .into_iter()
            .flat_map(|server| self.ports_of(server))
            .collect();
        let (out, back) = *self.rng.pick(&[(true, true), (true, false), (false, true)]);
        for client in clients.iter().copied() {
            for port in ports.iter().copied() {
                if out {
                    self.block(client, port, until);
                }
                if back {
                    self.block(port, client, until);
                }
            }
        }
        self.end_across(&clients, &ports, until);
    }

    /// Whether two processes reach each other in both directions, as a new session requires.
    pub(super) fn is_whole(&self, one: PortId, other: PortId) -> bool {
        let net = self.world.net().borrow();
        let (one, other) = (net.host_of(one), net.host_of(other));
        net.has_path(one, other) && net.has_path(other, one)
    }

    fn block(&mut self, from: PortId, to: PortId, until: Nanos) {
        let host = |stage: &Self, port| -> HostId { stage.world.net().borrow().host_of(port) };
        let (from, to) = (host(self, from), host(self, to));
        self.world.act(Act::Block(from, to));
        self.schedule(until, Event::Act(Act::Unblock(from, to)));
    }

    /// Ends each session between these processes if one end notices the cut while it lasts. The
    /// other end gives the session up soon after the cut, unless it already has. Sessions that
    /// neither end gives up go on.
    fn end_across(&mut self, clients: &[PortId], servers: &[PortId], until: Nanos) {
        let now = self.world.now();
        let mut kept = Vec::new();
        for tie in std::mem::take(&mut self.ties) {
            let [(client, ..), (server, ..)] = tie.ends;
            let is_across = clients.contains(&client) && servers.contains(&server);
            let notices = tie.ends.map(|_| now + self.draw(PATIENCE));
            if !is_across || notices.iter().all(|at| *at >= until) {
                kept.push(tie);
                continue;
            }
            self.sum.cut_off += 1;
            for ((port, life, session), at) in tie.ends.into_iter().zip(notices) {
                let latest = until + self.draw(NEWS);
                self.schedule(at.min(latest), Event::Lost(port, life, session));
            }
        }
        self.ties = kept;
    }

    fn draw(&mut self, (least, most): (u64, u64)) -> Nanos {
        Nanos::from_micros(self.rng.log_between(least, most))
    }
}
