//! The service over endpoints of a nexus: every transport, several partitions, bursts, long values,
//! servers that restart, and writes whose result is unknown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use dunlin_core::{Config as EndpointConfig, Nanos};
use dunlin_kv::store::{Config, Delta, MAX_VALUE, Mode, Region, Seed, Table, Verb};
use dunlin_kv::{
    Connection, Error, KEYED, Map, Options, Partition, Reply, Request, Store, Token, serve,
};
use dunlin_nexus::{Nexus, Open, Rpc};
use dunlin_transport::auto::Auto;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;

/// A server with a thread for each partition.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    fn start<T: Open>(address: &str, partitions: u16, tag: u32, answers: bool) -> Self {
        let nexus = Nexus::builder().bind(address).unwrap();
        let address = nexus.address();
        let stop = Arc::new(AtomicBool::new(false));
        let map = Map::new(tag, Mode::Store, 0..partitions).unwrap();
        let (ready, opened) = channel();
        let threads = (0..partitions).map(|number| {
            let (nexus, map, stop) = (nexus.clone(), map.clone(), Arc::clone(&stop));
            let ready = ready.clone();
            std::thread::spawn(move || {
                let partition = Partition::new(table(number), map, number);
                let builder = nexus.endpoint_builder::<T>().index(number).config(small);
                let mut rpc: Rpc<T, Partition> = builder.build(partition).unwrap();
                serve(&mut rpc);
                if !answers {
                    rpc.on(KEYED, |_, request, cx| {
                        request.keep(cx);
                    });
                }
                ready.send(()).unwrap();
                drop(ready);
                rpc.run_until(|_| stop.load(Ordering::Relaxed));
            })
        });
        let threads = threads.collect();
        (0..partitions).for_each(|_| opened.recv().unwrap());
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

fn small(config: &mut EndpointConfig) {
    config.pool_bytes = 64 << 20;
}

fn table(number: u16) -> Table {
    let config = Config {
        mode: Mode::Store,
        seed: Seed::new([17, number.into()]),
        first_version: 1,
    };
    Table::new(Region::new(16 << 20).unwrap(), config).unwrap()
}

fn connect<T: Open>(address: SocketAddr, options: Options) -> Connection<T> {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let builder = nexus.endpoint_builder::<T>().config(small);
    Connection::open(builder, address, options).unwrap()
}

fn every_operation<T: Open>() {
    let server = Server::start::<T>("127.0.0.1:0", 3, 7, true);
    let mut kv = connect::<T>(server.address, Options::DEFAULT);
    assert!(kv.get(b"name").unwrap().is_none());
    let store = Store {
        flags: 9,
        lifetime: 1000,
        ..Store::set(b"name", b"dunlin")
    };
    let version = kv.store(&store).unwrap();
    let found = kv.get(b"name").unwrap().unwrap();
    assert_eq!((found.value(), found.flags()), (&b"dunlin"[..], 9));
    assert_eq!(found.version(), version);
    assert!((998..=1000).contains(&found.lifetime()));

    let with = |verb, value: &'static [u8], if_version| Store {
        verb,
        if_version,
        ..Store::set(b"name", value)
    };
    assert_eq!(kv.store(&with(Verb::Add, b"x", None)), Err(Error::Present));
    kv.store(&with(Verb::Append, b"!", None)).unwrap();
    assert_eq!(
        kv.store(&with(Verb::Set, b"x", Some(version))),
        Err(Error::VersionDiffers)
    );
    assert_eq!(kv.get(b"name").unwrap().unwrap().value(), b"dunlin!");
    assert_eq!(kv.count(b"name", Delta::Up(1)), Err(Error::NotANumber));
    assert_eq!(kv.count(b"n", Delta::Up(1)), Err(Error::Absent));
    kv.store(&Store::set(b"n", b"41")).unwrap();
    let (number, version) = kv.count(b"n", Delta::Up(1)).unwrap();
    assert_eq!(number, 42);
    assert_eq!(kv.count_if(b"n", Delta::Up(1), version).unwrap().0, 43);
    let differs = kv.count_if(b"n", Delta::Up(1), version);
    assert_eq!(differs, Err(Error::VersionDiffers));
    kv.touch(b"n", 5).unwrap();
    assert_eq!(kv.delete(b"n", Some(1)), Err(Error::VersionDiffers));
    kv.delete(b"n", None).unwrap();
    assert_eq!(kv.delete(b"n", None), Err(Error::Absent));
    assert_eq!(kv.get(b"").unwrap_err(), Error::BadKey);
    assert_eq!(kv.get(&[b'k'; 251]).unwrap_err(), Error::BadKey);
    assert!(kv.get(&[b'k'; 250]).unwrap().is_none());
    let too_long = vec![0; MAX_VALUE + 1];
    assert_eq!(kv.store(&Store::set(b"k", &too_long)), Err(Error::TooLong));

    let figures = kv.figures().unwrap();
    assert_eq!(figures.len(), 3);
    assert_eq!(figures.iter().map(|it| it.items).sum::<u64>(), 1);
    kv.flush(1000).unwrap();
    assert!(kv.get(b"name").unwrap().is_some(), "not yet");
    kv.flush(0).unwrap();
    assert!(kv.get(b"name").unwrap().is_none());
}

/// Values of lengths that travel in different ways: within a packet, longer than the client's room
/// for the answer, and in slices.
fn long_values<T: Open>() {
    let server = Server::start::<T>("127.0.0.1:0", 2, 7, true);
    let mut kv = connect::<T>(server.address, Options::DEFAULT);
    let value = |len: usize| {
        (0..len)
            .map(|at| (at * 7 + len).to_le_bytes()[0])
            .collect::<Vec<_>>()
    };
    let lengths = [
        0, 1, 999, 1000, 1001, 5000, 65_535, 65_536, 65_537, 300_000, MAX_VALUE,
    ];
    for len in lengths {
        let key = len.to_string();
        kv.store(&Store::set(key.as_bytes(), &value(len))).unwrap();
        let found = kv.get(key.as_bytes()).unwrap().unwrap();
        assert!(found.value() == value(len), "{len} bytes");
    }
    let keys: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let items = kv.get_many(&keys).unwrap();
    for (len, item) in lengths.iter().zip(items) {
        assert!(item.unwrap().unwrap().value == value(*len), "{len} bytes");
    }
}

/// Many keys in one call, over all partitions, and bursts of single operations.
fn many_keys<T: Open>() {
    let server = Server::start::<T>("127.0.0.1:0", 3, 7, true);
    let mut kv = connect::<T>(server.address, Options::DEFAULT);
    let keys: Vec<Vec<u8>> = (0..3000_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    // Every third key has no item.
    let is_written = |number: usize| !number.is_multiple_of(3);
    let (mut begun, mut ended) = (0, 0);
    while begun < keys.len() || ended < begun {
        let (client, mut cx) = kv.with();
        while begun < keys.len() && client.under_way() < 200 {
            let value = vec![keys[begun][0]; 100 + begun % 50];
            let store = Request::Write(Store::set(&keys[begun], &value));
            let get = Request::Get { key: &keys[begun] };
            let request = if is_written(begun) { store } else { get };
            client
                .begin(&request, Token(begun as u64), None, &mut cx)
                .unwrap();
            begun += 1;
        }
        kv.turn(Nanos::MAX);
        let (client, mut cx) = kv.with();
        while let Some(end) = client.next_end() {
            let number = usize::try_from(end.token.0).unwrap();
            match &end.result {
                Ok(Reply::Written(_)) => assert!(is_written(number)),
                Ok(Reply::Missing) => assert!(!is_written(number)),
                other => panic!("{other:?}"),
            }
            end.recycle(&mut cx);
            ended += 1;
        }
    }
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let items = kv.get_many(&asked).unwrap();
    for (number, item) in items.into_iter().enumerate() {
        let expected = is_written(number).then(|| vec![keys[number][0]; 100 + number % 50]);
        let value = item.unwrap().map(|item| item.value);
        assert_eq!(value, expected, "key {number}");
    }
    assert!(kv.get_many(&[]).unwrap().is_empty());
    let figures = kv.figures().unwrap();
    for figures in figures {
        assert!((550..800).contains(&figures.writes), "{figures:?}");
        assert!(
            figures.batches < figures.requests,
            "no batch has had two requests"
        );
    }
}

#[test]
fn every_operation_works_over_every_transport() {
    every_operation::<Shm>();
    every_operation::<Udp>();
    every_operation::<Auto>();
}

#[test]
fn values_of_every_length_arrive() {
    long_values::<Shm>();
    long_values::<Udp>();
    long_values::<Auto>();
}

#[test]
fn many_keys_are_asked_for_at_once() {
    many_keys::<Shm>();
    many_keys::<Udp>();
    many_keys::<Auto>();
}

#[test]
fn a_client_survives_a_server_that_restarts_with_other_partitions() {
    let server = Server::start::<Auto>("127.0.0.1:0", 3, 7, true);
    let address = server.address;
    let mut kv = connect::<Auto>(address, Options::DEFAULT);
    let keys: Vec<Vec<u8>> = (0..50_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    for key in &keys {
        kv.store(&Store::set(key, b"before")).unwrap();
    }
    drop(server);
    let later = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        Server::start::<Auto>(&address.to_string(), 2, 8, true)
    });
    for key in &keys {
        let result = match kv.store(&Store::set(key, b"after")) {
            // The session ended while the write was in flight.
            Err(Error::Unknown) => kv.store(&Store::set(key, b"after")),
            result => result,
        };
        result.unwrap();
    }
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let items = kv.get_many(&asked).unwrap();
    assert!(
        items
            .into_iter()
            .all(|item| item.unwrap().unwrap().value == b"after")
    );
    assert_eq!(kv.map().unwrap().partitions(), 2);
    drop(later.join().unwrap());
}

#[test]
fn a_write_without_an_answer_has_its_own_error() {
    let server = Server::start::<Shm>("127.0.0.1:0", 1, 7, false);
    let options = Options {
        deadline: Nanos::from_millis(100),
        ..Options::DEFAULT
    };
    let mut kv = connect::<Shm>(server.address, options);
    kv.map().unwrap();
    let unknown = kv.store(&Store::set(b"k", b"v")).unwrap_err();
    assert_eq!((unknown, unknown.is_uncertain()), (Error::Unknown, true));
    assert_eq!(kv.count(b"k", Delta::Up(1)), Err(Error::Unknown));
    assert_eq!(kv.delete(b"k", None), Err(Error::Unknown));
    assert_eq!(kv.get(b"k").unwrap_err(), Error::DeadlinePassed);
}

#[test]
fn an_operation_without_a_server_does_not_happen() {
    let options = Options {
        deadline: Nanos::from_millis(100),
        ..Options::DEFAULT
    };
    // A port that was free a moment ago.
    let address = Nexus::bind("127.0.0.1:0").unwrap().address();
    let mut kv = connect::<Shm>(address, options);
    assert_eq!(kv.store(&Store::set(b"k", b"v")), Err(Error::Unavailable));
    assert_eq!(kv.get_many(&[b"k"]).unwrap_err(), Error::Unavailable);
}

#[test]
fn another_program_is_not_taken_for_a_server() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let address = nexus.address();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let other = std::thread::spawn(move || {
        let mut rpc: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
        rpc.run_until(|_| stopped.load(Ordering::Relaxed));
    });
    let mut kv = connect::<Shm>(address, Options::DEFAULT);
    assert_eq!(kv.get(b"k").unwrap_err(), Error::Incompatible);
    stop.store(true, Ordering::Relaxed);
    other.join().unwrap();
}
