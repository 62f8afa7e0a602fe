//! The control thread's stack, which peers must not be able to fill.

use std::os::unix::net::UnixStream;
use std::thread;

use dunlin_control::{Identity, PlaneConfig};
use dunlin_testkit::descriptors;
use dunlin_wire::control::{BootId, Features, Hello, Incarnation, MAX_FRAME, Message};

use super::*;

/// Links that break together, and the size of the stack on which they do. One level of recursion
/// per link, with a frame of 4 kB, would need 64 times as much.
const LINKS_BROKEN: usize = 4096;
const STACK: usize = 256 << 10;

/// Descriptors of the process in addition to those of the links.
const OTHERS: usize = 512;

fn reactor() -> Reactor {
    let us = Identity {
        boot_id: BootId([1; 16]),
        incarnation: Incarnation(1),
        port: 1,
        unix_name: String::new(),
    };
    let limits = PlaneConfig {
        max_links: 2 * LINKS_BROKEN,
        ..PlaneConfig::default()
    };
    let plane = Plane::new(limits, us, 1);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let requests = Arc::new(Mailbox::new().unwrap());
    Reactor::new(plane, tcp, None, requests, (None, InsightTcp::Off)).unwrap()
}

fn hello() -> Vec<u8> {
    let hello = Hello {
        min_version: 1,
        max_version: 1,
        features: Features::default(),
        boot_id: BootId([2; 16]),
        incarnation: Incarnation(2),
        port: 0,
        unix_name: "",
    };
    let mut out = [0; MAX_FRAME];
    let length = Message::Hello(hello).encode(&mut out).unwrap();
    out[..length].to_vec()
}

fn break_all() {
    if !descriptors::allow((LINKS_BROKEN + OTHERS) as u64) {
        return;
    }
    let mut reactor = reactor();
    // The other end is closed, so every heartbeat finds its connection broken.
    let (_, ours) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let now = reactor.clock.now();
    for _ in 0..LINKS_BROKEN {
        let link = reactor.plane.on_accepted(Origin::OwnUser, now);
        reactor.plane.on_frame(link, &hello(), &mut Vec::new(), now);
        let stream = Stream::new(ours.try_clone().unwrap().into(), false);
        reactor.enter(link, stream);
        while reactor.plane.next_action().is_some() {}
    }
    assert_eq!(reactor.plane.link_count(), LINKS_BROKEN);
    reactor.plane.on_tick(now + Nanos::from_millis(200));
    reactor.act();
    assert_eq!(reactor.plane.link_count(), 0);
    assert!(reactor.streams.is_empty());
}

#[test]
fn links_that_break_together_end_one_after_the_other() {
    let thread = thread::Builder::new().stack_size(STACK).spawn(break_all);
    thread.unwrap().join().unwrap();
}
