//! Servers in this process, and clients of them.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use dunlin_core::Nanos;
use dunlin_hub::Hub;
use dunlin_kv::store::{Config, Mode, Region, Seed, Table};
use dunlin_kv::{Channels, FleetOptions, Map, Options, Partition, WhenDown, serve};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_transport::auto::Auto;

/// A server in this process, with a thread for each partition.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) threads: Vec<Option<Running>>,
}

/// A thread, which ends when it is dropped.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Registers a server's handlers of operations on one key.
pub(crate) type SetUp = fn(&mut Rpc<Auto, Partition>);

impl Server {
    pub(crate) fn start(address: &str, mode: Mode, partitions: u16, tag: u32) -> Self {
        let map = Map::new(tag, mode, 0..partitions).unwrap();
        Self::start_some(address, &map, 0..partitions, serve)
    }

    /// Starts only these partitions of a map.
    pub(crate) fn start_some(address: &str, map: &Map, some: Range<u16>, set_up: SetUp) -> Self {
        let nexus = Nexus::bind(address).unwrap();
        let address = nexus.address();
        let (ready, opened) = std::sync::mpsc::channel();
        let start = |number: u16| {
            let stop = Arc::<AtomicBool>::default();
            let (nexus, map, stopped, ready) =
                (nexus.clone(), map.clone(), Arc::clone(&stop), ready.clone());
            let thread = std::thread::spawn(move || {
                let config = Config {
                    mode: map.mode(),
                    seed: Seed::new([map.tag().into(), number.into()]),
                    first_version: u64::from(map.tag()) << 32,
                };
                let table = Table::new(Region::new(8 << 20).unwrap(), config).unwrap();
                let builder = nexus.endpoint_builder().index(number);
                let builder = builder.config(|config| config.pool_bytes = 64 << 20);
                let partition = Partition::new(table, map, number);
                let mut rpc: Rpc<Auto, Partition> = builder.build(partition).unwrap();
                set_up(&mut rpc);
                ready.send(()).unwrap();
                rpc.run_until(|_| stopped.load(Ordering::Relaxed));
            });
            let thread = Some(thread);
            Some(Running { stop, thread })
        };
        let threads: Vec<Option<Running>> = some.map(start).collect();
        threads.iter().for_each(|_| opened.recv().unwrap());
        Self { address, threads }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub(crate) fn open(servers: &[Server], when_down: WhenDown) -> Channels {
    open_with(servers, when_down, Nanos::from_secs(10))
}

pub(crate) fn open_with(servers: &[Server], when_down: WhenDown, deadline: Nanos) -> Channels {
    let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
    let names: Vec<String> = servers.iter().map(|it| it.address.to_string()).collect();
    let options = FleetOptions {
        client: Options {
            deadline,
            multi_answer: 4096,
            ..Options::DEFAULT
        },
        when_down,
        lookup: None,
    };
    Channels::open(&hub, names.iter().map(String::as_str), options).unwrap()
}

pub(crate) fn servers(mode: Mode) -> Vec<Server> {
    let start = |tag| Server::start("127.0.0.1:0", mode, 2, tag);
    (1..=3).map(start).collect()
}
