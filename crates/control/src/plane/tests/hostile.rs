//! The control plane against peers that break its rules: only their own connection ends.

use dunlin_core::Nanos;
use dunlin_wire::control::{
    AttemptId, BootId, Connect, EndpointIndex, EndpointUid, Features, GoodbyeReason, Hello,
    Incarnation, Lookup, MAX_FRAME, Message, RefuseCode, ResetReason, SessionRef,
};
use dunlin_wire::{SessionNum, Token};

use super::endpoints::side_of;
use super::world::{Stream, World};
use super::{FIRST, PATIENCE, SOON, is_open};
use crate::{Origin, Side};

pub(super) fn frame(message: &Message<'_>) -> Vec<u8> {
    let mut out = [0; MAX_FRAME];
    let length = message.encode(&mut out).unwrap();
    out[..length].to_vec()
}

pub(super) fn hello(version: u8) -> Hello<'static> {
    Hello {
        min_version: version,
        max_version: version,
        features: Features::default(),
        boot_id: BootId([77; 16]),
        incarnation: Incarnation(4711),
        port: 0,
        unix_name: "",
    }
}

/// A raw stream that has sent Hello.
fn greeted(world: &mut World, to: usize, unix: bool) -> usize {
    let stream = world.raw(to, unix);
    world.write(stream, frame(&Message::Hello(hello(1))));
    world.run(SOON);
    world.read(stream);
    stream
}

#[test]
fn wrong_messages_close_their_connection_and_nothing_else() {
    let mut world = World::new(16);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    let mut junk = frame(&Message::Heartbeat { counter: 1 });
    junk[5] = 200;
    let known = SessionRef {
        session: SessionNum(1),
        token: Token(1),
    };
    let wrong = [
        junk,
        frame(&Message::HeartbeatAck { counter: 5 }),
        frame(&Message::Hello(hello(1))),
        frame(&Message::HelloAck(hello(1))),
    ];
    for frame in wrong {
        let stream = greeted(&mut world, server, false);
        world.write(stream, frame);
        world.run(SOON);
        assert!(world.is_closed(stream));
    }
    let early = [
        Message::Heartbeat { counter: 1 },
        Message::Disconnect(known),
    ];
    for message in early {
        let stream = world.raw(server, false);
        world.write(stream, frame(&message));
        world.run(SOON);
        assert!(world.is_closed(stream));
    }
    assert_eq!(world.plane(server).counters().bad_messages, 6);
    assert!(is_open(world.seen(client, key)));
}

#[test]
fn another_version_gets_an_answer_that_names_it() {
    let mut world = World::new(17);
    let server = world.node(1, 1);
    let stream = world.raw(server, false);
    world.write(stream, frame(&Message::Hello(hello(9))));
    world.run(SOON);
    let goodbye = frame(&Message::Goodbye {
        reason: GoodbyeReason::Version,
    });
    assert_eq!(world.read(stream), [goodbye]);
    assert!(world.is_closed(stream));
    assert_eq!(world.plane(server).counters().version_mismatches, 1);
}

#[test]
fn messages_about_others_sessions_are_only_counted() {
    let mut world = World::new(18);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    let theirs = *world.open(server).first().unwrap();
    let stream = greeted(&mut world, server, false);
    // The name is right, but the session belongs to another connection.
    let named = SessionRef {
        session: theirs.session,
        token: theirs.token,
    };
    world.write(stream, frame(&Message::Disconnect(named)));
    let reason = ResetReason::Protocol;
    world.write(
        stream,
        frame(&Message::Reset {
            session: named,
            reason,
        }),
    );
    world.run(SOON);
    assert!(is_open(world.seen(server, theirs)));
    assert!(is_open(world.seen(client, key)));
    assert_eq!(world.plane(server).counters().unknown_sessions, 2);
    assert!(!world.is_closed(stream));
}

#[test]
fn silent_connections_end_in_time_and_never_fill_the_tables() {
    let mut world = World::new(19);
    let server = world.node(1, 1);
    let limit = world.config.max_half_open;
    for _ in 0..10_000 {
        world.raw(server, false);
        assert!(world.plane(server).link_count() <= limit);
        world.streams.retain(Stream::is_open);
        world.streams.truncate(1);
    }
    assert!(world.plane(server).counters().half_open_evicted >= 9_900);
    let client = world.node(2, 1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    world.run(Nanos::from_secs(2));
    assert_eq!(world.plane(server).link_count(), 1);
}

#[test]
fn connections_that_greet_and_do_nothing_make_room() {
    let mut world = World::new(20);
    world.config.max_links = 8;
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    for _ in 0..50 {
        greeted(&mut world, server, false);
        assert!(world.plane(server).link_count() <= 8);
    }
    assert!(
        is_open(world.seen(client, key)),
        "the connection with a session stays"
    );
}

#[test]
fn requests_without_an_answer_are_bounded() {
    let mut world = World::new(21);
    let server = world.node(1, 1);
    world.nodes[server].mute = true;
    let stream = greeted(&mut world, server, false);
    let limit = world.config.max_pending_per_link;
    for attempt in 0..u64::try_from(limit).unwrap() + 50 {
        let key = world.session(server, 0);
        let side: Side<u64> = side_of(key, Vec::new());
        let attempt = AttemptId(attempt);
        assert!(side.send_as(EndpointUid([1; 16]), false, |client, _| {
            world.write(
                stream,
                frame(&Message::Connect(Connect {
                    attempt,
                    target: FIRST,
                    client,
                })),
            );
            true
        }));
        // A live peer acknowledges heartbeats.
        world.run(Nanos::from_micros(200));
    }
    assert_eq!(world.plane(server).tickets.len(), limit);
    assert_eq!(world.plane(server).counters().busy_refusals, 50);
    world.run(Nanos::from_secs(2));
    assert!(
        world.is_closed(stream),
        "the peer acknowledges no heartbeats"
    );
    assert!(world.plane(server).tickets.is_empty());
}

#[test]
fn a_message_without_its_announced_descriptors_closes_its_connection() {
    let mut world = World::new(22);
    let server = world.node(1, 1);
    let stream = greeted(&mut world, server, true);
    let key = world.session(server, 0);
    let side = side_of(key, vec![1, 2]);
    let attempt = AttemptId(1);
    // The message announces two descriptors, but none came with it.
    side.send_as(EndpointUid([1; 16]), true, |client, _| {
        world.write(
            stream,
            frame(&Message::Connect(Connect {
                attempt,
                target: FIRST,
                client,
            })),
        );
        true
    });
    world.run(SOON);
    assert!(world.is_closed(stream));
}

/// The process at the other end of a client's TCP connection claims another's UNIX socket.
#[test]
fn a_process_leads_no_client_to_another_process_of_its_host() {
    for host in [2, 1] {
        let mut world = World::new(31);
        let (client, victim) = (world.node(1, 1), world.node(1, 1));
        let impostor = world.impostor(host, victim);
        let key = world.connect(client, impostor, FIRST, PATIENCE);
        world.run(SOON);
        assert!(is_open(world.seen(client, key)));
        assert_eq!(world.open(impostor).len(), 1, "the session is over TCP");
        assert_eq!(world.plane(client).counters().upgrades, 0);
        assert_eq!(world.plane(victim).link_count(), 0);
        // The client has dialled the socket if the other end is on its host. The process at the
        // socket had not received the nonce.
        let asked = u64::from(host == 1);
        assert_eq!(world.plane(victim).counters().bad_messages, asked);
    }
}

#[test]
fn a_unix_socket_takes_only_nonces_that_came_over_tcp_from_its_own_user() {
    let mut world = World::new(32);
    let server = world.node(1, 1);
    let nonce = frame(&Message::Nonce { nonce: 5 });
    let other = frame(&Message::Nonce { nonce: 6 });
    let mut greeted = |origin, said: &[u8]| {
        let stream = world.raw_from(server, origin);
        world.write(stream, frame(&Message::Hello(hello(1))));
        world.run(SOON);
        world.read(stream);
        world.write(stream, said.to_vec());
        world.run(SOON);
        (world.read(stream), world.is_closed(stream))
    };
    let unix = Origin::Process(3);
    let (_, refused) = greeted(unix, &nonce);
    assert!(refused, "the process has received no nonce");
    for stranger in strangers() {
        let (said, refused) = greeted(stranger, &nonce);
        assert_eq!((said, refused), (vec![nonce.clone()], false));
        let (_, refused) = greeted(unix, &nonce);
        assert!(refused, "{stranger:?} could pass it on");
    }
    assert_eq!(
        greeted(Origin::OwnUser, &nonce).0,
        std::slice::from_ref(&nonce)
    );
    let (_, refused) = greeted(unix, &other);
    assert!(refused, "this is another nonce");
    let (said, refused) = greeted(unix, &nonce);
    assert_eq!((said, refused), (vec![nonce.clone()], false));
}

/// The origins of processes that cannot share memory with this one.
fn strangers() -> [Origin; 3] {
    let elsewhere = Origin::V4([10, 0, 0, 2].into());
    [Origin::User(7), Origin::UnknownUser, elsewhere]
}

/// The plane searches all links for each nonce, so a second nonce is refused.
#[test]
fn a_connection_has_one_nonce() {
    let mut world = World::new(38);
    let server = world.node(1, 1);
    for origin in strangers().into_iter().chain([Origin::OwnUser]) {
        let stream = world.raw_from(server, origin);
        world.write(stream, frame(&Message::Hello(hello(1))));
        for nonce in [5, 6] {
            assert!(!world.is_closed(stream), "{origin:?}");
            world.write(stream, frame(&Message::Nonce { nonce }));
            world.run(SOON);
        }
        assert!(world.is_closed(stream), "{origin:?}");
    }
}

#[test]
fn a_stranger_learns_neither_boot_id_nor_socket() {
    let mut world = World::new(33);
    let server = world.node(1, 1);
    let strangers = strangers().map(|origin| (origin, 0, false));
    for (origin, boot, has_name) in strangers.into_iter().chain([(Origin::OwnUser, 1, true)]) {
        let stream = world.raw_from(server, origin);
        world.write(stream, frame(&Message::Hello(hello(1))));
        world.run(SOON);
        let said = world.read(stream);
        let Ok(Message::HelloAck(hello)) = Message::decode(&said[0]) else {
            panic!("no answer to hello")
        };
        assert_eq!(hello.boot_id, BootId([boot; 16]));
        assert_eq!(!hello.unix_name.is_empty(), has_name);
    }
}

#[test]
fn a_look_up_of_an_unknown_endpoint_is_refused() {
    let mut world = World::new(27);
    let server = world.node(1, 0);
    let stream = greeted(&mut world, server, false);
    let attempt = AttemptId(3);
    let lookup = Lookup {
        attempt,
        target: EndpointIndex::ANY,
    };
    world.write(stream, frame(&Message::Lookup(lookup)));
    world.run(SOON);
    let frames = world.read(stream);
    let Ok(Message::Refuse(refuse)) = Message::decode(&frames[0]) else {
        panic!("no refusal")
    };
    assert_eq!(
        (refuse.attempt, refuse.code),
        (attempt, RefuseCode::NoSuchEndpoint)
    );
}

/// The peer reads nothing, and sends the acknowledgements that would be right if heartbeats were
/// numbered consecutively.
#[test]
fn a_peer_that_reads_nothing_does_not_pass_as_alive() {
    let mut world = World::new(28);
    let server = world.node(1, 1);
    let stream = greeted(&mut world, server, false);
    let interval = world.config.heartbeat.interval();
    world.run(interval);
    for counter in 1..=30 {
        world.write(stream, frame(&Message::HeartbeatAck { counter }));
        world.run(interval);
    }
    assert!(world.is_closed(stream));
}
