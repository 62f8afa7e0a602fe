//! The simulated processes that serve: partitions, whose evictions are events of the history.

use std::sync::{Arc, Mutex};

use dunlin_core::{Check, Config, Nanos};
use dunlin_kv::{Partition, serve};
use dunlin_sim::{NetHandle, Node, PortId, SimEndpoint, SimTransport, take_reports};
use dunlin_store::{Reason, Table};

use crate::history::client::ClientNode;
use crate::history::record::{Action, KEYS, Operation, Outcome, Shared, key_bytes};

/// A process.
pub(crate) enum Member {
    /// A partition, or a process without one because the server now has fewer.
    Server(Box<ServerNode>),
    Idle(Box<SimEndpoint<()>>),
    Client(Box<ClientNode>),
}

/// Options of every endpoint.
pub(crate) fn endpoint() -> Config {
    Config {
        readable_buffers: true,
        pool_bytes: 64 << 20,
        check: Check::Event,
        ..Config::default()
    }
}

impl Node for Member {
    fn run_once(&mut self) {
        match self {
            Self::Server(server) => server.run_once(),
            Self::Idle(rpc) => {
                rpc.run_once();
                take_reports(rpc);
            }
            Self::Client(client) => client.run_once(),
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(server) => server.rpc.next_wakeup(),
            Self::Idle(rpc) => rpc.next_wakeup(),
            Self::Client(client) => client.next_wakeup(),
        }
    }
}

/// Items that a table has evicted: the key's number, and the version.
#[derive(Clone, Default)]
pub(crate) struct Evicted(Arc<Mutex<Vec<(usize, u64)>>>);

/// Makes a table report the keys and versions that it evicts.
pub(crate) fn watch(table: &mut Table, mut see: impl FnMut(usize, u64) + Send + 'static) {
    table.watch(move |departure| {
        let is_eviction = matches!(departure.reason, Reason::Evicted | Reason::Crowded);
        let key = (0..KEYS).find(|key| key_bytes(*key) == departure.key);
        if let (true, Some(key)) = (is_eviction, key) {
            see(key, departure.version.0);
        }
    });
}

impl Evicted {
    /// Keeps the evictions of a table.
    pub(crate) fn watch(&self, table: &mut Table) {
        let all = Arc::clone(&self.0);
        watch(table, move |key, version| {
            all.lock().unwrap().push((key, version));
        });
    }

    pub(crate) fn take(&self) -> Vec<(usize, u64)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

pub(crate) struct ServerNode {
    pub(crate) rpc: SimEndpoint<Partition>,
    /// The server to which the partition belongs.
    server: usize,
    evicted: Evicted,
    record: Shared,
}

impl ServerNode {
    pub(crate) fn boot(
        (net, port): (&NetHandle, PortId),
        partition: Partition,
        (server, evicted): (usize, Evicted),
        record: Shared,
        seed: u64,
    ) -> Self {
        let mut rpc = SimTransport::endpoint(net, port, partition, endpoint(), seed);
        serve(&mut rpc);
        Self {
            rpc,
            server,
            evicted,
            record,
        }
    }

    fn run_once(&mut self) {
        let begin = self.rpc.now();
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let end = self.rpc.now();
        for (key, version) in self.evicted.take() {
            self.record.borrow_mut().operations.push(Operation {
                server: self.server,
                key,
                action: Action::Evict(version),
                begin,
                end,
                outcome: Outcome::Done,
            });
        }
    }
}
