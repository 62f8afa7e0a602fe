//! Makes the processes of a run. Servers have the first ports, and clients the last ones.

use dunlin_kv::store::{Config, Region, Seed, Table};
use dunlin_kv::{Map, Partition};
use dunlin_sim::world::ProcessId;
use dunlin_sim::{Cluster, NetHandle, Rng, SimTransport};

use crate::history::client::ClientNode;
use crate::history::nodes::{Evicted, Member, ServerNode, endpoint};
#[cfg(feature = "mutants")]
use crate::history::plan::Bug;
use crate::history::plan::Plan;
use crate::history::record::Shared;

pub(crate) const CLIENTS: usize = 5;

pub(crate) struct Members {
    pub(crate) record: Shared,
    plan: Plan,
    rng: Rng,
    /// The number of starts of all servers so far.
    lives: u32,
    servers: Vec<Server>,
}

/// A server since its last start.
#[derive(Clone, Copy)]
struct Server {
    life: u32,
    partitions: u16,
}

impl Members {
    pub(crate) fn new(plan: Plan, rng: Rng) -> Self {
        let mut members = Self {
            record: Shared::default(),
            plan,
            rng,
            lives: 0,
            servers: Vec::new(),
        };
        for _ in 0..plan.servers {
            let server = members.next_life();
            members.servers.push(server);
        }
        members
    }

    /// Draws the properties that a server has after its next start.
    pub(crate) fn restart(&mut self, server: usize) {
        self.servers[server] = self.next_life();
    }

    fn next_life(&mut self) -> Server {
        self.lives += 1;
        let partitions = self.rng.between(1, self.plan.ports as u64);
        Server {
            life: self.lives,
            partitions: u16::try_from(partitions).unwrap(),
        }
    }

    fn partition(&mut self, server: usize, number: u16) -> (Partition, Evicted) {
        let Server { life, partitions } = self.servers[server];
        let config = Config {
            mode: self.plan.mode,
            seed: Seed::new([self.rng.next_u64(), self.rng.next_u64()]),
            first_version: u64::from(life) << 32,
        };
        let region = Region::new(self.plan.memory()).unwrap();
        let (mut table, evicted) = (Table::new(region, config).unwrap(), Evicted::default());
        evicted.watch(&mut table);
        #[cfg(feature = "mutants")]
        match self.plan.bug {
            Bug::Miss => table.plant(dunlin_store::Mutant::Miss),
            Bug::LostCompare => table.plant(dunlin_store::Mutant::LostCompare),
            Bug::Expired => table.plant(dunlin_store::Mutant::Expired),
            Bug::HalfWrite => table.plant(dunlin_store::Mutant::HalfWrite),
            Bug::LateEntry => table.plant(dunlin_store::Mutant::LateEntry),
            _ => {}
        }
        let map = Map::new(life, self.plan.mode, 0..partitions).unwrap();
        let partition = Partition::new(table, map, number);
        #[cfg(feature = "mutants")]
        let partition = {
            let mut partition = partition;
            match self.plan.bug {
                Bug::OldMap => partition.take_any_map(),
                Bug::MixedSlices => partition.take_any_stamp(),
                _ => {}
            }
            partition
        };
        (partition, evicted)
    }
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        let (port, mut rng) = (process.port, self.rng.fork());
        let (at, record) = ((net, port), Shared::clone(&self.record));
        let Plan { servers, ports, .. } = self.plan;
        if port.0 >= servers * ports {
            let options = self.plan.options(port.0 - servers * ports);
            let client = ClientNode::boot(at, &self.plan, options, record, rng);
            return Member::Client(Box::new(client));
        }
        let (server, number) = (port.0 / ports, u16::try_from(port.0 % ports).unwrap());
        let seed = rng.next_u64();
        if number >= self.servers[server].partitions {
            let rpc = SimTransport::endpoint(net, port, (), endpoint(), seed);
            return Member::Idle(Box::new(rpc));
        }
        let (partition, evicted) = self.partition(server, number);
        let node = ServerNode::boot(at, partition, (server, evicted), record, seed);
        Member::Server(Box::new(node))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}
