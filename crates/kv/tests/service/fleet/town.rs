//! One fleet and its servers in the simulator. The test grants and refuses its wishes one by one.
//! Each server has two partitions.

use std::collections::{BTreeMap, VecDeque};

use dunlin_channel::Reason;
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Config as EndpointConfig, Cx, Nanos, Session, SessionOptions};
use dunlin_kv::{
    Error, Fleet, FleetEnd, FleetOptions, Map, Partition, Reply, Request, Ring, ServerError,
    ServerId, Store, Token, WhenDown, Wish, serve,
};
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{Cluster, Net, NetHandle, Node, PortId, SimEndpoint, SimTransport, World};
use dunlin_store::{Config, Mode, Region, Seed, Table, route};

const PARTITIONS: u16 = 2;
const CLIENT: PortId = PortId(0);

/// The result of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Missing,
    Written,
    Found(Vec<u8>),
    /// For a get of many keys: whether each was found.
    Many(Vec<bool>),
    Failed(Error),
}

impl Outcome {
    pub(crate) fn found(value: &[u8]) -> Self {
        Self::Found(value.to_vec())
    }
}

/// The state of the client's endpoint.
struct Client {
    fleet: Fleet,
    wishes: VecDeque<(ServerId, u16)>,
    ends: Vec<FleetEnd>,
    listed: Vec<String>,
    /// The answers to the next look-ups: the names of the servers; `None`: the name is not found.
    /// Later look-ups find the listed servers.
    names: VecDeque<Option<Vec<String>>>,
    /// When the fleet asked for look-ups.
    looked_up: Vec<Nanos>,
}

impl Client {
    /// Takes wishes and ends from the fleet.
    fn collect(&mut self, now: Nanos) {
        while let Some(wish) = self.fleet.wish(now) {
            match wish {
                Wish::Session { server, endpoint } => self.wishes.push_back((server, endpoint)),
                Wish::LookUp => self.look_up(now),
            }
        }
        while let Some(end) = self.fleet.next_end() {
            self.ends.push(end);
        }
    }
}

impl Client {
    fn look_up(&mut self, now: Nanos) {
        self.looked_up.push(now);
        match self.names.pop_front() {
            Some(None) => return self.fleet.on_lookup_failed(now),
            Some(Some(names)) => self.listed = names,
            None => {}
        }
        self.fleet
            .on_list(self.listed.iter().map(String::as_str), now);
    }
}

enum Member {
    Server(Box<SimEndpoint<Partition>>),
    Client(Box<SimEndpoint<Client>>),
}

impl Node for Member {
    fn run_once(&mut self) {
        match self {
            Self::Server(rpc) => {
                rpc.run_once();
            }
            Self::Client(rpc) => {
                rpc.run_once();
                let (client, mut cx) = rpc.with();
                client.fleet.on_time(&mut cx);
                client.collect(cx.now());
            }
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(rpc) => rpc.next_wakeup(),
            Self::Client(rpc) => rpc.next_wakeup().min(rpc.app().fleet.next_wakeup()),
        }
    }
}

struct Members {
    modes: Vec<Mode>,
    options: FleetOptions,
    /// The number of process starts so far.
    lives: u32,
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        self.lives += 1;
        let config = EndpointConfig {
            readable_buffers: true,
            pool_bytes: 16 << 20,
            ..EndpointConfig::default()
        };
        let (port, seed) = (process.port, u64::from(self.lives));
        let Some(place) = port.0.checked_sub(1) else {
            let client = Client {
                fleet: Fleet::new(self.options, 7, Nanos::ZERO),
                wishes: VecDeque::new(),
                ends: Vec::new(),
                listed: Vec::new(),
                names: VecDeque::new(),
                looked_up: Vec::new(),
            };
            let mut rpc = SimTransport::endpoint(net, port, client, config, seed);
            rpc.on_completion(|client, done, cx| {
                let other = client.fleet.on_done(done, cx);
                assert!(other.is_none(), "it makes all calls");
            });
            rpc.on_session(|client, event, cx| {
                client.fleet.on_session(event, cx);
            });
            return Member::Client(Box::new(rpc));
        };
        let place = u16::try_from(place).unwrap();
        let mode = self.modes[usize::from(place / PARTITIONS)];
        // All partitions of a server have the same tag until it restarts.
        let tag = (self.lives - u32::from(place % PARTITIONS)) << 8;
        let table = Config {
            mode,
            seed: Seed::new([seed, 9]),
            first_version: seed << 32,
        };
        let table = Table::new(Region::new(64 << 10).unwrap(), table).unwrap();
        let map = Map::new(tag, mode, 0..PARTITIONS).unwrap();
        let partition = Partition::new(table, map, place % PARTITIONS);
        let mut rpc = SimTransport::endpoint(net, port, partition, config, seed);
        serve(&mut rpc);
        Member::Server(Box::new(rpc))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

pub(crate) struct Town {
    world: World<Members>,
    /// Wishes that are neither granted nor refused.
    asked: BTreeMap<(usize, u16), ServerId>,
    /// The session with each endpoint.
    sessions: BTreeMap<(usize, u16), Session>,
}

impl Town {
    /// Makes a client of servers with these modes, all of which are listed.
    pub(crate) fn new(modes: &[Mode], when_down: WhenDown) -> Self {
        let options = FleetOptions {
            when_down,
            ..FleetOptions::DEFAULT
        };
        Self::with(modes, options)
    }

    /// Makes a client with these options.
    pub(crate) fn with(modes: &[Mode], options: FleetOptions) -> Self {
        let members = Members {
            modes: modes.to_vec(),
            options,
            lives: 0,
        };
        let net = Net::sound(7);
        let mut world = World::new(&net, members, 7);
        for _ in 0..=modes.len() * usize::from(PARTITIONS) {
            let host = world.add_host();
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        let mut town = Self {
            world,
            asked: BTreeMap::new(),
            sessions: BTreeMap::new(),
        };
        town.list(&(0..modes.len()).collect::<Vec<_>>());
        town
    }

    fn client(&mut self) -> &mut SimEndpoint<Client> {
        match self.world.node(CLIENT) {
            Some(Member::Client(rpc)) => rpc,
            _ => panic!("the client is gone"),
        }
    }

    fn act<R>(&mut self, act: impl FnOnce(&mut Fleet, &mut Cx<'_>) -> R) -> R {
        let (client, mut cx) = self.client().with();
        let result = act(&mut client.fleet, &mut cx);
        client.collect(cx.now());
        self.world.poke(CLIENT);
        result
    }

    /// Runs for some milliseconds.
    pub(crate) fn run(&mut self, time_ms: u64) {
        let end = self.world.now() + Nanos::from_millis(time_ms);
        self.world.run_until(end);
        assert_eq!(self.world.net().borrow().violation(), None);
    }

    pub(crate) fn list(&mut self, servers: &[usize]) {
        let names: Vec<String> = servers.iter().map(|it| name(*it)).collect();
        self.client().app_mut().listed.clone_from(&names);
        let names = names.iter().map(String::as_str);
        self.act(|fleet, cx| fleet.on_list(names, cx.now()));
    }

    /// Answers the next look-up: these servers are listed, or the name is not found.
    pub(crate) fn answer_look_up(&mut self, servers: Option<&[usize]>) {
        let names = servers.map(|servers| servers.iter().map(|it| name(*it)).collect());
        self.client().app_mut().names.push_back(names);
    }

    /// When the fleet has asked for look-ups.
    pub(crate) fn looked_up(&mut self) -> Vec<Nanos> {
        self.client().app().looked_up.clone()
    }

    pub(crate) fn now(&self) -> Nanos {
        self.world.now()
    }

    /// Runs until operations have ended, in steps of a microsecond. Returns for each server when
    /// its partitions received their first request since the call, and when the first operation
    /// ended.
    pub(crate) fn run_to_end(&mut self, servers: usize) -> (Vec<Option<Nanos>>, Nanos) {
        let before: Vec<u64> = (0..servers).map(|it| self.requests(it)).collect();
        let mut asked = vec![None; servers];
        while self.client().app().ends.is_empty() {
            let now = self.world.now() + Nanos::from_micros(1);
            self.world.run_until(now);
            for (server, asked) in asked.iter_mut().enumerate() {
                if asked.is_none() && self.requests(server) > before[server] {
                    *asked = Some(now);
                }
            }
        }
        (asked, self.world.now())
    }

    /// The requests of a server's partitions.
    fn requests(&mut self, server: usize) -> u64 {
        let mut all = 0;
        for port in ports(server) {
            if let Some(Member::Server(rpc)) = self.world.node(port) {
                all += rpc.app().figures().requests;
            }
        }
        all
    }

    /// A key of a partition of a server, provided that all servers are listed.
    pub(crate) fn key(&mut self, server: usize, partition: u16) -> Vec<u8> {
        let names: Vec<String> = (0..self.world.cluster.modes.len()).map(name).collect();
        let ring = Ring::of(names.iter().map(String::as_str));
        let map = Map::new(1, Mode::Store, 0..PARTITIONS).unwrap();
        let mut keys = (0..1000_u32).map(|number| format!("key {number}").into_bytes());
        let key = keys.find(|key| {
            let hash = route(key);
            ring.owner(hash) == Some(&*names[server]) && map.partition_of(hash) == partition
        });
        key.unwrap()
    }

    // Operations.

    pub(crate) fn get(&mut self, key: &[u8]) {
        self.begin(&Request::Get { key });
    }

    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) {
        self.begin(&Request::Write(Store::set(key, value)));
    }

    fn begin(&mut self, request: &Request<'_>) {
        self.act(|fleet, cx| fleet.begin(request, Token(0), None, cx))
            .unwrap();
    }

    pub(crate) fn get_many(&mut self, keys: &[&[u8]]) {
        self.get_many_until(keys, None);
    }

    pub(crate) fn get_many_until(&mut self, keys: &[&[u8]], deadline: Option<Nanos>) {
        self.act(|fleet, cx| fleet.begin_multi(keys, Token(0), deadline, cx))
            .unwrap();
    }

    /// The ends of operations since the last call.
    pub(crate) fn ends(&mut self) -> Vec<Outcome> {
        let ends = std::mem::take(&mut self.client().app_mut().ends);
        let outcome = |result| match result {
            Ok(Reply::Missing) => Outcome::Missing,
            Ok(Reply::Written(_)) => Outcome::Written,
            Ok(Reply::Found(found)) => Outcome::found(found.value()),
            Ok(Reply::Items(items)) => {
                let are_found = items.into_iter().map(|item| item.unwrap().is_some());
                Outcome::Many(are_found.collect())
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => Outcome::Failed(ServerError::error(&error)),
        };
        let ends = ends.into_iter();
        ends.map(|end| outcome(end.result)).collect()
    }

    // Sessions.

    /// A wish that is neither granted nor refused.
    pub(crate) fn asked(&mut self, server: usize, endpoint: u16) -> (ServerId, u16) {
        let id = self.asked.remove(&(server, endpoint));
        (id.expect("a wish"), endpoint)
    }

    /// All wishes: the numbers of the servers, and the endpoints.
    pub(crate) fn wishes(&mut self) -> Vec<(usize, u16)> {
        let mut all = Vec::new();
        while let Some((server, endpoint)) = self.client().app_mut().wishes.pop_front() {
            let name = self.client().app().fleet.name(server).unwrap();
            let number = name.trim_start_matches("server-").parse().unwrap();
            self.asked.insert((number, endpoint), server);
            all.push((number, endpoint));
        }
        all
    }

    /// Grants wishes until there are no more.
    pub(crate) fn connect_all(&mut self) {
        loop {
            self.run(300);
            self.wishes();
            let asked: Vec<(usize, u16)> = self.asked.keys().copied().collect();
            if asked.is_empty() {
                return;
            }
            for (server, endpoint) in asked {
                self.grant(server, endpoint);
            }
        }
    }

    pub(crate) fn grant(&mut self, server: usize, endpoint: u16) {
        let session = self.make(server, endpoint);
        let asked = self.asked(server, endpoint);
        self.connecting(asked, session);
        self.sessions.insert((server, endpoint), session);
    }

    pub(crate) fn refuse(&mut self, server: usize, endpoint: u16) {
        let (id, endpoint) = self.asked(server, endpoint);
        self.act(|fleet, cx| fleet.on_refused(id, endpoint, cx));
    }

    pub(crate) fn connecting(&mut self, (server, endpoint): (ServerId, u16), session: Session) {
        self.act(|fleet, _| fleet.on_connecting(server, endpoint, session));
    }

    /// Begins a session with an endpoint of a server.
    pub(crate) fn make(&mut self, server: usize, endpoint: u16) -> Session {
        let there = PortId(1 + server * usize::from(PARTITIONS) + usize::from(endpoint));
        let peer = |port: PortId| PeerId(u32::try_from(port.0).unwrap());
        let mut near = self.client().lifecycle();
        let session = near.open(&SessionOptions::default()).unwrap();
        let offer = near.offer_of(session).unwrap();
        let Some(Member::Server(rpc)) = self.world.node(there) else {
            panic!("the server is gone");
        };
        let (_, answer) = rpc.lifecycle().accept(peer(CLIENT), &offer).unwrap();
        let mut near = self.client().lifecycle();
        near.opened(session, peer(there), &answer).unwrap();
        self.world.poke(CLIENT);
        session
    }

    /// Ends the session with an endpoint of a server.
    pub(crate) fn lose(&mut self, server: usize, endpoint: u16, reason: CloseReason) {
        let session = self
            .sessions
            .remove(&(server, endpoint))
            .expect("it is open");
        self.client().lifecycle().close(session, reason);
        self.world.poke(CLIENT);
        self.run(1);
    }

    /// Restarts a server.
    pub(crate) fn restart(&mut self, server: usize) {
        self.crash(server);
        self.boot(server);
    }

    /// Ends a server without notice to its clients.
    pub(crate) fn crash(&mut self, server: usize) {
        ports(server).for_each(|port| self.world.act(Act::Crash(port)));
    }

    pub(crate) fn boot(&mut self, server: usize) {
        ports(server).for_each(|port| self.world.act(Act::Boot(port)));
    }

    pub(crate) fn has_ended(&mut self, session: Session) -> bool {
        self.act(|_, cx| cx.session_info(session).is_err())
    }

    /// The last error of each server.
    pub(crate) fn errors(&mut self) -> Vec<Option<Reason>> {
        let all = self.client().app().fleet.addresses();
        all.map(|address| address.last_error).collect()
    }
}

/// The ports of a server's endpoints.
fn ports(server: usize) -> impl Iterator<Item = PortId> {
    let first = 1 + server * usize::from(PARTITIONS);
    (first..first + usize::from(PARTITIONS)).map(PortId)
}

fn name(server: usize) -> String {
    format!("server-{server}")
}
