//! The simulated processes of a run over a replicated store. A server has two ports on its host:
//! one for its clients, and one for its calls to the store.

use dunlin_core::{CloseReason, Nanos, Session, SessionOffer, SessionOptions};
use dunlin_replica::{Image, Member, Members, Replica, Roster, serve as serve_items};
use dunlin_sequencer::{Claim, Desk, Options, Taking, serve};
use dunlin_sim::world::ProcessId;
use dunlin_sim::{Cluster, NetHandle, Node, PortId, Rng, SimEndpoint, SimTransport, take_reports};

use crate::bug::Bug;
use crate::nodes::{ClientNode, SEQUENCES, endpoint};
use crate::record::Shared;
use crate::scribe::{Scribe, Task};

/// The ports: of servers, clients, the servers' calls to the store, and replicas.
pub(crate) const SERVERS: usize = 2;
pub(crate) const CLIENTS: usize = 3;
pub(crate) const SCRIBES: usize = SERVERS + CLIENTS;
pub(crate) const REPLICAS: usize = SCRIBES + SERVERS;
pub(crate) const ALL: usize = REPLICAS + 3;

/// Makes the processes.
pub(crate) struct Actors {
    pub(crate) records: Vec<Shared>,
    rng: Rng,
    bug: Bug,
    processes: u32,
    /// How the next server takes its epoch.
    pub(crate) taking: Taking,
    /// Epochs that servers have claimed, until they serve.
    pub(crate) claims: [Option<Claim>; SERVERS],
    roster: Roster,
    /// The logs and items of replicas that do not run.
    pub(crate) images: [Option<Image>; ALL - REPLICAS],
}

impl Actors {
    pub(crate) fn new(bug: Bug, rng: Rng) -> Self {
        let member = |port: usize| Member {
            id: id_of(port),
            address: port.to_string(),
        };
        let members = Members::new((REPLICAS..ALL).map(member)).unwrap();
        Self {
            records: SEQUENCES.iter().map(|_| Shared::default()).collect(),
            rng,
            bug,
            processes: 0,
            taking: Taking::Free,
            claims: [const { None }; SERVERS],
            roster: Roster::first(&members),
            images: [const { None }; ALL - REPLICAS],
        }
    }
}

impl Cluster for Actors {
    type Node = Actor;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Actor {
        let (port, mut rng) = (process.port, self.rng.fork());
        match port.0 {
            server if server < SERVERS => {
                let claim = self.claims[server].take().expect("it has claimed an epoch");
                let options = self.bug.options();
                let giver = Giver::boot(net, port, claim, options, rng.next_u64());
                Actor::Server(Box::new(giver))
            }
            client if client < SCRIBES => {
                let records = self.records.clone();
                let client = ClientNode::boot(net, port, SERVERS, records, rng);
                Actor::Client(Box::new(client))
            }
            scribe if scribe < REPLICAS => {
                self.processes += 1;
                let task = Task::Claim(self.taking, self.bug.options(), self.processes);
                let scribe = Scribe::boot(net, port, REPLICAS..ALL, Some(task), rng.next_u64());
                Actor::Scribe(Box::new(scribe))
            }
            replica => {
                let image = self.images[replica - REPLICAS].take();
                let image = image.unwrap_or_else(|| Image::of(self.roster.clone()));
                let roster = self.roster.clone();
                let replica = Replica::resume(
                    id_of(replica),
                    roster,
                    image,
                    dunlin_replica::Options::DEFAULT,
                );
                let node = ReplicaNode::boot(net, port, replica, rng.next_u64());
                Actor::Replica(Box::new(node))
            }
        }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

const fn id_of(port: usize) -> u64 {
    port as u64
}

/// A process, or one of the two parts of a server.
pub(crate) enum Actor {
    Server(Box<Giver>),
    Scribe(Box<Scribe>),
    Client(Box<ClientNode>),
    Replica(Box<ReplicaNode>),
}

/// The part of a server that gives numbers.
pub(crate) struct Giver {
    pub(crate) rpc: SimEndpoint<Desk>,
}

/// A replica of the store.
pub(crate) struct ReplicaNode {
    pub(crate) rpc: SimEndpoint<Replica>,
    pub(crate) wishes: Vec<String>,
}

impl Giver {
    pub(crate) fn boot(
        net: &NetHandle,
        port: PortId,
        claim: Claim,
        options: Options,
        seed: u64,
    ) -> Self {
        let desk = Desk::new(claim, options);
        let mut rpc = SimTransport::endpoint(net, port, desk, endpoint(), seed);
        serve(&mut rpc);
        Self { rpc }
    }
}

impl ReplicaNode {
    pub(crate) fn boot(net: &NetHandle, port: PortId, replica: Replica, seed: u64) -> Self {
        let mut rpc = SimTransport::endpoint(net, port, replica, endpoint(), seed);
        serve_items(&mut rpc);
        rpc.on_completion(|replica, done, cx| {
            let other = replica.on_done(done, cx);
            assert!(other.is_none(), "the replica makes all calls");
        });
        rpc.on_session(|replica, event, cx| replica.on_session(event, cx));
        Self {
            rpc,
            wishes: Vec::new(),
        }
    }

    fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        let (replica, mut cx) = self.rpc.with();
        replica.run(&mut cx);
        while let Some(address) = replica.wish(cx.now()) {
            self.wishes.push(address);
        }
    }
}

impl Actor {
    /// Takes the addresses to which the process asks for sessions.
    pub(crate) fn take_wishes(&mut self) -> Vec<String> {
        match self {
            Self::Scribe(scribe) => std::mem::take(&mut scribe.wishes),
            Self::Replica(replica) => std::mem::take(&mut replica.wishes),
            Self::Server(_) | Self::Client(_) => Vec::new(),
        }
    }

    /// Opens a session that waits for an answer.
    pub(crate) fn offer(&mut self) -> Option<(Session, SessionOffer)> {
        match self {
            Self::Server(_) => None,
            Self::Scribe(scribe) => offer(&mut scribe.rpc),
            Self::Client(client) => offer(&mut client.rpc),
            Self::Replica(replica) => offer(&mut replica.rpc),
        }
    }

    pub(crate) fn close(&mut self, session: Session) {
        let reason = CloseReason::PeerFailed;
        match self {
            Self::Server(server) => server.rpc.lifecycle().close(session, reason),
            Self::Scribe(scribe) => scribe.rpc.lifecycle().close(session, reason),
            Self::Client(client) => client.rpc.lifecycle().close(session, reason),
            Self::Replica(replica) => replica.rpc.lifecycle().close(session, reason),
        };
    }
}

fn offer<App>(rpc: &mut SimEndpoint<App>) -> Option<(Session, SessionOffer)> {
    let mut lifecycle = rpc.lifecycle();
    let session = lifecycle.open(&SessionOptions::default()).ok()?;
    Some((session, lifecycle.offer_of(session)?))
}

impl Node for Actor {
    fn run_once(&mut self) {
        match self {
            Self::Server(server) => {
                server.rpc.run_once();
                take_reports(&mut server.rpc);
            }
            Self::Scribe(scribe) => scribe.run_once(),
            Self::Client(client) => client.run_once(),
            Self::Replica(replica) => replica.run_once(),
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(server) => server.rpc.next_wakeup(),
            Self::Scribe(scribe) => scribe.next_wakeup(),
            Self::Client(client) => client.next_wakeup(),
            Self::Replica(replica) => {
                let own = replica.rpc.app().next_wakeup();
                replica.rpc.next_wakeup().min(own)
            }
        }
    }
}
