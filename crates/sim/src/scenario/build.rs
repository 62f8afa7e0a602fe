//! Makes the hosts, endpoints and sessions of a scenario, lets them run, and counts.
//!
//! Invariant: endpoints are made load by load, host by host. Called by `scenario`.

use dunlin_core::Nanos;
use dunlin_core::transport::PeerId;

use super::check::Wrong;
use super::node::{Members, Role};
use super::stats::{SharedStats, Stats};
use super::{Load, Scenario};
use crate::net::{HostId, Net, NetCounters, NetHandle, PortId, Traffic};
use crate::rng::Rng;
use crate::trace::Trace;
use crate::world::{Act, World};

/// The endpoints of a scenario, in their world.
pub(super) struct Endpoints {
    world: World<Members>,
    roles: Vec<Role>,
}

/// What has been counted by a time.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Nanos,
    pub(super) net: NetCounters,
    /// Of each endpoint.
    pub(super) members: Vec<Counted>,
}

/// What one endpoint has counted.
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
        let net = Net::new(scenario.net.clone(), seeds.next_u64(), Trace::new(false));
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
        endpoints.connect(scenario)?;
        endpoints.begin(scenario, &mut seeds)?;
        Ok(endpoints)
    }

    /// Every client opens a session to every server of its load, without a control plane.
    fn connect(&mut self, scenario: &Scenario) -> Result<(), Wrong> {
        for client in 0..self.roles.len() {
            for server in 0..self.roles.len() {
                let (from, to) = (self.roles[client], self.roles[server]);
                if client != server && from.load == to.load && from.calls && to.serves {
                    self.open(PortId(client), PortId(server), scenario)
                        .ok_or_else(|| {
                            Wrong::new("hosts", "there is no memory for its sessions")
                        })?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, client: PortId, server: PortId, scenario: &Scenario) -> Option<()> {
        let (session, offer) = self.world.node(client)?.open(&scenario.session)?;
        let answer = self.world.node(server)?.accept(peer(client), &offer)?;
        self.world
            .node(client)?
            .opened(session, peer(server), &answer)
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

    /// Lets everything run until `end`.
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

fn peer(port: PortId) -> PeerId {
    PeerId(u32::try_from(port.0).expect("a scenario has fewer than 2^32 endpoints"))
}
