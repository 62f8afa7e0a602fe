//! The service over endpoints of a nexus: every operation, long scans, several threads on one tree,
//! and invalid requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin_core::Config;
use dunlin_index::serve_in_dispatch;
use dunlin_index::{
    Connection, Direction, Error, Index, MAX_LIMIT, MAX_VALUE, Range, SCAN, Total, serve,
};
use dunlin_nexus::{ConnectOptions, Nexus, Open, Rpc};
use dunlin_transport::auto::Auto;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;

/// A server with two endpoints on one index.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

fn small(config: &mut Config) {
    config.pool_bytes = 16 << 20;
}

impl Server {
    fn start<T: Open>(in_workers: bool) -> Self {
        let nexus = Nexus::builder().workers(1).bind("127.0.0.1:0").unwrap();
        let (address, index) = (nexus.address(), Index::new());
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, opened) = channel();
        let threads = (0..2).map(|number| {
            let (nexus, index, stop) = (nexus.clone(), index.clone(), Arc::clone(&stop));
            let ready = ready.clone();
            std::thread::spawn(move || {
                let builder = nexus.endpoint_builder::<T>().index(number).config(small);
                let mut rpc: Rpc<T, Index> = builder.build(index.clone()).unwrap();
                match in_workers {
                    true => serve(&mut rpc, &index),
                    false => serve_in_dispatch(&mut rpc),
                }
                ready.send(()).unwrap();
                rpc.run_until(|_| stop.load(Ordering::Relaxed));
            })
        });
        let threads = threads.collect();
        (0..2).for_each(|_| opened.recv().unwrap());
        Self {
            address,
            stop,
            threads,
        }
    }

    fn connect<T: Open>(&self, endpoint: u16) -> Connection<T> {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let builder = nexus.endpoint_builder::<T>().config(small);
        let timeout = Duration::from_secs(30);
        let connect = ConnectOptions {
            endpoint: Some(endpoint),
            patience: timeout,
            ..ConnectOptions::default()
        };
        Connection::open_with(builder, self.address, timeout, connect).unwrap()
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

fn keys<T: Open>(
    index: &mut Connection<T>,
    range: Range<'_>,
    direction: Direction,
    limit: u32,
) -> (Vec<u64>, Option<Vec<u8>>) {
    let mut keys = Vec::new();
    let show = |key: &[u8], value: &[u8]| {
        let number = u64::from_be_bytes(key.try_into().unwrap());
        assert_eq!(value[..8], number.to_le_bytes());
        keys.push(number);
    };
    let cursor = index.scan(range, direction, limit, show).unwrap();
    (keys, cursor)
}

fn every_operation<T: Open>(in_workers: bool) {
    let server = Server::start::<T>(in_workers);
    let (mut one, mut other) = (server.connect::<T>(0), server.connect::<T>(1));
    assert_eq!(one.get(b"name"), Ok(None));
    one.put(b"name", b"dunlin").unwrap();
    // Both endpoints show the same items.
    assert_eq!(other.get(b"name"), Ok(Some(b"dunlin".to_vec())));
    other.put(b"name", b"").unwrap();
    assert_eq!(one.get(b"name"), Ok(Some(Vec::new())));
    assert_eq!(one.delete(b"name"), Ok(true));
    assert_eq!(other.delete(b"name"), Ok(false));
    let long = vec![7; MAX_VALUE];
    one.put(&[1; 255], &long).unwrap();
    assert_eq!(other.get(&[1; 255]).unwrap().as_deref(), Some(&long[..]));
    assert_eq!(one.delete(&[1; 255]), Ok(true));

    // This takes several answers: each item has more than 500 bytes.
    let count = 400_u64;
    for number in 0..count {
        let value = [&number.to_le_bytes()[..], &[0; 500]].concat();
        one.put(&number.to_be_bytes(), &value).unwrap();
    }
    let (all, cursor) = keys(&mut other, Range::ALL, Direction::Forward, MAX_LIMIT);
    assert!(all.into_iter().eq(0..count) && cursor.is_none());
    let end = 300_u64.to_be_bytes();
    let range = Range::new(&[0; 8], &end);
    let (part, cursor) = keys(&mut one, range, Direction::Backward, 200);
    assert!(part.into_iter().eq((100..300).rev()));
    let cursor = cursor.unwrap();
    assert_eq!(cursor, 100_u64.to_be_bytes());
    let rest = range.after(&cursor, Direction::Backward);
    let (part, cursor) = keys(&mut one, rest, Direction::Backward, 200);
    assert!(part.into_iter().eq((0..100).rev()) && cursor.is_none());
    let expected = Total {
        items: 300,
        sum: 299 * 300 / 2,
    };
    assert_eq!(one.total(range, u32::MAX), Ok(expected));
    assert_eq!(other.total(range, 3), Ok(Total { items: 3, sum: 3 }));
}

#[test]
fn scans_in_workers_over_shared_memory() {
    every_operation::<Shm>(true);
}

#[test]
fn scans_in_workers_over_udp() {
    every_operation::<Udp>(true);
}

#[test]
fn scans_in_dispatch() {
    every_operation::<Auto>(false);
}

#[test]
fn invalid_requests_are_refused() {
    let server = Server::start::<Shm>(true);
    let mut index = server.connect::<Shm>(0);
    index.put(b"b", b"1").unwrap();
    let backwards = Range::new(b"z", b"a");
    let scan = |index: &mut Connection<Shm>, range, limit| {
        index
            .scan(range, Direction::Forward, limit, |_, _| ())
            .err()
    };
    assert_eq!(scan(&mut index, backwards, 1), Some(Error::BadRange));
    assert_eq!(scan(&mut index, Range::ALL, 0), Some(Error::BadLimit));
    assert_eq!(
        scan(&mut index, Range::ALL, u32::MAX),
        Some(Error::BadLimit)
    );
    assert_eq!(index.total(backwards, 1), Err(Error::BadRange));
    assert_eq!(index.total(Range::ALL, 0), Err(Error::BadLimit));
    assert_eq!(index.put(b"", b"1"), Err(Error::BadKey));
    assert_eq!(index.get(&[1; 256]), Err(Error::BadKey));
    assert_eq!(index.put(b"a", &[0; MAX_VALUE + 1]), Err(Error::TooLong));
    assert_eq!(
        index.total(Range::ALL, 9).map(|it| it.items),
        Ok(1),
        "nothing is lost"
    );
}

#[test]
fn a_server_that_shows_a_key_again_and_again_is_left() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let (address, stop) = (nexus.address(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        let builder = nexus.endpoint_builder::<Shm>().config(small);
        let mut rpc: Rpc<Shm, ()> = builder.build(()).unwrap();
        rpc.on(SCAN, |(), request, cx| {
            // An item with the key `k` and no value, and the promise of more items.
            request.reply_bytes(cx, &[0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, b'k']);
        });
        rpc.run_until(|_| stopped.load(Ordering::Relaxed));
    });
    let server = Server {
        address,
        stop,
        threads: vec![thread],
    };
    let mut index = server.connect::<Shm>(0);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut shown = 0;
        let scanned = index.scan(Range::ALL, direction, 1000, |_, _| shown += 1);
        assert_eq!((scanned, shown), (Err(Error::Incompatible), 1));
    }
    let rest = Range::ALL.after(b"k", Direction::Forward);
    let scanned = index.scan(rest, Direction::Forward, 1, |_, _| panic!("it was shown"));
    assert_eq!(scanned, Err(Error::Incompatible));
}
