//! Control planes that talk to each other.

mod admission;
mod endpoints;
mod hostile;
mod inquiries;
mod proofs;
mod random;
mod serving;
mod upgrade;
mod world;

use dunlin_core::CloseReason;
use dunlin_wire::control::{EndpointIndex, EndpointUid, RefuseCode};

use super::*;
use crate::ConnectFailure;
use endpoints::Seen;
use world::World;

impl<F> Plane<F> {
    /// Checks that the plane knows when to look at each link and each route.
    fn check_times(&self) {
        let links = self.links.values().map(Link::next_wakeup).min();
        assert_eq!(self.link_times.next(), links);
        let routes = self.routes.values().map(Route::next_wakeup).min();
        let routes = routes.filter(|at| *at != Nanos::MAX);
        assert_eq!(self.route_times.next(), routes);
    }

    /// Checks that the list of each connection has its sessions and no others.
    fn check_sessions(&self) {
        let of = |endpoint: &EndpointIndex| self.sessions.of(*endpoint);
        let all = self.endpoints.keys().flat_map(of);
        let linked = all.filter_map(|key| Some((self.sessions.get(key)?.link, key)));
        let linked: std::collections::BTreeSet<_> = linked.collect();
        assert_eq!(linked.len(), self.sessions.len());
        for (id, link) in self.links.iter() {
            let over = self.sessions.over(*id).map(|(key, _)| (*id, key));
            let over: std::collections::BTreeSet<_> = over.collect();
            assert_eq!(over.len(), link.sessions, "{id:?}");
            assert!(over.is_subset(&linked), "{id:?}");
        }
    }
}

const PATIENCE: Nanos = Nanos::from_secs(5);
const FIRST: EndpointIndex = EndpointIndex(0);

/// Long enough for every handshake, shorter than any timeout.
const SOON: Nanos = Nanos::from_millis(20);

fn is_open(seen: Option<Seen>) -> bool {
    matches!(seen, Some(Seen::Open { .. }))
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

/// Tests connections between hosts, on one host over TCP and over the UNIX socket, and within a
/// process.
#[test]
fn both_sides_learn_where_the_other_nexus_listens() {
    let second = EndpointIndex(1);
    for (host, no_unix) in [(2, false), (1, true), (1, false)] {
        let mut world = World::new(9);
        world.no_unix = no_unix;
        let (client, server) = (world.node(1, 1), world.node(host, 2));
        let key = world.connect(client, server, second, PATIENCE);
        world.run(SOON);
        assert!(is_open(world.seen(client, key)));
        let place = |node: usize| {
            let [peer] = &world.nodes[node].met[..] else {
                panic!("{:?}", world.nodes[node].met)
            };
            // A UNIX stream has no addresses, and packets stay within this host (rule C12).
            let over_unix = host == 1 && !no_unix;
            assert_eq!(
                (peer.remote.is_none(), peer.same_host),
                (over_unix, over_unix)
            );
            assert!(peer.remote.is_none_or(|remote| remote.is_ipv4()));
            (peer.nexus, peer.index)
        };
        assert_eq!(place(client), (Some(World::address(server)), Some(second)));
        assert_eq!(place(server), (Some(World::address(client)), None));
    }
    let mut world = World::new(9);
    let node = world.node(1, 2);
    world.connect(node, node, second, PATIENCE);
    world.run(SOON);
    let met = world.nodes[node].met.iter();
    let met: Vec<_> = met.map(|peer| (peer.nexus, peer.index)).collect();
    let here = Some(World::address(node));
    assert_eq!(met, [(here, Some(second)), (here, Some(FIRST))]);
}

#[test]
fn without_a_unix_socket_sessions_use_the_tcp_connection() {
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
fn a_deadline_ends_an_attempt_with_the_last_known_reason() {
    let mut world = World::new(6);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    world.nodes[server].mute = true;
    let patience = Nanos::from_millis(300);
    let silent = world.connect(client, server, FIRST, patience);
    let no_such = world.connect(client, server, EndpointIndex(5), patience);
    let absent = world.connect(client, 99, FIRST, patience);
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
        failed(absent),
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
fn a_process_that_stops_for_long_finds_its_sessions_reset_and_accepts_new_ones() {
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
fn a_link_ends_only_after_its_last_session() {
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
fn a_process_that_shuts_down_resets_the_sessions_of_its_peers() {
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
fn clients_that_ask_for_any_endpoint_get_each_in_turn() {
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
fn an_index_that_is_not_free_is_refused_with_the_reason() {
    let mut world = World::new(19);
    let node = world.node(1, 0);
    let plane = world.plane(node);
    let uid = EndpointUid([3; 16]);
    let says = |added: Result<_, AddError>| added.unwrap_err().to_string();
    for index in 0..EndpointIndex::ANY.0 {
        plane.add_endpoint(Some(EndpointIndex(index)), uid).unwrap();
    }
    assert_eq!(
        says(plane.add_endpoint(None, uid)),
        "all 65 535 endpoint indexes are in use"
    );
    assert_eq!(
        says(plane.add_endpoint(Some(EndpointIndex::ANY), uid)),
        "the index 65535 stands for any endpoint; choose one from 0 to 65534"
    );
    assert_eq!(
        says(plane.add_endpoint(Some(EndpointIndex(7)), uid)),
        "another endpoint has the index 7"
    );
}

#[test]
fn all_attempts_succeed_though_few_look_ups_may_be_under_way() {
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
