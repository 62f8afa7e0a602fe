//! Gets of many keys from a server that accepts only short messages: requests and answers are
//! split, and a value that fits into no message is an error of its key alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use dunlin_hub::Hub;
use dunlin_kv::{Channels, Connection, Error, FleetOptions, Item, Map, Options, Partition, serve};
use dunlin_nexus::{Nexus, Open, Rpc};
use dunlin_store::{Config, Mode, Region, SLICE, Seconds, Seed, Table, Write, route};
use dunlin_testkit::wait::block_on;
use dunlin_transport::auto::Auto;
use dunlin_transport::shm::Shm;

/// The most bytes of a message that most servers here accept and send.
const MOST: u32 = 4096;

/// The limit of the smallest server. It accepts a get of the longest key, but not the request for
/// many keys that has only this key, because that is five bytes longer.
const LEAST: u32 = 260;

/// Bytes before the value in an answer.
const HEAD: usize = 24;

/// Partitions of the server.
const PARTITIONS: u16 = 2;

/// The result of a get of many keys.
type Items = Vec<Result<Option<Item>, Error>>;

/// A server with a thread for each partition.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a server with the items of [`items`], which accepts messages of at most `most` bytes.
    fn start<T: Open>(most: u32) -> Self {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let address = nexus.address();
        let stop = Arc::<AtomicBool>::default();
        let (ready, opened) = std::sync::mpsc::channel();
        let start = |number| {
            let (nexus, stopped, ready) = (nexus.clone(), Arc::clone(&stop), ready.clone());
            std::thread::spawn(move || {
                let builder = nexus.endpoint_builder::<T>().index(number);
                let builder = builder.config(|config| {
                    config.pool_bytes = 64 << 20;
                    config.max_message = most;
                });
                let mut rpc: Rpc<T, Partition> = builder.build(partition(number)).unwrap();
                serve(&mut rpc);
                ready.send(()).unwrap();
                rpc.run_until(|_| stopped.load(Ordering::Relaxed));
            })
        };
        let threads: Vec<JoinHandle<()>> = (0..PARTITIONS).map(start).collect();
        threads.iter().for_each(|_| opened.recv().unwrap());
        Self {
            address,
            stop,
            threads,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// Makes a partition with its items. Other protocols, such as memcached's, can write values that
/// are longer than a message.
fn partition(number: u16) -> Partition {
    let config = Config {
        mode: Mode::Store,
        seed: Seed::new([17, number.into()]),
        first_version: 1,
    };
    let table = Table::new(Region::new(16 << 20).unwrap(), config).unwrap();
    let map = Map::new(7, Mode::Store, 0..PARTITIONS).unwrap();
    let mut partition = Partition::new(table, map.clone(), number);
    for (key, value) in items() {
        if map.partition_of(route(&key)) == number {
            let table = partition.lend();
            let hashed = table.key(&key).unwrap();
            let (write, now) = (Write::set(&value), Seconds(1));
            table.write(&hashed, &write, now).unwrap();
        }
    }
    partition
}

/// Values that fit into a message alone, but not together, with keys of the longest kind, which do
/// not fit together into a request; and two values that are longer than a message.
fn items() -> Vec<(Vec<u8>, Vec<u8>)> {
    let item = |number: usize| {
        let len = match number {
            17 => SLICE / 4,
            42 => 3 * SLICE,
            _ => 10 * number,
        };
        let key = format!("{number:0250}").into_bytes();
        (key, vec![number.to_le_bytes()[0]; len])
    };
    (0..300).map(item).collect()
}

/// Checks the result of a get of the keys of all items, and of one that has no item, from a server
/// that sends at most `most` bytes.
fn check(found: Items, most: u32) {
    let mut found = found.into_iter();
    for (number, (_, value)) in items().into_iter().enumerate() {
        let found = found.next().unwrap().map(|item| item.unwrap().value);
        match HEAD + value.len() > most as usize {
            true => assert_eq!(found, Err(Error::MessageTooLong), "key {number}"),
            false => assert!(found == Ok(value), "key {number}"),
        }
    }
    assert_eq!(found.next(), Some(Ok(None)));
    assert_eq!(found.next(), None);
}

fn with_keys<R>(get: impl FnOnce(&[&[u8]]) -> R) -> R {
    let items = items();
    let mut keys: Vec<&[u8]> = items.iter().map(|(key, _)| &**key).collect();
    keys.push(b"missing");
    get(&keys)
}

fn over_a_connection<T: Open>(most: u32) {
    let server = Server::start::<T>(most);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let builder = nexus.endpoint_builder::<T>();
    let mut kv = Connection::open(builder, server.address, Options::DEFAULT).unwrap();
    // The first get begins before the client knows the server's limit.
    for _ in 0..2 {
        check(with_keys(|keys| kv.get_many(keys)).unwrap(), most);
    }
}

fn over_channels(most: u32) {
    let server = Server::start::<Auto>(most);
    let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
    let name = server.address.to_string();
    let kv = Channels::open(&hub, [&*name], FleetOptions::DEFAULT).unwrap();
    for _ in 0..2 {
        check(with_keys(|keys| block_on(kv.get_many(keys))).unwrap(), most);
    }
}

#[test]
fn a_server_with_short_messages_answers_every_key() {
    over_a_connection::<Shm>(MOST);
    over_a_connection::<Auto>(MOST);
}

#[test]
fn a_server_with_short_messages_answers_every_key_over_channels() {
    over_channels(MOST);
}

#[test]
fn a_key_whose_request_with_others_would_be_too_long_is_asked_for_alone() {
    over_a_connection::<Shm>(LEAST);
    over_channels(LEAST);
}
