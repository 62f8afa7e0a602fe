//! A run with real processes: two servers, one of which is killed and started again, and clients.
//! Blocking clients perform one operation after the other; an async client has several tasks, each
//! of which does so. All processes read the system's clock.

mod calls;

use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dunlin_core::Nanos;
use dunlin_kv::store::{Config, Mode, Region, Seed, Table, Verb};
use dunlin_kv::{Error, Fleet, FleetOptions, Map, Partition, ServerError, Store, serve};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_sim::Rng;
use dunlin_testkit::child::Child;
use dunlin_testkit::folder::Folder;
use dunlin_transport::auto::Auto;

use crate::history::client::FILLER;
use crate::history::lines;
use crate::history::nodes::watch;
use crate::history::record::{
    Action, KEYS, Kind, Operation, Outcome, key_bytes, kind, number_of, value_of,
};
use crate::history::search;
use calls::Calls;

const SERVERS: usize = 2;
/// The roles of the client processes.
const CLIENTS: [&str; 4] = ["client", "client", "tasks", "tasks"];
/// Tasks of an async client.
const TASKS: usize = 2;
/// The number of operations of a client, or of a task.
const OPERATIONS: u64 = 600;
/// Bytes of a partition's table: the long values soon fill it.
const MEMORY: usize = 640 << 10;
const GAP: Duration = Duration::from_micros(500);

/// Runs the processes, and checks their history.
pub(crate) fn run() {
    let folder = Folder::new("kv-histories");
    let mut servers: Vec<Child> = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..SERVERS {
        let server = Child::start("server 127.0.0.1:0 1");
        addresses.push(server.line());
        servers.push(server);
    }
    let list = addresses.join(",");
    let clients = CLIENTS.iter().enumerate().map(|(number, role)| {
        let path = folder.path(&number.to_string());
        let child = Child::start(&format!("{role} {list} {number} {path}"));
        (child, path)
    });
    let clients: Vec<(Child, String)> = clients.collect();
    for (client, _) in &clients {
        assert_eq!(client.line(), "half");
    }
    let begin = now();
    servers[0].kill();
    let mut operations = evictions(0, &servers[0]);
    servers[0] = Child::start(&format!("server {} 2", addresses[0]));
    assert_eq!(servers[0].line(), addresses[0]);
    operations.extend((0..KEYS).map(|key| Operation {
        server: 0,
        key,
        action: Action::Lose,
        begin,
        end: now(),
        outcome: Outcome::Done,
    }));
    for (client, path) in &clients {
        assert_eq!(client.line(), "done");
        let text = std::fs::read_to_string(path).unwrap();
        operations.extend(text.lines().map(lines::read));
    }
    for (number, server) in servers.iter().enumerate() {
        server.kill();
        operations.extend(evictions(number, server));
    }
    let explained = search::check_all(&operations);
    lines::write("processes", "killed", explained.is_err(), &operations);
    explained.unwrap();
    let count = |is_it: fn(&Operation) -> bool| operations.iter().filter(|it| is_it(it)).count();
    let evicted = count(|it| matches!(it.action, Action::Evict(_)));
    let found = count(|it| matches!(it.outcome, Outcome::Found(..)));
    println!(
        "{} operations, {found} found, {evicted} evicted",
        operations.len()
    );
    assert!(evicted > 5 && found > 200 && operations.len() > 1000);
}

/// The evictions that a server has printed before it was killed.
fn evictions(server: usize, process: &Child) -> Vec<Operation> {
    let lines = process.rest();
    // If the server was killed while it printed the last line, that eviction has not happened yet.
    let whole = lines.iter().filter(|line| line.split(' ').count() == 10);
    let read = whole.map(|line| lines::read(line));
    read.map(|it| Operation { server, ..it }).collect()
}

fn now() -> Nanos {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Nanos(u64::try_from(now.as_nanos()).unwrap())
}

/// Plays the role of a process.
pub(crate) fn play(role: &str) {
    let words: Vec<&str> = role.split_whitespace().collect();
    match words[..] {
        ["server", address, life] => be_server(address, life.parse().unwrap()),
        ["client", list, number, path] => {
            let servers: Vec<&str> = list.split(',').collect();
            let calls = Calls::blocking(&servers);
            let text = Client::new(calls, &servers, number).run(&servers, true);
            std::fs::write(path, text).unwrap();
            say("done");
        }
        ["tasks", list, number, path] => {
            be_tasks(&list.split(',').collect::<Vec<_>>(), number, path);
        }
        _ => panic!("{role} is not a role"),
    }
}

/// Prints a line for the test.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "#{line}").unwrap();
    out.flush().unwrap();
}

/// A server, which has one partition more after each start. It runs until it is killed.
fn be_server(address: &str, life: u16) {
    let nexus = Nexus::bind(address).unwrap();
    let (ready, opened) = std::sync::mpsc::channel();
    for number in 0..life {
        let (nexus, ready) = (nexus.clone(), ready.clone());
        std::thread::spawn(move || {
            let config = Config {
                mode: Mode::Cache,
                seed: Seed::new([7, life.into()]),
                first_version: u64::from(life) << 32,
            };
            let mut table = Table::new(Region::new(MEMORY).unwrap(), config).unwrap();
            watch(&mut table, |key, version| {
                let (mut text, at) = (String::new(), now());
                let operation = Operation {
                    server: 0,
                    key,
                    action: Action::Evict(version),
                    begin: at,
                    end: at,
                    outcome: Outcome::Done,
                };
                lines::line(&operation, &mut text);
                say(text.trim());
            });
            let map = Map::new(life.into(), Mode::Cache, 0..life).unwrap();
            let builder = nexus.endpoint_builder().index(number);
            let builder = builder.config(|config| config.pool_bytes = 64 << 20);
            let partition = Partition::new(table, map, number);
            let mut rpc: Rpc<Auto, Partition> = builder.build(partition).unwrap();
            serve(&mut rpc);
            ready.send(()).unwrap();
            rpc.run_until(|_| false);
        });
    }
    (0..life).for_each(|_| opened.recv().unwrap());
    say(&nexus.address().to_string());
    loop {
        std::thread::park();
    }
}

/// A client whose tasks perform operations at the same time.
fn be_tasks(servers: &[&str], number: &str, path: &str) {
    let kv = calls::channels(servers);
    let text = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (kv, number) = (kv.clone(), format!("{number}{task}"));
                scope.spawn(move || {
                    let client = Client::new(Calls::Async(kv), servers, &number);
                    client.run(servers, task == 0)
                })
            })
            .collect();
        let texts = tasks.into_iter().map(|task| task.join().unwrap());
        texts.collect::<String>()
    });
    std::fs::write(path, text).unwrap();
    say("done");
}

struct Client {
    kv: Calls,
    /// Knows which server owns a key.
    fleet: Fleet,
    rng: Rng,
    numbers: u64,
    versions: [u64; KEYS],
}

impl Client {
    /// The numbers of clients differ.
    fn new(kv: Calls, servers: &[&str], number: &str) -> Self {
        let number: u64 = number.parse().unwrap();
        let mut fleet = Fleet::new(FleetOptions::DEFAULT, number, Nanos::ZERO);
        fleet.on_list(servers.iter().copied(), Nanos::ZERO);
        Self {
            kv,
            fleet,
            rng: Rng::new(number),
            numbers: (number + 1) * 1_000_000_000,
            versions: [0; KEYS],
        }
    }

    /// Performs all operations, and returns them as lines.
    fn run(mut self, servers: &[&str], says_half: bool) -> String {
        let mut text = String::new();
        for turn in 0..OPERATIONS {
            if says_half && turn == OPERATIONS / 2 {
                say("half");
            }
            if turn % 4 == 0 {
                self.fill();
            }
            let Some(operation) = self.operate(servers) else {
                // The server is down, and may be back soon.
                sleep(10 * GAP);
                continue;
            };
            lines::line(&operation, &mut text);
            sleep(GAP);
        }
        text
    }

    /// Writes an item that no client reads, so that the server evicts others.
    fn fill(&mut self) {
        let key = format!("filler-{}", self.rng.below(64));
        // If the server is down, its memory need not be filled.
        let _ = self.kv.store(&Store::set(key.as_bytes(), &[0; FILLER]));
    }

    /// Performs one operation. `None`: it shows nothing about its key.
    fn operate(&mut self, servers: &[&str]) -> Option<Operation> {
        let key = self.rng.index(KEYS);
        // A counter can increase from this number without reaching the next one.
        self.numbers += 10_007;
        let number = self.numbers;
        let action = match (self.rng.below(10), kind(key)) {
            (0..4, _) => Action::Get,
            (4, _) => Action::Delete,
            (5, _) => Action::Add(number),
            (6 | 7, Kind::Counter) => Action::Count,
            (6, _) => Action::Cas(number, self.versions[key]),
            _ => Action::Set(number, 0),
        };
        let owner = self.fleet.owner(&key_bytes(key)).unwrap();
        let name = self.fleet.name(owner).unwrap().to_owned();
        let begin = now();
        let result = self.perform(key, action);
        let end = now();
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => match error.error() {
                Error::Absent => Outcome::Absent,
                Error::Present => Outcome::Present,
                Error::VersionDiffers => Outcome::Differs,
                Error::Unknown => Outcome::Unknown,
                Error::Unavailable | Error::DeadlinePassed => {
                    assert_eq!(error.server(), Some(&*name));
                    return None;
                }
                other => panic!("{action:?} fails: {other}"),
            },
        };
        if let Outcome::Found(_, version)
        | Outcome::Written(version)
        | Outcome::Counted(_, version) = outcome
        {
            self.versions[key] = version;
        }
        Some(Operation {
            server: servers.iter().position(|server| *server == name).unwrap(),
            key,
            action,
            begin,
            end: match outcome {
                Outcome::Unknown => Nanos::MAX,
                _ => end,
            },
            outcome,
        })
    }

    fn perform(&mut self, key: usize, action: Action) -> Result<Outcome, ServerError> {
        let bytes = key_bytes(key);
        let mut store = |verb, number, if_version| {
            let value = value_of(key, number);
            let store = Store {
                verb,
                if_version,
                ..Store::set(&bytes, &value)
            };
            self.kv.store(&store).map(Outcome::Written)
        };
        match action {
            Action::Set(number, _) => store(Verb::Set, number, None),
            Action::Add(number) => store(Verb::Add, number, None),
            Action::Cas(number, version) => store(Verb::Set, number, Some(version)),
            Action::Delete => self.kv.delete(&bytes).map(|()| Outcome::Done),
            Action::Count => {
                let counted = self.kv.count(&bytes)?;
                Ok(Outcome::Counted(counted.0, counted.1))
            }
            Action::Get | Action::Lose | Action::Evict(_) => {
                let found = self.kv.get(&bytes)?;
                Ok(found.map_or(Outcome::Absent, |(value, version)| {
                    Outcome::Found(number_of(key, &value), version)
                }))
            }
        }
    }
}
