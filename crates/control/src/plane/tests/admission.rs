//! Limits and shares of connections: a flood from one origin locks out no other origin, and ends no
//! connection that is in use.

use std::net::{Ipv4Addr, Ipv6Addr};

use dunlin_core::Nanos;
use dunlin_wire::control::{AttemptId, Connect, EndpointUid, GoodbyeReason, Message};

use super::endpoints::{Seen, side_of};
use super::hostile::{frame, hello};
use super::world::{Stream, World};
use super::{FIRST, PATIENCE, SOON, is_open};
use crate::{ConnectFailure, Origin, Side};

const LIMIT: usize = 32;

/// Long enough for a message to arrive, and short enough for a whole flood to arrive within the
/// timeout.
const ARRIVAL: Nanos = Nanos::from_micros(150);

fn host(number: u8) -> Origin {
    Origin::of_host(Ipv4Addr::new(10, 0, 0, number).into())
}

/// A server with [`LIMIT`] places.
fn full_server(seed: u64) -> (World, usize) {
    let mut world = World::new(seed);
    world.config.max_links = LIMIT;
    let server = world.node(1, 1);
    (world, server)
}

/// A connection that sends Hello and right after it asks for a session.
fn with_session(world: &mut World, to: usize, origin: Origin) -> usize {
    let stream = world.raw_from(to, origin);
    world.write(stream, frame(&Message::Hello(hello(1))));
    let side: Side<u64> = side_of(world.session(to, 0), Vec::new());
    side.send_as(EndpointUid([1; 16]), false, |client, _| {
        let (attempt, target) = (AttemptId(1), FIRST);
        let connect = Connect {
            attempt,
            target,
            client,
        };
        world.write(stream, frame(&Message::Connect(connect)));
        true
    });
    world.run(ARRIVAL);
    stream
}

/// A connection that only sends Hello.
fn idle(world: &mut World, to: usize, origin: Origin) -> usize {
    let stream = world.raw_from(to, origin);
    world.write(stream, frame(&Message::Hello(hello(1))));
    world.run(ARRIVAL);
    stream
}

fn was_sent_away(world: &mut World, stream: usize) -> bool {
    let reason = GoodbyeReason::TooManyConnections;
    let goodbye = frame(&Message::Goodbye { reason });
    world.is_closed(stream) && world.read(stream).contains(&goodbye)
}

#[test]
fn processes_behind_one_address_share_all_places_and_no_session_is_lost() {
    let (mut world, server) = full_server(40);
    let streams: Vec<_> = (0..4 * LIMIT)
        .map(|_| with_session(&mut world, server, host(9)))
        .collect();
    let (first, rest) = streams.split_at(LIMIT);
    assert!(first.iter().all(|stream| !world.is_closed(*stream)));
    assert!(rest.iter().all(|s| was_sent_away(&mut world, *s)));
    assert_eq!(world.open(server).len(), LIMIT);
    let counters = world.plane(server).counters();
    assert_eq!((counters.share_evicted, counters.idle_evicted), (0, 0));
    assert_eq!(counters.links_refused, 3 * u64::try_from(LIMIT).unwrap());
}

#[test]
fn an_origin_with_a_session_on_every_place_makes_room_for_another() {
    let (mut world, server) = full_server(41);
    let streams: Vec<_> = (0..LIMIT)
        .map(|_| with_session(&mut world, server, host(9)))
        .collect();
    let client = world.node(2, 1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    let (newest, older) = streams.split_last().unwrap();
    assert!(was_sent_away(&mut world, *newest));
    assert!(older.iter().all(|stream| !world.is_closed(*stream)));
    assert_eq!(world.plane(server).counters().share_evicted, 1);
}

/// A host can take any address of its IPv6 network, and the processes of a host share its UNIX
/// socket.
#[test]
fn a_network_and_a_process_have_one_share_each() {
    let network = |number| Origin::of_host(Ipv6Addr::new(0xfd79, 0, 0, 1, 0, 0, 0, number).into());
    let other = Origin::of_host(Ipv6Addr::new(0xfd79, 0, 0, 2, 0, 0, 0, 1).into());
    let process = |_| Origin::Process(8);
    let cases: [(&dyn Fn(u16) -> Origin, _); 2] =
        [(&network, other), (&process, Origin::Process(9))];
    for (origin, newcomer) in cases {
        let (mut world, server) = full_server(46);
        let streams: Vec<_> = (0..u16::try_from(LIMIT).unwrap())
            .map(|number| with_session(&mut world, server, origin(number)))
            .collect();
        let late = with_session(&mut world, server, newcomer);
        assert!(!world.is_closed(late), "{newcomer:?}");
        let closed = streams.iter().filter(|stream| world.is_closed(**stream));
        assert_eq!(closed.count(), 1, "one session has made room");
        assert_eq!(world.plane(server).counters().share_evicted, 1);
    }
}

#[test]
fn an_origin_at_its_share_loses_nothing_to_others() {
    let (mut world, server) = full_server(42);
    let two = [8, 9].map(|number| {
        let mut all = Vec::new();
        for _ in 0..LIMIT / 2 {
            all.push(with_session(&mut world, server, host(number)));
        }
        all
    });
    for _ in 0..4 * LIMIT {
        with_session(&mut world, server, host(7));
    }
    for of in two {
        let open = of.iter().filter(|stream| !world.is_closed(**stream));
        assert!(open.count() >= LIMIT / 3, "each origin's share is a third");
    }
    assert_eq!(world.plane(server).link_count(), LIMIT);
}

#[test]
fn idle_connections_of_an_origin_go_before_its_sessions() {
    let (mut world, server) = full_server(43);
    // This is shorter than the time after which a peer that acknowledges no heartbeat has failed.
    world.config.hello_timeout = Nanos::from_millis(200);
    world.start(server, 1);
    let idle: Vec<_> = (0..LIMIT / 2)
        .map(|_| idle(&mut world, server, host(9)))
        .collect();
    world.run(world.config.hello_timeout);
    let busy: Vec<_> = (0..LIMIT)
        .map(|_| with_session(&mut world, server, host(9)))
        .collect();
    assert!(idle.iter().all(|s| was_sent_away(&mut world, *s)));
    assert!(busy.iter().all(|stream| !world.is_closed(*stream)));
}

#[test]
fn connections_without_hello_take_only_places_of_their_own_origin() {
    let mut world = World::new(44);
    let server = world.node(1, 1);
    let quiet = world.raw_from(server, host(2));
    for _ in 0..500 {
        world.raw_from(server, host(9));
        world.streams.retain(Stream::is_open);
    }
    assert!(
        !world.is_closed(quiet),
        "the oldest connection of another origin stays"
    );
    let limit = world.config.max_half_open;
    assert_eq!(world.plane(server).link_count(), limit);
    world.run(world.config.hello_timeout);
    assert_eq!(world.plane(server).link_count(), 0);
}

#[test]
fn a_client_of_a_full_server_learns_that_it_is_full() {
    let (mut world, server) = full_server(45);
    // Every origin has its share: one place.
    for number in 0..u8::try_from(LIMIT).unwrap() {
        with_session(&mut world, server, host(100 + number));
    }
    let client = world.node(2, 1);
    let key = world.connect(client, server, FIRST, SOON);
    world.run(SOON);
    let failure = ConnectFailure::Full;
    assert_eq!(world.seen(client, key), Some(Seen::Failed(failure)));
    assert!(failure.to_string().contains("nexus.max_links"));
}
