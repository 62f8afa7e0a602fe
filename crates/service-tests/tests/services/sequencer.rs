//! Servers over endpoints of a nexus, with files: every transport, restarts, damage, and a server
//! that takes over from one that is alive.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin_core::{Config, DeferredRequest, Nanos};
use dunlin_local::{Local, Tasks};
use dunlin_nexus::{ConnectOptions, Nexus, Open, Rpc};
use dunlin_sequencer::{
    ClaimError, ClientOptions, Connection, ConnectionError, Damage, Desk, Ending, Error, Files,
    Keeper, MAX_COUNT, Options, Phase, STATUS, Sequence, Taking, figures, serve, take_directory,
};
use dunlin_testkit::folder::Folder;
use dunlin_testkit::wait;
use dunlin_transport::auto::Auto;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;

/// A server in a thread.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Ending>>,
}

#[allow(
    clippy::needless_update,
    reason = "a build with planted bugs has one more field"
)]
const OPTIONS: Options = Options {
    block: 1000,
    lease: Nanos::from_millis(200),
    ..Options::DEFAULT
};

fn small(config: &mut Config) {
    config.pool_bytes = 8 << 20;
}

impl Server {
    fn start<T: Open>(folder: &Path, taking: Taking) -> Result<Self, ClaimError> {
        let mut files = Files::open(folder).unwrap();
        let claim = take_directory(&mut files, taking, &OPTIONS, std::process::id())?;
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let address = nexus.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ready, opened) = channel();
        let thread = std::thread::spawn(move || {
            let builder = nexus.endpoint_builder::<T>().config(small);
            let mut rpc: Rpc<T, Desk> = builder.build(Desk::new(claim, OPTIONS)).unwrap();
            serve(&mut rpc);
            let keeper = Keeper::start(files, rpc.waker()).unwrap();
            ready.send(()).unwrap();
            keeper.drive(&mut rpc, || stopped.load(Ordering::Relaxed))
        });
        opened.recv().unwrap();
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    fn stop(mut self) -> Ending {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Options of a client that creates its sequence.
fn making() -> ClientOptions {
    ClientOptions {
        create: true,
        deadline: Nanos::from_secs(30),
        patience: Nanos::from_millis(500),
        ..ClientOptions::DEFAULT
    }
}

fn connect<T: Open>(servers: &[SocketAddr], name: &str, options: ClientOptions) -> Connection<T> {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let builder = nexus.endpoint_builder::<T>().config(small);
    Connection::open(builder, servers, name.parse().unwrap(), options).unwrap()
}

fn numbers_over<T: Open>(name: &str) {
    let kept = Folder::new(name);
    let folder = kept.join("numbers");
    let server = Server::start::<T>(&folder, Taking::Free).unwrap();
    for speculates in [false, true] {
        let options = ClientOptions {
            speculates,
            ..making()
        };
        let mut orders = connect::<T>(&[server.address], "orders", options);
        let first = orders.take_one().unwrap();
        assert_eq!(orders.take(500).unwrap(), first + 1..first + 501);
        // More numbers than a block.
        assert_eq!(orders.take(MAX_COUNT).unwrap().start, first + 501);
        assert_eq!(orders.take(0), Err(Error::BadCount));
        assert_eq!(orders.take(MAX_COUNT + 1), Err(Error::BadCount));
    }
    let mut events = connect::<T>(&[server.address], "events", making());
    assert_eq!(events.take_one(), Ok(1), "sequences do not share numbers");
    let mut absent = connect::<T>(&[server.address], "absent", ClientOptions::DEFAULT);
    assert_eq!(absent.take_one(), Err(Error::NoSequence));
    assert!(matches!(server.stop(), Ending::Stopped));
}

#[test]
fn numbers_over_shared_memory() {
    numbers_over::<Shm>("sequencer-shm");
}

#[test]
fn numbers_over_udp() {
    numbers_over::<Udp>("sequencer-udp");
}

#[test]
fn futures_take_numbers() {
    let kept = Folder::new("sequencer-futures");
    let folder = kept.join("numbers");
    let server = Server::start::<Shm>(&folder, Taking::Free).unwrap();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let endpoint = nexus.endpoint_builder::<Shm>().config(small);
    let mut local = Local::new(endpoint.build(Tasks::default()).unwrap());
    let session = local.connect(server.address).unwrap();
    local.block_on(|caller| async move {
        let span = Duration::from_secs(30);
        let open = |name: &str, create| {
            let name = name.parse().unwrap();
            let caller = caller.clone();
            async move { Sequence::open(&caller, session, name, create, span).await }
        };
        assert_eq!(open("orders", false).await.err(), Some(Error::NoSequence));
        let orders = open("orders", true).await.unwrap();
        assert_eq!(orders.take_one().await, Ok(1));
        assert_eq!(orders.take(9).await, Ok(2..11));
        assert_eq!(orders.take(0).await, Err(Error::BadCount));
    });
    server.stop();
}

#[test]
fn a_restart_continues_above_all_given_numbers() {
    let kept = Folder::new("sequencer-restart");
    let folder = kept.join("numbers");
    let mut before = 0;
    for _ in 0..3 {
        let server = Server::start::<Auto>(&folder, Taking::Free).unwrap();
        let mut orders = connect::<Auto>(&[server.address], "orders", making());
        let number = orders.take_one().unwrap();
        assert_eq!(number, before + 1, "a clean stop leaves no gap");
        before = number;
        server.stop();
    }
    // Only one epoch has a file, and drafts have been removed.
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_directory_in_use_is_refused() {
    let kept = Folder::new("sequencer-in-use");
    let folder = kept.join("numbers");
    let server = Server::start::<Shm>(&folder, Taking::Free).unwrap();
    let second = Server::start::<Shm>(&folder, Taking::Free).err();
    let process = std::process::id();
    assert!(
        matches!(second, Some(ClaimError::InUse(Some(it))) if it == process),
        "{second:?}"
    );
    server.stop();
    Server::start::<Shm>(&folder, Taking::Free).unwrap().stop();
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let kept = Folder::new("sequencer-damage");
    let folder = kept.join("numbers");
    Server::start::<Shm>(&folder, Taking::Free).unwrap().stop();
    let path = fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = fs::read(&path).unwrap();
    let start = || Server::start::<Shm>(&folder, Taking::Free).err().unwrap();
    fs::write(&path, &whole[..40_000]).unwrap();
    assert!(matches!(
        start(),
        ClaimError::Damaged(1, Damage::Unreadable)
    ));
    let mut newer = whole;
    newer[4] = 9;
    fs::write(&path, newer).unwrap();
    let error = start();
    assert!(matches!(error, ClaimError::Damaged(1, Damage::Newer(9))));
    assert!(error.to_string().contains("version 9"), "{error}");
    // The servers that did not start have left the file, and made no other.
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_server_takes_over_from_one_that_is_alive() {
    let kept = Folder::new("sequencer-take-over");
    let folder = kept.join("numbers");
    let first = Server::start::<Auto>(&folder, Taking::Free).unwrap();
    let mut orders = connect::<Auto>(&[first.address], "orders", making());
    let given = orders.take(700).unwrap();
    let second = Server::start::<Auto>(&folder, Taking::Over).unwrap();
    let mut both = connect::<Auto>(&[first.address, second.address], "orders", making());
    let number = both.take_one().unwrap();
    assert!(number >= given.end, "{number} after {given:?}");
    // The first server stops on its own, because its lease has ended or it has seen the epoch of
    // the second.
    wait::until(|| first.thread.as_ref().unwrap().is_finished());
    let ending = first.stop();
    assert!(matches!(ending, Ending::Deposed(2)), "{ending:?}");
    let later = both.take_one().unwrap();
    assert!(later > number, "{later} after {number}");
    let state = state_of(second.address);
    assert_eq!((state.phase, state.epoch), (Phase::Serving, 2));
    assert_eq!(state.sequences[0].next, later + 1);
    second.stop();
}

fn state_of(address: SocketAddr) -> dunlin_sequencer::Figures {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let builder = nexus.endpoint_builder::<Auto>().config(small);
    let connect = ConnectOptions::default();
    figures(builder, address, &connect, Duration::from_secs(30)).unwrap()
}

#[test]
fn a_server_that_does_not_say_its_state_is_not_awaited_for_ever() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let (address, stop) = (nexus.address(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        let builder = nexus.endpoint_builder::<Shm>().config(small);
        let mut rpc: Rpc<Shm, Vec<DeferredRequest>> = builder.build(Vec::new()).unwrap();
        rpc.on(STATUS, |kept, request, cx| kept.push(request.defer(cx)));
        rpc.run_until(|_| stopped.load(Ordering::Relaxed));
    });
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let builder = nexus.endpoint_builder::<Shm>().config(small);
    let connect = ConnectOptions::default();
    let asked = figures(builder, address, &connect, Duration::from_millis(500));
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert!(
        matches!(asked, Err(ConnectionError::DeadlinePassed)),
        "{asked:?}"
    );
}
