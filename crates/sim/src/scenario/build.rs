//! Makes the hosts, endpoints and sessions of a scenario, runs them, and counts.
//!
//! Invariant: endpoints are made load by load, and within a load host by host; no client is its own
//! partner. Called by `scenario`.

use dunlin_core::Nanos;

use super::check::Wrong;
use super::node::{Members, Role};
use super::session::connect;
use super::stats::{Latencies, SharedStats, Stats};
use super::{Load, Partners, Scenario};
use crate::world::net::{HostId, Net, NetCounters, NetHandle, PortId, Traffic};
use crate::world::rng::Rng;
use crate::world::{Act, World};

/// The endpoints of a scenario, in their world.
pub(super) struct Endpoints {
    world: World<Members>,
    roles: Vec<Role>,
}

/// Counts up to a moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Nanos,
    pub(super) net: NetCounters,
    /// The counts of each endpoint.
    pub(super) members: Vec<Counted>,
}

/// Counts of one endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) role: Role,
    pub(super) traffic: Traffic,
    pub(super) tx_packets: u64,
    pub(super) retransmissions: u64,
}

impl Endpoints {
    pub(super) fn build(scenario: &Scenario) -> Result<Self, Wrong> {
        let mut seeds = Rng::new(scenario.seed);
        let net = Net::untraced(scenario.net.clone(), seeds.next_u64());
        net.borrow_mut().set_rates(scenario.faults);
        let stats: Vec<SharedStats> = scenario
            .loads
            .iter()
            .map(|_| Stats::new(scenario.warm_up))
            .collect();
        let loads = scenario.loads.iter().enumerate();
        let roles: Vec<Role> = loads.flat_map(|(index, load)| load.roles(index)).collect();
        let members = Members {
            scenario: scenario.clone(),
            roles: roles.clone(),
            stats,
            seeds: seeds.fork(),
        };
        let mut world = World::new(&net, members, seeds.next_u64());
        for _ in 0..scenario.hosts {
            world.add_host();
        }
        for role in &roles {
            let port = world.add_port(HostId(role.host));
            world.act(Act::Boot(port));
        }
        let mut endpoints = Self { world, roles };
        endpoints.connect(scenario, &mut seeds)?;
        endpoints.begin(scenario, &mut seeds)?;
        Ok(endpoints)
    }

    /// Opens the clients' sessions, without a control plane.
    fn connect(&mut self, scenario: &Scenario, seeds: &mut Rng) -> Result<(), Wrong> {
        for (index, load) in scenario.loads.iter().enumerate() {
            let of = |test: fn(&Role) -> bool| {
                let roles = self.roles.iter().enumerate();
                let some = roles.filter(|(_, role)| role.load == index && test(role));
                some.map(|(member, _)| member).collect::<Vec<usize>>()
            };
            let (clients, servers) = (of(|role| role.calls), of(|role| role.serves));
            match load.partners {
                Partners::Drawn => {
                    for &client in &clients {
                        for &server in servers.iter().filter(|server| **server != client) {
                            self.must_open(client, server, load)?;
                        }
                    }
                }
                Partners::Fixed => {
                    for (client, server) in pairs(&clients, servers, &mut seeds.fork()) {
                        self.must_open(client, server, load)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn must_open(&mut self, client: usize, server: usize, load: &Load) -> Result<(), Wrong> {
        let ports = [client, server].map(PortId);
        let session = connect(&mut self.world, ports, &load.session)
            .ok_or_else(|| Wrong::new("hosts", "there is no memory for its sessions"))?;
        if let Some(node) = self.world.node(ports[0]) {
            node.add_session(session);
        }
        Ok(())
    }

    fn begin(&mut self, scenario: &Scenario, seeds: &mut Rng) -> Result<(), Wrong> {
        for index in 0..self.roles.len() {
            let role = self.roles[index];
            let load = &scenario.loads[role.load];
            let start = load.start + Nanos(seeds.below(load.spread.0.max(1)));
            if role.calls {
                let node = self.world.node(PortId(index));
                node.and_then(|node| node.prepare(start)).ok_or_else(|| {
                    Wrong::new("endpoint.pool_bytes", "too little for the requests")
                })?;
            }
            self.world.poke(PortId(index));
        }
        Ok(())
    }

    pub(super) fn net(&self) -> &NetHandle {
        self.world.net()
    }

    /// Runs the world until `end`.
    pub(super) fn run_until(&mut self, end: Nanos) -> Result<(), Wrong> {
        self.world.run_until(end);
        let net = self.world.net().borrow();
        let broken = net.violation().map(str::to_owned);
        let stats = self.world.cluster.stats.iter();
        let broken = broken.or_else(|| {
            let mut violations = stats.filter_map(|stats| stats.borrow().violation.clone());
            violations.next()
        });
        broken.map_or(Ok(()), |what| Err(Wrong::broken(&what)))
    }

    pub(super) fn stats(&self) -> Vec<SharedStats> {
        self.world.cluster.stats.clone()
    }

    /// The latencies that each endpoint has recorded for its own RPCs.
    pub(super) fn latencies(&mut self) -> Vec<Latencies> {
        let of = |index| Some(self.world.node(PortId(index))?.latencies().clone());
        let all = 0..self.roles.len();
        all.filter_map(of).collect()
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        let members = (0..self.roles.len()).map(|index| {
            let port = PortId(index);
            let traffic = self.world.net().borrow().traffic(port);
            let counters = self.world.node(port).map(|node| *node.counters());
            let counters = counters.unwrap_or_default();
            Counted {
                role: self.roles[index],
                traffic,
                tx_packets: counters.tx_packets,
                retransmissions: counters.retransmissions,
            }
        });
        let members = members.collect();
        let net = self.world.net().borrow();
        Snapshot {
            at: net.now(),
            net: net.counters,
            members,
        }
    }
}

impl Load {
    fn roles(&self, load: usize) -> impl Iterator<Item = Role> {
        let (clients, servers) = (self.clients.clone(), self.servers.clone());
        let endpoints = self.endpoints;
        let hosts = clients.start.min(servers.start)..clients.end.max(servers.end);
        hosts.flat_map(move |host| {
            let role = Role {
                load,
                host,
                calls: clients.contains(&host),
                serves: servers.contains(&host),
            };
            let count = if role.calls || role.serves {
                endpoints
            } else {
                0
            };
            std::iter::repeat_n(role, count)
        })
    }
}

/// Gives each client a server. Clients that are servers themselves form a random circle, in which
/// each calls the next one; the others get the servers in turn.
fn pairs(clients: &[usize], mut circle: Vec<usize>, rng: &mut Rng) -> Vec<(usize, usize)> {
    for last in (1..circle.len()).rev() {
        circle.swap(last, rng.index(last + 1));
    }
    let after = |at: usize| circle[at % circle.len()];
    let partner = |(turn, client): (usize, &usize)| {
        let own = circle.iter().position(|server| server == client);
        (*client, own.map_or(after(turn), |own| after(own + 1)))
    };
    clients.iter().enumerate().map(partner).collect()
}

#[cfg(test)]
mod tests;
