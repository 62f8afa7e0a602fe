//! The control plane against others of its kind, and against those who break its rules.

mod random;
mod world;

use dunlin_wire::control::{
    BootId, Connect, EndpointIndex, EndpointUid, Features, GoodbyeReason, Hello, Incarnation,
    Lookup, MAX_FRAME, Message, RefuseCode, ResetReason, SessionRef,
};
use dunlin_wire::{SessionNum, Token};

use super::*;
use crate::control::{ConnectFailure, Side};
use crate::error::CloseReason;
use world::{Seen, World};

const PATIENCE: Nanos = Nanos::from_secs(5);
const FIRST: EndpointIndex = EndpointIndex(0);

/// Long enough for every handshake, shorter than any time-out.
const SOON: Nanos = Nanos::from_millis(20);

fn is_open(seen: Option<Seen>) -> bool {
    matches!(seen, Some(Seen::Open { .. }))
}

fn frame(message: &Message<'_>) -> Vec<u8> {
    let mut out = [0; MAX_FRAME];
    let length = message.encode(&mut out).unwrap();
    out[..length].to_vec()
}

fn hello(version: u8) -> Hello<'static> {
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

/// A raw stream that has said hello.
fn greeted(world: &mut World, to: usize, unix: bool) -> usize {
    let stream = world.raw(to, unix).unwrap();
    world.write(stream, frame(&Message::Hello(hello(1))));
    world.run(SOON);
    world.read(stream);
    stream
}

#[test]
fn a_session_is_made_between_hosts_and_both_sides_name_it_alike() {
    let mut world = World::new(1);
    let (client, server) = (world.node(1, 1), world.node(2, 2));
    let key = world.connect(client, server, EndpointIndex(1), PATIENCE);
    world.run(SOON);
    let Some(Seen::Open { remote }) = world.seen(client, key) else {
        panic!("not open")
    };
    let theirs: Vec<_> = world.open(server).into_iter().collect();
    assert_eq!(theirs.len(), 1);
    assert_eq!((theirs[0].session, theirs[0].token), remote);
    assert_eq!(theirs[0].endpoint, EndpointIndex(1));
    assert_eq!(world.plane(client).counters().upgrades, 0);
    assert!(world.nodes[server].fds.is_empty());
}

#[test]
fn processes_on_one_host_move_to_the_unix_socket_and_pass_descriptors() {
    let mut world = World::new(2);
    let (client, server) = (world.node(1, 1), world.node(1, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    assert_eq!(world.plane(client).counters().upgrades, 1);
    assert_eq!(world.plane(client).link_count(), 1);
    assert_eq!(world.plane(server).link_count(), 1);
    assert_eq!(
        (world.nodes[server].fds.len(), world.nodes[client].fds.len()),
        (1, 1)
    );
}

#[test]
fn without_a_unix_socket_the_tcp_connection_serves() {
    let mut world = World::new(3);
    world.no_unix = true;
    let (client, server) = (world.node(1, 1), world.node(1, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    assert!(world.nodes[server].fds.is_empty());
}

#[test]
fn an_endpoint_connects_to_another_of_its_own_process() {
    let mut world = World::new(4);
    let node = world.node(1, 2);
    let key = world.connect(node, node, EndpointIndex(1), PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(node, key)));
    assert_eq!(world.open(node).len(), 2);
}

#[test]
fn connect_may_come_before_the_server_and_before_its_endpoint() {
    let mut world = World::new(5);
    let (client, server) = (world.node(1, 1), world.node(2, 0));
    world.kill(server);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(Nanos::from_secs(1));
    assert_eq!(world.seen(client, key), Some(Seen::Connecting));
    world.start(server, 0);
    world.run(Nanos::from_secs(1));
    assert_eq!(world.seen(client, key), Some(Seen::Connecting));
    world
        .plane(server)
        .add_endpoint(None, EndpointUid([9; 16]))
        .unwrap();
    world.run(Nanos::from_millis(200));
    assert!(is_open(world.seen(client, key)));
}

#[test]
fn a_deadline_ends_an_attempt_with_what_is_known() {
    let mut world = World::new(6);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    world.nodes[server].mute = true;
    let patience = Nanos::from_millis(300);
    let silent = world.connect(client, server, FIRST, patience);
    let no_such = world.connect(client, server, EndpointIndex(5), patience);
    let nobody = world.connect(client, 99, FIRST, patience);
    world.run(Nanos::from_millis(299));
    assert_eq!(world.seen(client, silent), Some(Seen::Connecting));
    world.run(Nanos::from_millis(2));
    let failed = |key| world.seen(client, key);
    assert_eq!(
        failed(silent),
        Some(Seen::Failed(ConnectFailure::TimedOut(None)))
    );
    let last = Some(RefuseCode::NoSuchEndpoint);
    assert_eq!(
        failed(no_such),
        Some(Seen::Failed(ConnectFailure::TimedOut(last)))
    );
    assert_eq!(
        failed(nobody),
        Some(Seen::Failed(ConnectFailure::Unreachable))
    );
}

#[test]
fn a_final_refusal_ends_an_attempt_at_once() {
    let mut world = World::new(7);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    world.nodes[server].mute = true;
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    let now = world.now;
    let ticket = *world.plane(server).tickets.keys().next().unwrap();
    let code = RefuseCode::TooManySessions;
    world
        .plane(server)
        .on_command(Command::Refuse { ticket, code }, now);
    world.run(SOON);
    assert_eq!(
        world.seen(client, key),
        Some(Seen::Failed(ConnectFailure::Refused(code)))
    );
}

#[test]
fn a_disconnect_reaches_the_other_side_in_both_directions() {
    let mut world = World::new(8);
    let (client, server) = (world.node(1, 1), world.node(1, 1));
    for by_server in [false, true] {
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(SOON);
        let theirs = *world.open(server).first().unwrap();
        let (from, own, other, seen_at) = if by_server {
            (server, theirs, key, client)
        } else {
            (client, key, theirs, server)
        };
        world.disconnect(from, own);
        world.run(SOON);
        let closed = Some(Seen::Closed(CloseReason::Disconnected));
        assert_eq!(world.seen(seen_at, other), closed);
        assert_eq!(world.plane(client).session_count(), 0);
        assert_eq!(world.plane(server).session_count(), 0);
    }
}

#[test]
fn a_session_abandoned_while_it_was_granted_ends_at_both_sides() {
    let mut world = World::new(9);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    // At some of these moments the grant is on its way.
    for micros in (0..1_000).step_by(25) {
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(Nanos::from_micros(micros));
        world.disconnect(client, key);
        world.run(SOON);
        assert_eq!(world.plane(client).session_count(), 0);
        assert_eq!(world.plane(server).session_count(), 0);
        assert!(world.open(server).is_empty(), "after {micros} us");
    }
}

#[test]
fn a_dead_peer_closes_its_sessions_and_no_others() {
    let mut world = World::new(10);
    let (client, dies, lives) = (world.node(1, 1), world.node(2, 1), world.node(3, 1));
    let lost = world.connect(client, dies, FIRST, PATIENCE);
    let kept = world.connect(client, lives, FIRST, PATIENCE);
    world.run(SOON);
    world.kill(dies);
    world.run(SOON);
    assert_eq!(
        world.seen(client, lost),
        Some(Seen::Closed(CloseReason::PeerFailed))
    );
    assert!(is_open(world.seen(client, kept)));
    // A new process under the same address accepts new sessions.
    world.start(dies, 1);
    let again = world.connect(client, dies, FIRST, PATIENCE);
    world.run(Nanos::from_millis(200));
    assert!(is_open(world.seen(client, again)));
}

#[test]
fn loss_in_one_direction_is_a_failure_at_both_ends() {
    for direction in [0, 1] {
        let mut world = World::new(11);
        let (client, server) = (world.node(1, 1), world.node(2, 1));
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(Nanos::from_secs(3));
        let stream = world
            .streams
            .iter()
            .position(world::Stream::is_open)
            .unwrap();
        world.streams[stream].cut[direction] = true;
        world.run(world.config.heartbeat.timeout);
        let reason = |seen| matches!(seen, Some(Seen::Closed(_)));
        assert!(reason(world.seen(client, key)), "direction {direction}");
        assert!(world.open(server).is_empty(), "direction {direction}");
    }
}

#[test]
fn who_was_stopped_finds_its_sessions_reset_and_can_make_new_ones() {
    let mut world = World::new(12);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(Nanos::from_secs(1));
    let theirs = *world.open(server).first().unwrap();
    world.nodes[server].stopped_until = world.now + Nanos::from_secs(3);
    world.run(Nanos::from_secs(1));
    assert_eq!(
        world.seen(client, key),
        Some(Seen::Closed(CloseReason::PeerFailed))
    );
    assert!(is_open(world.seen(server, theirs)));
    world.run(Nanos::from_secs(2) + SOON);
    assert_eq!(
        world.seen(server, theirs),
        Some(Seen::Closed(CloseReason::Reset))
    );
    let again = world.connect(client, server, FIRST, PATIENCE);
    world.run(Nanos::from_millis(200));
    assert!(is_open(world.seen(client, again)));
}

#[test]
fn a_short_stop_ends_nothing() {
    let mut world = World::new(13);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    for _ in 0..20 {
        world.run(Nanos::from_millis(777));
        world.nodes[server].stopped_until = world.now + Nanos::from_millis(400);
        world.run(Nanos::from_millis(400));
    }
    assert!(is_open(world.seen(client, key)));
    assert_eq!(world.open(server).len(), 1);
}

#[test]
fn a_link_without_sessions_goes_and_one_with_sessions_stays() {
    let mut world = World::new(14);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(Nanos::from_secs(60));
    assert_eq!(world.plane(client).link_count(), 1);
    world.disconnect(client, key);
    world.run(Nanos::from_secs(11));
    assert_eq!(world.plane(client).link_count(), 0);
    assert_eq!(world.plane(server).link_count(), 0);
    assert!(world.plane(client).routes.is_empty());
}

#[test]
fn a_closing_process_tells_everybody() {
    let mut world = World::new(15);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    let now = world.now;
    world.plane(server).shut_down(now);
    world.run(SOON);
    assert_eq!(
        world.seen(client, key),
        Some(Seen::Closed(CloseReason::Reset))
    );
    assert_eq!(world.plane(server).link_count(), 0);
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
        let stream = world.raw(server, false).unwrap();
        world.write(stream, frame(&message));
        world.run(SOON);
        assert!(world.is_closed(stream));
    }
    assert_eq!(world.plane(server).counters().bad_messages, 6);
    assert!(is_open(world.seen(client, key)));
}

#[test]
fn another_version_is_told_so() {
    let mut world = World::new(17);
    let server = world.node(1, 1);
    let stream = world.raw(server, false).unwrap();
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
    // The right name, even, but over another connection than the session was made over.
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
        world.raw(server, false).unwrap();
        assert!(world.plane(server).link_count() <= limit);
        world.streams.retain(world::Stream::is_open);
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
        "the one with a session stays"
    );
}

#[test]
fn requests_that_nobody_answers_are_bounded() {
    let mut world = World::new(21);
    let server = world.node(1, 1);
    world.nodes[server].mute = true;
    let stream = greeted(&mut world, server, false);
    let limit = world.config.max_pending_per_link;
    for attempt in 0..u64::try_from(limit).unwrap() + 50 {
        let key = world.session(server, 0);
        let side: Side<u64> = world::side_of(key, Vec::new());
        let attempt = dunlin_wire::control::AttemptId(attempt);
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
        // A peer that lives acknowledges heartbeats.
        world.run(Nanos::from_micros(200));
    }
    assert_eq!(world.plane(server).tickets.len(), limit);
    assert_eq!(world.plane(server).counters().busy_refusals, 50);
    world.run(Nanos::from_secs(2));
    assert!(world.is_closed(stream), "it acknowledges no heartbeats");
    assert!(world.plane(server).tickets.is_empty());
}

#[test]
fn descriptors_are_not_taken_from_connections_that_cannot_carry_them() {
    let mut world = World::new(22);
    let server = world.node(1, 1);
    let stream = greeted(&mut world, server, true);
    let key = world.session(server, 0);
    let side = world::side_of(key, vec![1, 2]);
    let attempt = dunlin_wire::control::AttemptId(1);
    // The message announces two descriptors and none came with it.
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

#[test]
fn any_endpoint_means_each_in_turn() {
    let mut world = World::new(23);
    let (client, server) = (world.node(1, 1), world.node(2, 3));
    for _ in 0..9 {
        world.connect(client, server, EndpointIndex::ANY, PATIENCE);
        world.run(SOON);
    }
    for endpoint in 0..3 {
        let of = |key: &&SessionKey| key.endpoint == EndpointIndex(endpoint);
        assert_eq!(world.open(server).iter().filter(of).count(), 3);
    }
}

#[test]
fn a_removed_endpoint_resets_its_sessions_and_refuses_new_ones() {
    let mut world = World::new(24);
    let (client, server) = (world.node(1, 1), world.node(2, 2));
    let lost = world.connect(client, server, FIRST, PATIENCE);
    let kept = world.connect(client, server, EndpointIndex(1), PATIENCE);
    world.run(SOON);
    let now = world.now;
    world.plane(server).remove_endpoint(FIRST, now);
    world.run(SOON);
    assert_eq!(
        world.seen(client, lost),
        Some(Seen::Closed(CloseReason::Reset))
    );
    assert!(is_open(world.seen(client, kept)));
    let late = world.connect(client, server, FIRST, Nanos::from_millis(100));
    world.run(Nanos::from_millis(200));
    let last = Some(RefuseCode::NoSuchEndpoint);
    assert_eq!(
        world.seen(client, late),
        Some(Seen::Failed(ConnectFailure::TimedOut(last)))
    );
}

#[test]
fn endpoints_get_the_index_they_ask_for_or_the_lowest() {
    let mut world = World::new(25);
    let node = world.node(1, 2);
    let plane = world.plane(node);
    let uid = EndpointUid::default();
    assert_eq!(
        plane.add_endpoint(Some(EndpointIndex(1)), uid),
        Err(AddError::Taken(EndpointIndex(1)))
    );
    assert_eq!(
        plane.add_endpoint(Some(EndpointIndex(7)), uid),
        Ok(EndpointIndex(7))
    );
    assert_eq!(plane.add_endpoint(None, uid), Ok(EndpointIndex(2)));
    let any = plane.add_endpoint(Some(EndpointIndex::ANY), uid);
    assert_eq!(any, Err(AddError::Taken(EndpointIndex::ANY)));
}

#[test]
fn look_ups_under_way_are_bounded_and_all_are_answered() {
    let mut world = World::new(26);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let keys: Vec<_> = (0..1_000)
        .map(|_| world.connect(client, server, FIRST, PATIENCE))
        .collect();
    world.run(Nanos::from_secs(1));
    for key in keys {
        assert!(is_open(world.seen(client, key)));
    }
    assert_eq!(world.plane(server).session_count(), 1_000);
}

#[test]
fn a_look_up_of_nothing_is_refused() {
    let mut world = World::new(27);
    let server = world.node(1, 0);
    let stream = greeted(&mut world, server, false);
    let attempt = dunlin_wire::control::AttemptId(3);
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
