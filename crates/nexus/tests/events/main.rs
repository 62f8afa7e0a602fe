//! The events of the control plane that a subscriber gets: a session from its beginning to its end,
//! a peer that sends nonsense, and a background handler that panics. There is only one test,
//! because a process has one subscriber.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use dunlin_core::{Done, Tag};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_transport::auto::{self, Auto};
use dunlin_transport::shm::{self, Shm};
use dunlin_wire::ReqType;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Ear;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("dunlin_nexus")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        HEARD.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Waits for an event of this level that contains these words.
fn hear(level: Level, words: &str, mut meanwhile: impl FnMut()) {
    for _ in 0..2_000 {
        let heard = HEARD.lock().unwrap();
        let is_it = |line: &String| line.starts_with(level.as_str()) && line.contains(words);
        if heard.iter().any(is_it) {
            return;
        }
        drop(heard);
        meanwhile();
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{words} is not among {:#?}", HEARD.lock().unwrap());
}

/// An endpoint that has room for one peer in shared memory connects to three, and warns only about
/// the second.
fn fall_back() {
    let nexuses = [(); 4].map(|()| Nexus::bind("127.0.0.1:0").unwrap());
    let [client, others @ ..] = &nexuses;
    let mut client: Rpc<Auto, ()> = client
        .endpoint_builder()
        .transport(|auto: &mut auto::Options| auto.shm.max_peers = 1)
        .build(())
        .unwrap();
    let mut servers: [Rpc<Auto, ()>; 3] =
        others.each_ref().map(|nexus| nexus.endpoint(()).unwrap());
    let words = "no shared memory with a process of this host";
    for (turn, nexus) in others.iter().enumerate() {
        let session = client.connect(nexus.address()).unwrap();
        while !client.session_info(session).unwrap().open {
            client.run_for(Duration::from_micros(100));
            servers[turn].run_for(Duration::from_micros(100));
        }
        let heard = HEARD.lock().unwrap();
        let warned = heard.iter().filter(|line| line.contains(words)).count();
        assert_eq!(warned, turn.min(1), "{heard:#?}");
    }
    hear(Level::WARN, "the endpoint has too many peers", || {});
}

/// An endpoint that has only shared memory has no other way to reach the second of two peers.
#[test]
fn shared_memory_alone_ends_with_an_error() {
    let nexuses = [(); 3].map(|()| Nexus::bind("127.0.0.1:0").unwrap());
    let [client, server, other] = &nexuses;
    let mut client: Rpc<Shm, ()> = client
        .endpoint_builder()
        .transport(|shm: &mut shm::Options| shm.max_peers = 1)
        .build(())
        .unwrap();
    let [mut first, _second]: [Rpc<Shm, ()>; 2] =
        [server, other].map(|nexus| nexus.endpoint(()).unwrap());
    let session = client.connect(server.address()).unwrap();
    while !client.session_info(session).unwrap().open {
        client.run_for(Duration::from_micros(100));
        first.run_for(Duration::from_micros(100));
    }
    let refused = client.connect_blocking(other.address()).unwrap_err();
    let says = refused.to_string();
    assert!(says.ends_with("too many sessions"), "{says}");
}

#[test]
fn a_subscriber_gets_each_event() {
    const PANIC: ReqType = ReqType(1);
    tracing::subscriber::set_global_default(Ear).unwrap();
    let here = Nexus::bind("127.0.0.1:0").unwrap();
    let there = Nexus::builder().workers(1).bind("127.0.0.1:0").unwrap();
    let mut server: Rpc<Shm, ()> = there.endpoint(()).unwrap();
    server.on_background(PANIC, 0, |_| panic!("as intended"));
    let mut client: Rpc<Shm, Vec<Done>> = here.endpoint(Vec::new()).unwrap();
    client.on_completion(|app, done, _| app.push(done));
    hear(Level::INFO, "nexus listens", || {});

    let session = client.connect(there.address()).unwrap();
    let (request, response) = (client.buf(1).unwrap(), client.buf(1).unwrap());
    client
        .call(session, PANIC, request, response, Tag(0))
        .unwrap();
    while client.app().is_empty() {
        client.run_for(Duration::from_micros(100));
        server.run_for(Duration::from_micros(100));
    }
    for (level, words) in [
        (Level::DEBUG, "connecting a session"),
        (Level::DEBUG, "connecting to a process"),
        (Level::INFO, "process greeted"),
        (Level::INFO, "process reached"),
        (Level::INFO, "session granted"),
        (Level::ERROR, "a handler panicked"),
    ] {
        hear(level, words, || {
            server.run_for(Duration::from_micros(100));
        });
    }
    client.disconnect(session).expect("it lives");
    hear(Level::INFO, "session closed", || {
        client.run_for(Duration::from_micros(100));
        server.run_for(Duration::from_micros(100));
    });

    fall_back();

    let mut stranger = TcpStream::connect(here.address()).unwrap();
    stranger.write_all(&[2, 0, 0, 0, 1, 99]).unwrap();
    let _ = stranger.read(&mut [0; 64]);
    hear(Level::WARN, "malformed message", || {});
}
