//! The simulated cluster: a host that serves, with a partition for each core, and clients on hosts
//! of their own, which keep a window of operations in flight. Endpoints, service and client run the
//! code of real programs; [`super`] sets the network and the costs of work.

use anyhow::{Context, bail, ensure};
use dunlin::kv::{Client, Map, Options, Partition, Reply, Request, Store, Token, serve};
use dunlin_core::transport::PeerId;
use dunlin_core::{Config, Cx, Nanos, Scheme, Session, SessionOptions};
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{
    Cluster, Net, NetHandle, Node, PortId, SimClock, SimEndpoint, SimTransport, World,
};
use dunlin_store::{Mode, Region, Seconds, Seed, Table, Write};

use super::{OPERATION, Shape, network};
use crate::harness::items::{self, Draws, Items, Operation, VALUE};
use harness::signal;

/// Simulated time between two checks for sessions that clients want, and for signals.
const STEP: Nanos = Nanos::from_micros(20);

/// Simulated time after which all clients must have all sessions.
const CONNECTED: Nanos = Nanos::from_millis(20);

/// Simulated time before and while operations are counted.
const WARM_UP: Nanos = Nanos::from_micros(300);
const COUNTED: Nanos = Nanos::from_millis(1);

/// The most operations that a client may begin: more than it can in this time.
const MOST_DRAWS: usize = 1 << 12;

/// Operations per second: of all cores, and of each.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) per_s: f64,
    pub(super) by_core: Vec<f64>,
}

/// Runs a cluster.
///
/// # Errors
/// [`signal::Interrupted`]; there is no memory, or an operation has a wrong result.
pub(super) fn run(shape: &Shape) -> anyhow::Result<Outcome> {
    let mut stage = Stage::new(shape)?;
    stage.connect()?;
    stage.begin()?;
    stage.run_for(WARM_UP)?;
    let before = stage.served()?;
    stage.run_for(COUNTED)?;
    let after = stage.served()?;
    stage.check()?;
    let per_second = |(after, before): (&u64, &u64)| {
        let served = u32::try_from(after - before).unwrap_or(u32::MAX);
        f64::from(served) * 1e9 / f64::from(u32::try_from(COUNTED.0).unwrap_or(u32::MAX))
    };
    let by_core: Vec<f64> = after.iter().zip(&before).map(per_second).collect();
    Ok(Outcome {
        per_s: by_core.iter().sum(),
        by_core,
    })
}

/// A process of the cluster.
enum Member {
    Server(Box<Server>),
    Client(Box<SimEndpoint<Asker>>),
}

/// A core that serves.
struct Server {
    rpc: SimEndpoint<Partition>,
    clock: SimClock,
    /// Operations whose time the clock has already spent.
    spent: u64,
}

/// The state of a client's endpoint.
struct Asker {
    kv: Client,
    draws: Draws,
    /// Operations drawn.
    drawn: usize,
    first_item: u32,
    window: usize,
    /// The operation of each token.
    slots: Vec<Operation>,
    free: Vec<usize>,
    value: Vec<u8>,
    /// Endpoints with which it wants sessions.
    wishes: Vec<u16>,
    wrong: Option<String>,
}

struct Members {
    shape: Shape,
    partitions: Vec<Option<Partition>>,
}

struct Stage {
    world: World<Members>,
    cores: usize,
    clients: usize,
}

impl Cluster for Members {
    type Node = Member;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Member {
        let port = process.port;
        let seed = seed(&self.shape, port);
        let partition = self.partitions.get_mut(port.0).and_then(Option::take);
        let Some(partition) = partition else {
            return self.boot_client(net, port, seed);
        };
        let clock = net.borrow().clock(port);
        let mut rpc = SimTransport::endpoint(net, port, partition, endpoint(), seed);
        serve(&mut rpc);
        Member::Server(Box::new(Server {
            rpc,
            clock,
            spent: 0,
        }))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

impl Members {
    fn boot_client(&self, net: &NetHandle, port: PortId, seed: u64) -> Member {
        let options = Options {
            expected_value: u32::try_from(VALUE).unwrap_or(u32::MAX),
            ..Options::DEFAULT
        };
        let asker = Asker {
            kv: Client::new(options),
            draws: draws(&self.shape, port),
            drawn: 0,
            first_item: self.shape.first_item(),
            window: self.shape.window,
            slots: Vec::new(),
            free: Vec::new(),
            value: vec![0; VALUE],
            wishes: Vec::new(),
            wrong: None,
        };
        let mut rpc = SimTransport::endpoint(net, port, asker, endpoint(), seed);
        rpc.on_completion(|asker: &mut Asker, done, cx| {
            let other = asker.kv.on_done(done, cx);
            debug_assert!(other.is_none(), "the client makes all calls");
        });
        rpc.on_session(|asker: &mut Asker, event, cx| asker.kv.on_session(event, cx));
        Member::Client(Box::new(rpc))
    }
}

impl Node for Member {
    fn run_once(&mut self) {
        match self {
            Self::Server(server) => server.run_once(),
            Self::Client(rpc) => {
                rpc.run_once();
                while rpc.lifecycle().take_report().is_some() {}
                let (asker, mut cx) = rpc.with();
                asker.turn(&mut cx);
            }
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Server(server) => server.rpc.next_wakeup(),
            Self::Client(rpc) => rpc.next_wakeup().min(rpc.app().kv.next_wakeup()),
        }
    }
}

impl Server {
    fn run_once(&mut self) {
        self.rpc.run_once();
        while self.rpc.lifecycle().take_report().is_some() {}
        let served = self.served();
        self.clock.spend(OPERATION.times(served - self.spent));
        self.spent = served;
    }

    fn served(&self) -> u64 {
        self.rpc.app().figures().requests
    }
}

impl Asker {
    /// Makes all slots free, so that operations begin.
    fn begin(&mut self) {
        self.slots = vec![Operation::default(); self.window];
        self.free = (0..self.window).collect();
    }

    fn turn(&mut self, cx: &mut Cx<'_>) {
        self.kv.on_time(cx);
        while let Some(end) = self.kv.next_end() {
            let slot = usize::try_from(end.token.0).unwrap_or(usize::MAX);
            let Operation { number, is_get } = self.slots[slot];
            let is_right = match &end.result {
                Ok(Reply::Found(found)) => is_get && items::is_value(found.value(), number),
                Ok(Reply::Written(_)) => !is_get,
                _ => false,
            };
            if !is_right {
                self.wrong = Some(format!("a wrong result: {:?}", end.result));
            }
            end.recycle(cx);
            self.free.push(slot);
        }
        while let Some(slot) = self.free.pop() {
            self.ask(slot, cx);
        }
        let now = cx.now();
        while let Some(endpoint) = self.kv.wish(now) {
            self.wishes.push(endpoint);
        }
    }

    fn ask(&mut self, slot: usize, cx: &mut Cx<'_>) {
        self.drawn += 1;
        if self.drawn > MOST_DRAWS {
            self.wrong = Some("more operations than there are items for".to_owned());
            return;
        }
        let drawn = self.draws.draw();
        let number = self.first_item + drawn.number;
        let is_get = drawn.is_get;
        self.slots[slot] = Operation { number, is_get };
        let key = items::key(number);
        let request = if is_get {
            Request::Get { key: &key }
        } else {
            items::fill(&mut self.value, number);
            Request::Write(Store::set(&key, &self.value))
        };
        let begun = self.kv.begin(&request, Token(slot as u64), None, cx);
        if let Err(error) = begun {
            self.wrong = Some(format!("an operation cannot begin: {error}"));
        }
    }
}

impl Stage {
    fn new(shape: &Shape) -> anyhow::Result<Self> {
        let net = Net::untraced(network(), shape.seed);
        let partitions = partitions(shape)?;
        let members = Members {
            shape: *shape,
            partitions: partitions.into_iter().map(Some).collect(),
        };
        let (cores, clients) = (usize::from(shape.cores), shape.clients);
        let mut world = World::new(&net, members, shape.seed);
        let server = world.add_host();
        for number in 0..cores + clients {
            let host = if number < cores {
                server
            } else {
                world.add_host()
            };
            let port = world.add_port(host);
            world.act(Act::Boot(port));
        }
        Ok(Self {
            world,
            cores,
            clients,
        })
    }

    fn clients(&self) -> impl Iterator<Item = PortId> + use<> {
        (self.cores..self.cores + self.clients).map(PortId)
    }

    fn client(&mut self, port: PortId) -> anyhow::Result<&mut SimEndpoint<Asker>> {
        match self.world.node(port) {
            Some(Member::Client(rpc)) => Ok(rpc),
            _ => bail!("a simulated client has ended"),
        }
    }

    fn server(&mut self, port: PortId) -> anyhow::Result<&mut Server> {
        match self.world.node(port) {
            Some(Member::Server(server)) => Ok(server),
            _ => bail!("a simulated server has ended"),
        }
    }

    /// Makes the sessions that clients want, until each client has one with each core.
    fn connect(&mut self) -> anyhow::Result<()> {
        let mut missing = self.clients * self.cores;
        for port in self.clients() {
            self.world.poke(port);
        }
        while missing > 0 {
            ensure!(
                self.world.now() < CONNECTED,
                "{missing} sessions were not asked for"
            );
            self.run_for(STEP)?;
            for port in self.clients() {
                for endpoint in std::mem::take(&mut self.client(port)?.app_mut().wishes) {
                    let session = self.make(port, endpoint)?;
                    let client = self.client(port)?;
                    client.app_mut().kv.on_connecting(endpoint, session);
                    self.world.poke(port);
                    missing -= 1;
                }
            }
        }
        // Lets the last sessions finish their greetings.
        self.run_for(WARM_UP)
    }

    fn make(&mut self, client: PortId, endpoint: u16) -> anyhow::Result<Session> {
        let there = PortId(endpoint.into());
        let options = SessionOptions::DEFAULT.with_scheme(Scheme::None);
        let no_memory = "there is no memory for a simulated session";
        let mut near = self.client(client)?.lifecycle();
        let session = near.open(&options).ok().context(no_memory)?;
        let offer = near.offer_of(session).context(no_memory)?;
        let mut far = self.server(there)?.rpc.lifecycle();
        let (_, answer) = far.accept(peer(client), &offer).ok().context(no_memory)?;
        let mut near = self.client(client)?.lifecycle();
        let opened = near.opened(session, peer(there), &answer);
        opened.ok().context(no_memory)?;
        Ok(session)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        for port in self.clients() {
            let (asker, mut cx) = self.client(port)?.with();
            asker.begin();
            asker.turn(&mut cx);
            self.world.poke(port);
        }
        Ok(())
    }

    fn run_for(&mut self, time: Nanos) -> anyhow::Result<()> {
        let end = self.world.now() + time;
        while self.world.now() < end {
            signal::check()?;
            let next = (self.world.now() + STEP).min(end);
            self.world.run_until(next);
            if let Some(what) = self.world.net().borrow().violation() {
                bail!("the simulated network is broken: {what}");
            }
        }
        Ok(())
    }

    /// Operations of each core so far.
    fn served(&mut self) -> anyhow::Result<Vec<u64>> {
        let cores = (0..self.cores).map(PortId);
        cores.map(|port| Ok(self.server(port)?.served())).collect()
    }

    fn check(&mut self) -> anyhow::Result<()> {
        for port in self.clients() {
            if let Some(wrong) = self.client(port)?.app_mut().wrong.take() {
                bail!(wrong);
            }
        }
        Ok(())
    }
}

/// The seed of an endpoint.
fn seed(shape: &Shape, port: PortId) -> u64 {
    shape.seed << 16 | port.0 as u64
}

/// The operations of a client.
fn draws(shape: &Shape, client: PortId) -> Draws {
    Draws::new(shape.mix, shape.items, seed(shape, client))
}

/// Whether any client may draw an item, for each of them. It takes far longer to write millions of
/// items than to draw thousands of operations.
fn wanted(shape: &Shape) -> Vec<bool> {
    let mut wanted = vec![false; shape.items as usize];
    for client in 0..shape.clients {
        let mut draws = draws(shape, PortId(usize::from(shape.cores) + client));
        for _ in 0..MOST_DRAWS {
            wanted[draws.draw().number as usize] = true;
        }
    }
    wanted
}

/// The partitions, with all items that a client may draw.
fn partitions(shape: &Shape) -> anyhow::Result<Vec<Partition>> {
    let map = Map::new(17, Mode::Cache, 0..shape.cores)?;
    let wanted = wanted(shape);
    let items = (shape.first_item()..).zip(wanted).filter(|(_, is)| *is);
    let items: Vec<u32> = items.map(|(number, _)| number).collect();
    let share = Items {
        count: u32::try_from(items.len())? / u32::from(shape.cores) * 5 / 4,
        value: VALUE,
    };
    let mut tables = Vec::new();
    for number in 0..shape.cores {
        let config = dunlin_store::Config {
            mode: Mode::Cache,
            seed: Seed::new([shape.seed, number.into()]),
            first_version: 1,
        };
        tables.push(Table::new(Region::new(share.table_bytes())?, config)?);
    }
    let mut value = vec![0; VALUE];
    for number in items {
        let bytes = items::key(number);
        items::fill(&mut value, number);
        let table = &mut tables[usize::from(map.partition_of(dunlin_store::route(&bytes)))];
        let key = table.key(&bytes).context("a key of 16 bytes is allowed")?;
        let written = table.write(&key, &Write::set(&value), Seconds(1));
        written.map_err(|error| anyhow::anyhow!("item {number}: {error}"))?;
    }
    let of = |(number, table)| Partition::new(table, map.clone(), number);
    Ok((0..).zip(tables).map(of).collect())
}

/// Options of every endpoint.
fn endpoint() -> Config {
    Config {
        readable_buffers: true,
        hugepages: false,
        max_sessions: 1 << 12,
        pool_bytes: 1 << 30,
        ..Config::default()
    }
}

fn peer(port: PortId) -> PeerId {
    PeerId(u32::try_from(port.0).unwrap_or(u32::MAX))
}
