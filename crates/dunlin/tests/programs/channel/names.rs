//! Resolvers of the program, whose answers change, and which fail, recover and hang.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use dunlin::channel::State;
use dunlin::{Channel, ChannelBuilder, ChannelError, Hub, Resolve};

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, PATIENCE, WAYS, Way, block_on, until};

/// A list of addresses that the test changes.
#[derive(Clone, Default)]
struct List(Arc<Mutex<Option<Vec<SocketAddr>>>>, Arc<AtomicUsize>);

impl List {
    fn set<'a>(&self, servers: impl IntoIterator<Item = &'a Server>) {
        let addresses = servers.into_iter().map(|server| server.address);
        *self.0.lock().unwrap() = Some(addresses.collect());
    }

    fn fail(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn look_ups(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl Resolve for List {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let list = self.0.lock().unwrap().clone();
        list.ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

/// Hangs until the test lets it end.
#[derive(Clone, Default)]
struct Hanging(Arc<(Mutex<bool>, Condvar)>, Arc<AtomicUsize>);

impl Hanging {
    fn end(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

impl Resolve for Hanging {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let (ended, changed) = &*self.0;
        let mut ended = ended.lock().unwrap();
        while !*ended {
            ended = changed.wait(ended).unwrap();
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn channel(way: Way) -> ChannelBuilder {
    let hub = Hub::builder().listen("127.0.0.1:0").nexus(way.nexus());
    hub.start().unwrap().channel().patience(PATIENCE)
}

fn echo(channel: &Channel) -> Result<(), ChannelError> {
    let answer = block_on(channel.call(ECHO, b"by a resolver"))?;
    assert_eq!(answer.data(), b"by a resolver");
    Ok(())
}

fn addresses(channel: &Channel) -> Vec<String> {
    let state = channel.state();
    let mut all: Vec<_> = state.addresses.into_iter().map(|it| it.address).collect();
    all.sort();
    all
}

fn listed<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Vec<String> {
    let addresses = servers.into_iter().map(|it| it.address.to_string());
    let mut all: Vec<_> = addresses.collect();
    all.sort();
    all
}

#[test]
fn a_channel_follows_the_addresses_of_its_resolver() {
    for way in WAYS {
        let servers = [0, 1].map(|_| Server::start(way, "127.0.0.1:0", Role::Answers));
        let list = List::default();
        list.set(&servers[..1]);
        let channel = channel(way).resolver(list.clone());
        let channel = channel.lookup(Duration::from_millis(20)).open().unwrap();
        echo(&channel).unwrap();
        assert_eq!(addresses(&channel), listed(&servers[..1]));
        list.set(&servers);
        until(|| addresses(&channel) == listed(&servers));
        list.set(&servers[1..]);
        until(|| addresses(&channel) == listed(&servers[1..]));
        let seen = &servers[0].seen;
        until(|| seen.sessions.load(Ordering::Relaxed) == 0);
        echo(&channel).unwrap();
    }
}

#[test]
fn a_lost_session_causes_an_early_look_up() {
    for way in WAYS {
        let first = Server::start(way, "127.0.0.1:0", Role::Answers);
        let list = List::default();
        list.set([&first]);
        let channel = channel(way).resolver(list.clone()).open().unwrap();
        echo(&channel).unwrap();
        let second = Server::start(way, "127.0.0.1:0", Role::Answers);
        list.set([&second]);
        let begin = Instant::now();
        drop(first);
        // A call that leaves before the channel notices the loss may fail.
        until(|| echo(&channel).is_ok());
        // The next regular look-up comes after 30 s.
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_eq!(addresses(&channel), listed([&second]));
    }
}

#[test]
fn a_resolver_that_fails_is_asked_again_and_keeps_what_it_found() {
    let way = Way::Shm;
    let list = List::default();
    let channel = channel(way).resolver(list.clone());
    let channel = channel.lookup(Duration::from_millis(20)).open().unwrap();
    until(|| list.look_ups() >= 2);
    assert_eq!(channel.state().state, State::Connecting);
    let server = Server::start(way, "127.0.0.1:0", Role::Answers);
    list.set([&server]);
    echo(&channel).unwrap();
    list.fail();
    let before = list.look_ups();
    until(|| list.look_ups() >= before + 3);
    assert_eq!(addresses(&channel), listed([&server]));
    echo(&channel).unwrap();
}

/// Once with a fixed address and once with a working resolver, next to a resolver that hangs.
#[test]
fn a_look_up_that_hangs_holds_up_no_call() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Answers);
        let list = List::default();
        list.set([&server]);
        let hanging = Hanging::default();
        let every = Duration::from_millis(20);
        let fixed = channel(way).address(server.address.to_string());
        let moving = channel(way).resolver(list.clone());
        for builder in [fixed, moving] {
            let builder = builder.resolver(hanging.clone()).lookup(every);
            hanging.1.store(0, Ordering::Relaxed);
            let channel = builder.open().unwrap();
            until(|| hanging.1.load(Ordering::Relaxed) == 1);
            let begin = Instant::now();
            for _ in 0..200 {
                echo(&channel).unwrap();
            }
            assert!(begin.elapsed() < Duration::from_secs(5));
            std::thread::sleep(5 * every);
            assert_eq!(hanging.1.load(Ordering::Relaxed), 1, "one at a time");
        }
        // The channel asks the other resolver again although the hanging one has not answered.
        assert!(list.look_ups() > 2);
        hanging.end();
    }
}

#[test]
fn calls_end_in_time_although_a_look_up_hangs() {
    let hanging = Hanging::default();
    let channel = channel(Way::Shm).resolver(hanging.clone());
    let channel = channel.patience(Duration::from_millis(200)).open().unwrap();
    let begin = Instant::now();
    let error = echo(&channel).unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(matches!(error, ChannelError::NoServer(_)), "{error}");
    hanging.end();
}

/// `localhost` is looked up, and the server is at two further addresses, since it listens at all
/// addresses.
#[test]
fn addresses_of_one_server_count_as_one() {
    for way in WAYS {
        let server = Server::start(way, "0.0.0.0:0", Role::Answers);
        let port = server.address.port();
        let names = ["127.0.0.1", "localhost", "127.0.0.2"];
        let channel = names.iter().fold(channel(way), |channel, name| {
            channel.address(format!("{name}:{port}"))
        });
        let channel = channel.lookup(Duration::from_millis(20)).open().unwrap();
        let known = |address: &str| {
            let all = channel.state().addresses;
            all.iter().filter(|it| it.address == address).count()
        };
        let [first, second] = ["127.0.0.1", "127.0.0.2"].map(|ip| format!("{ip}:{port}"));
        let is_ready = || {
            let all = channel.state().addresses;
            all.iter().filter(|it| it.state == State::Ready).count() == 2
        };
        until(is_ready);
        let calls = [(); 50].map(|()| channel.call(ECHO, b"by a resolver"));
        for call in calls {
            assert_eq!(block_on(call).unwrap().data(), b"by a resolver");
        }
        assert_eq!((known(&first), known(&second)), (1, 1), "{way:?}");
        // Each address has a session, not each name.
        assert_eq!(server.seen.sessions.load(Ordering::Relaxed), 2, "{way:?}");
        drop(server);
        until(|| channel.state().state == State::Gone);
        let back = Server::start(way, &format!("0.0.0.0:{port}"), Role::Answers);
        until(|| echo(&channel).is_ok());
        drop(back);
    }
}
