//! The control plane in the world: when messages reach processes, and when control threads run.
//!
//! Control threads take no virtual time, because their work is rare and does not delay event loops.

use dunlin_core::Nanos;

use super::act::Act;
use super::node::{Cluster, Node, ProcessId, StreamEvent, StreamRequest};
use super::streams::{Item, Lane, Plan};
use super::{Due, World};
use crate::world::net::PortId;

impl<C: Cluster> World<C> {
    /// Runs the control thread of the process on `port`.
    pub(super) fn tick(&mut self, port: PortId) {
        let process = &mut self.ports[port.0];
        process.tick_planned = Nanos::MAX;
        if let Some(node) = process
            .node
            .as_mut()
            .filter(|_| !self.paused[process.host.0])
        {
            node.on_tick();
            self.collect(port);
            self.plan_next(port);
        }
    }

    /// Carries out the requests of the process on `port` to its control connections.
    pub(super) fn collect(&mut self, port: PortId) {
        let process = self.process(port);
        let mut requests = std::mem::take(&mut self.requests);
        let Some(node) = self.ports[port.0].node.as_mut() else {
            return;
        };
        node.take_requests(&mut requests);
        let next = node.next_tick();
        for request in requests.drain(..) {
            let now = self.now();
            let plan = match request {
                StreamRequest::Dial { name, to, local } => {
                    self.streams.dial(process, name, to, local, now)
                }
                StreamRequest::Send(name, frame, fds) => {
                    self.streams.send(process, name, (frame, fds), now)
                }
                StreamRequest::Close(name) => self.streams.close(process, name, now),
                StreamRequest::Restart(name) => {
                    self.restart_peer(process, name);
                    None
                }
            };
            self.plan_lane(plan);
        }
        self.requests = requests;
        self.plan_tick(port, next);
    }

    /// Restarts the process at the other end of a connection, unless it is the same process.
    fn restart_peer(&mut self, process: ProcessId, name: u64) {
        let peer = self.streams.peer(process, name);
        if let Some(peer) = peer.filter(|peer| *peer != process) {
            self.act(Act::Crash(peer.port));
            self.act(Act::Boot(peer.port));
        }
    }

    /// Plans a run of the event loop if the control thread has left events for it.
    fn plan_next(&mut self, port: PortId) {
        if let Some(next) = self.node(port).map(Node::next_wakeup) {
            let next = self.ports[port.0].clock.to_world(next);
            self.plan_run(port, next);
        }
    }

    pub(super) fn process(&self, port: PortId) -> ProcessId {
        ProcessId {
            port,
            life: self.ports[port.0].life,
        }
    }

    /// Delivers the first item of a lane, which is due.
    pub(super) fn deliver(&mut self, lane: Lane) {
        let now = self.now();
        let (from, to, local) = self.streams.route(lane);
        let hosts = (self.ports[from.0].host, self.ports[to.0].host);
        let path = local || self.net.borrow().has_path(hosts.0, hosts.1);
        let (item, next) = self
            .streams
            .take(lane, path && !self.paused[hosts.1.0], now);
        self.plan_lane(next);
        let event = match (item, self.streams.owner(lane)) {
            (Some(Item::Dial), _) => return self.on_dial(lane, to, local),
            (Some(Item::Dialled), Some((_, name))) => StreamEvent::Dialled(name),
            (Some(Item::Frame(frame, fds)), Some((_, name))) => {
                StreamEvent::Frame(name, frame, fds)
            }
            (Some(Item::Gone), Some((_, name))) => {
                self.streams.drop_end(lane);
                StreamEvent::Closed(name)
            }
            // The receiving end has already closed the connection.
            (_, None) | (None, _) => return,
        };
        if let Some(node) = self.ports[to.0].node.as_mut() {
            node.on_stream(event);
            self.ports[to.0].restless = 0;
            self.collect(to);
            self.plan_next(to);
        }
    }

    /// Handles a request for a connection to the process that listens on `port`.
    fn on_dial(&mut self, lane: Lane, port: PortId, local: bool) {
        let (now, process) = (self.now(), self.process(port));
        let node = self.ports[port.0].node.as_mut();
        let name = node.and_then(|node| node.on_incoming(local));
        let plan = match name {
            Some(name) => self.streams.accept(lane, process, name, now),
            None => self.streams.refuse(lane, now),
        };
        self.plan_lane(plan);
        self.collect(port);
    }

    pub(super) fn plan_lane(&mut self, plan: Plan) {
        if let Some((lane, at)) = plan {
            self.plan(at, Due::Lane(lane));
        }
    }

    pub(super) fn plan_tick(&mut self, port: PortId, at: Nanos) {
        let at = at.max(self.now());
        let process = &mut self.ports[port.0];
        if at >= process.tick_planned {
            return;
        }
        process.tick_planned = at;
        process.tick_ticket += 1;
        let ticket = process.tick_ticket;
        self.plan(at, Due::Tick(port, ticket));
    }
}
