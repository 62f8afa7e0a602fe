//! A server in this process: threads with their endpoints and front ends, at a free port.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use dunlin_front::{Desk, Door, DoorAddress, Front, Hall, Options, serve};
use dunlin_kv::store::{Config, Mode, Region, Seed, Table};
use dunlin_kv::{Figures, Map, Partition};
use dunlin_nexus::{Idle, Nexus, Rpc};
use dunlin_store::Seconds;
use dunlin_transport::shm::Shm;

/// No test waits longer for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Threads without work wait in the kernel, as those of `dunlin kv serve` do.
const IDLE: Idle = Idle::Adaptive {
    spin: Duration::from_micros(50),
};

/// A server that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) nexus: Nexus,
    place: DoorAddress,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Figures>>,
}

/// A client's socket.
pub(crate) struct Caller(pub(crate) TcpStream);

impl Running {
    pub(crate) fn start(options: Options) -> Self {
        Self::at(&"127.0.0.1:0".parse().unwrap(), options)
    }

    pub(crate) fn at(place: &DoorAddress, options: Options) -> Self {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let door = Door::open(place).unwrap();
        let (place, end) = (door.place(), Arc::new(AtomicBool::new(false)));
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let started = Seconds(since_1970.try_into().unwrap());
        let hall = Arc::new(Hall::new(Options { started, ..options }));
        let count = u16::try_from(options.threads).unwrap();
        let map = Map::new(7, Mode::Store, 0..count).unwrap();
        let mut doors = vec![door];
        let thread = |number| {
            let (nexus, ended) = (nexus.clone(), Arc::clone(&end));
            let (hall, map) = (Arc::clone(&hall), map.clone());
            let doors = std::mem::take(&mut doors);
            std::thread::spawn(move || {
                let config = Config {
                    mode: Mode::Store,
                    seed: Seed::new([17, 4]),
                    first_version: 1,
                };
                let table = Table::new(Region::new(64 << 20).unwrap(), config).unwrap();
                let desk = Desk::new(Partition::new(table, map, number), &hall);
                let builder = nexus.endpoint_builder().index(number).idle(IDLE);
                let mut rpc: Rpc<Shm, Desk> = builder.build(desk).unwrap();
                serve(&mut rpc);
                let mut front = Front::new(hall, number, doors).unwrap();
                let is_done = || ended.load(Ordering::Relaxed);
                front.drive(&mut rpc, is_done).unwrap();
                rpc.app().figures()
            })
        };
        let threads = (0..count).map(thread).collect();
        Self {
            nexus,
            place,
            end,
            threads,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.place.to_string().parse().unwrap()
    }

    pub(crate) fn call(&self) -> Caller {
        Caller::new(TcpStream::connect(self.address()).unwrap())
    }

    /// Ends it, and returns the figures of its partitions.
    pub(crate) fn end(mut self) -> Vec<Figures> {
        self.end.store(true, Ordering::Relaxed);
        let threads = self.threads.drain(..);
        threads.map(|thread| thread.join().unwrap()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

impl Caller {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Sends bytes, and returns an answer, which must have this length.
    pub(crate) fn ask(&mut self, bytes: &[u8], len: usize) -> Vec<u8> {
        self.0.write_all(bytes).unwrap();
        self.read(len)
    }

    pub(crate) fn read(&mut self, len: usize) -> Vec<u8> {
        let mut answer = vec![0; len];
        self.0.read_exact(&mut answer).unwrap();
        answer
    }

    /// Sends bytes, and checks the answer.
    #[track_caller]
    pub(crate) fn says(&mut self, bytes: &str, answer: &str) {
        let seen = self.ask(bytes.as_bytes(), answer.len());
        assert_eq!(String::from_utf8_lossy(&seen), answer);
    }

    /// Reads up to and including this text.
    pub(crate) fn read_to(&mut self, last: &str) -> String {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !seen.ends_with(last.as_bytes()) {
            self.0.read_exact(&mut byte).unwrap();
            seen.extend(byte);
        }
        String::from_utf8(seen).unwrap()
    }

    /// Reads until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
        rest
    }
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
