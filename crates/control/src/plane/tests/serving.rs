//! Announcements of services: which peers get them and when, and which sessions are refused (rule
//! C14).

use dunlin_wire::control::{Features, Serving};

use super::*;

const TWO: Serving = Serving {
    draining: false,
    endpoints: 2,
    health: None,
};
const DRAINS: Serving = Serving {
    draining: true,
    endpoints: 0,
    health: None,
};

/// Two endpoints serve, and the last of four answers health.
const WITH_HEALTH: Serving = Serving {
    health: Some(HEALTH),
    ..TWO
};
const HEALTH: EndpointIndex = EndpointIndex(3);

/// A client and a server with four endpoints, of one host or of two.
fn pair(client_host: u8) -> (World, usize, usize) {
    let mut world = World::new(7);
    let (client, server) = (world.node(client_host, 1), world.node(2, 4));
    (world, client, server)
}

fn said(world: &World, node: usize, key: SessionKey) -> Vec<Serving> {
    let all = world.nodes[node].served.iter();
    all.filter(|(of, ..)| *of == key)
        .map(|(.., serving)| *serving)
        .collect()
}

fn refusal(world: &World, node: usize, key: SessionKey) -> Option<RefuseCode> {
    match world.seen(node, key) {
        Some(Seen::Failed(ConnectFailure::Refused(code))) => Some(code),
        _ => None,
    }
}

#[test]
fn peers_learn_what_a_process_serves_with_each_session_and_after_a_change() {
    for client_host in [1, 2] {
        let (mut world, client, server) = pair(client_host);
        world.plane(server).serve(TWO);
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(SOON);
        assert_eq!(said(&world, client, key), [TWO]);
        let second = world.connect(client, server, FIRST, PATIENCE);
        world.run(SOON);
        world.plane(server).serve(DRAINS);
        world.run(SOON);
        for key in [key, second] {
            assert_eq!(said(&world, client, key), [TWO, DRAINS]);
            assert!(
                is_open(world.seen(client, key)),
                "the session's calls may continue"
            );
        }
        let process = world.plane(server).identity().incarnation;
        assert!(world.nodes[client].served.iter().all(|it| it.1 == process));
        assert!(world.nodes[server].served.is_empty());
    }
}

#[test]
fn a_process_that_announces_nothing_is_not_reported() {
    let (mut world, client, server) = pair(1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    assert_eq!(said(&world, client, key), []);
}

#[test]
fn a_process_that_drains_refuses_sessions_at_once() {
    let (mut world, client, server) = pair(1);
    world.plane(server).serve(DRAINS);
    for target in [FIRST, EndpointIndex::ANY] {
        let key = world.connect(client, server, target, PATIENCE);
        world.run(SOON);
        assert_eq!(refusal(&world, client, key), Some(RefuseCode::Closing));
    }
    // The endpoint of this session is found before the drain.
    world.plane(server).serve(TWO);
    let key = world.connect(client, server, FIRST, PATIENCE);
    while world.nodes[client].met.is_empty() {
        world.run(Nanos::from_micros(10));
    }
    world.plane(server).serve(DRAINS);
    world.run(SOON);
    assert_eq!(refusal(&world, client, key), Some(RefuseCode::Closing));
}

#[test]
fn a_client_that_asks_for_any_endpoint_gets_one_that_serves() {
    let (mut world, client, server) = pair(1);
    world.plane(server).serve(TWO);
    let mut found = Vec::new();
    for _ in 0..6 {
        let key = world.connect(client, server, EndpointIndex::ANY, PATIENCE);
        world.run(SOON);
        assert!(is_open(world.seen(client, key)));
        found.push(world.nodes[client].met.pop().unwrap().index.unwrap().0);
    }
    assert_eq!(found, [0, 1, 0, 1, 0, 1]);
    // Clients that name the other endpoints reach them.
    let key = world.connect(client, server, EndpointIndex(3), PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
}

#[test]
fn a_process_of_an_old_release_gets_no_announcement() {
    let (mut world, client, server) = pair(1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    for link in world.plane(server).links.values_mut() {
        link.peer.as_mut().unwrap().features = Features::INQUIRY;
    }
    world.plane(server).serve(DRAINS);
    world.run(SOON);
    assert_eq!(said(&world, client, key), []);
}

#[test]
fn a_process_without_the_bit_of_health_does_not_learn_that_endpoint() {
    let (mut world, client, server) = pair(1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    world.plane(server).serve(WITH_HEALTH);
    world.run(SOON);
    for link in world.plane(server).links.values_mut() {
        link.peer.as_mut().unwrap().features = Features::SERVING;
    }
    let drains = Serving {
        health: Some(HEALTH),
        ..DRAINS
    };
    world.plane(server).serve(drains);
    world.run(SOON);
    assert_eq!(said(&world, client, key), [WITH_HEALTH, DRAINS]);
}

#[test]
fn the_endpoint_of_health_takes_sessions_during_a_drain_but_only_by_its_index() {
    let (mut world, client, server) = pair(1);
    world.plane(server).serve(WITH_HEALTH);
    for _ in 0..4 {
        let key = world.connect(client, server, EndpointIndex::ANY, PATIENCE);
        world.run(SOON);
        assert!(is_open(world.seen(client, key)));
        let found = world.nodes[client].met.pop().unwrap().index;
        assert_ne!(found, Some(HEALTH));
    }
    world.plane(server).serve(Serving {
        health: Some(HEALTH),
        ..DRAINS
    });
    let key = world.connect(client, server, HEALTH, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert_eq!(refusal(&world, client, key), Some(RefuseCode::Closing));
}

#[test]
fn an_endpoint_that_never_answers_does_not_hide_the_services_of_its_process() {
    let (mut world, client, server) = pair(1);
    world.nodes[server].mute = true;
    world.plane(server).serve(WITH_HEALTH);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert_eq!(said(&world, client, key), [WITH_HEALTH]);
    world.plane(server).serve(DRAINS);
    world.run(SOON);
    assert_eq!(said(&world, client, key), [WITH_HEALTH, DRAINS]);
    assert!(!is_open(world.seen(client, key)));
}

#[test]
fn a_process_with_many_announcements_can_still_announce_a_drain() {
    let (mut world, client, server) = pair(1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    for endpoints in 1..20 {
        let draining = false;
        world.plane(server).serve(Serving {
            draining,
            endpoints,
            health: None,
        });
    }
    world.plane(server).serve(DRAINS);
    world.run(SOON);
    let said = said(&world, client, key);
    assert_eq!((said.len(), said.last()), (8, Some(&DRAINS)));
}

#[test]
fn a_peer_that_announces_without_end_is_cut_off() {
    let (mut world, client, server) = pair(1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    // A correct process makes no more announcements than allowed.
    for turn in 0..20 {
        world.plane(server).serve([TWO, DRAINS][turn % 2]);
    }
    world.run(SOON);
    assert_eq!(said(&world, client, key).len(), 8);
    assert!(is_open(world.seen(client, key)));
    // A forger makes one more.
    let link = *world.plane(client).links.keys().next().unwrap();
    let mut out = [0; MAX_FRAME];
    let len = Message::Serving(TWO).encode(&mut out).unwrap();
    let now = world.now;
    let plane = world.plane(client);
    plane.on_frame(link, &out[..len], &mut Vec::new(), now);
    assert_eq!(plane.counters().bad_messages, 1);
    world.run(SOON);
    assert!(!is_open(world.seen(client, key)));
}
