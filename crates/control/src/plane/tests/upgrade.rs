//! The move from TCP to a UNIX socket, with processes of two users and with a process that returns
//! no nonce.

use std::net::Ipv4Addr;

use dunlin_core::Nanos;
use dunlin_wire::control::{EndpointUid, Message};

use super::world::World;
use super::{FIRST, PATIENCE, SOON, is_open};
use crate::{Identity, LinkId, Origin, Plane};

impl World {
    /// A process that sends another process's Hello, to any host.
    pub(super) fn impostor(&mut self, host: u8, like: usize) -> usize {
        let us = self.plane(like).identity().clone();
        let index = self.node(host, 1);
        let node = &mut self.nodes[index];
        let port = node.address.port();
        let mut plane = Plane::new(self.config, Identity { port, ..us }, 1);
        plane.add_endpoint(None, EndpointUid([77; 16])).unwrap();
        node.plane = Some(plane);
        node.lies = true;
        index
    }

    /// The origin of a connection between two nodes; `None` if the other node refuses it.
    pub(super) fn origin(&self, from: usize, to: usize, unix: bool) -> Option<Origin> {
        let [from_node, to_node] = [from, to].map(|index| &self.nodes[index]);
        let same_user = from_node.user == to_node.user;
        Some(if unix {
            same_user.then_some(Origin::Process(u32::try_from(from).unwrap()))?
        } else if to_node.lies {
            Origin::OwnUser
        } else if from_node.host != to_node.host {
            Origin::of_host(Ipv4Addr::new(10, 0, 0, from_node.host).into())
        } else if same_user {
            Origin::OwnUser
        } else {
            Origin::User(from_node.user)
        })
    }

    /// Whether a node drops this frame because it returns no nonce.
    pub(super) fn withholds(&mut self, index: usize, link: LinkId, frame: &[u8]) -> bool {
        let Some(unix) = self.nodes[index].keeps_nonces else {
            return false;
        };
        let is_nonce = matches!(Message::decode(frame), Ok(Message::Nonce { .. }));
        let links = &self.nodes[index].plane.as_ref().unwrap().links;
        is_nonce
            && links
                .get(&link)
                .is_some_and(|link| link.carries_fds == unix)
    }
}

#[test]
fn a_process_of_another_user_stays_with_tcp() {
    let mut world = World::new(34);
    let (client, server) = (world.node(1, 1), world.node(1, 1));
    world.nodes[client].user = 7;
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    for node in [client, server] {
        let counters = world.plane(node).counters();
        assert_eq!((counters.upgrades, counters.bad_messages), (0, 0));
        assert!(
            !world.nodes[node].met[0].same_host,
            "the connection carries no descriptors"
        );
    }
}

#[test]
fn a_nonce_that_does_not_come_back_leaves_tcp_in_use() {
    for unix in [false, true] {
        let mut world = World::new(36);
        let (client, server) = (world.node(1, 1), world.node(1, 1));
        world.nodes[server].keeps_nonces = Some(unix);
        let key = world.connect(client, server, FIRST, PATIENCE);
        let limit = world.config.hello_timeout;
        world.run(Nanos(limit.0 - 1));
        assert!(
            !is_open(world.seen(client, key)),
            "the nonce may still come"
        );
        world.run(SOON);
        assert!(is_open(world.seen(client, key)), "over UNIX: {unix}");
        for node in [client, server] {
            assert_eq!(world.plane(node).link_count(), 1, "over UNIX: {unix}");
        }
        assert_eq!(world.plane(client).counters().upgrades, 0);
    }
}

#[test]
fn a_nonce_that_comes_back_too_late_changes_nothing() {
    let mut world = World::new(37);
    world.config.hello_timeout = Nanos::from_millis(100);
    let (client, server) = (world.node(1, 1), world.node(1, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    // The server has sent Hello, and stops before it has received the nonce.
    let has_sent = |world: &mut World| {
        let links = &world.plane(client).links;
        links.values().any(|link| link.nonce.is_some())
    };
    while !has_sent(&mut world) {
        world.run(Nanos(1_000));
    }
    world.nodes[server].stopped_until = world.now + Nanos::from_millis(300);
    world.run(Nanos::from_millis(200));
    assert!(!is_open(world.seen(client, key)));
    world.run(Nanos::from_millis(200));
    assert!(is_open(world.seen(client, key)));
    assert_eq!(world.plane(client).counters().bad_messages, 0);
    assert_eq!(world.plane(client).counters().upgrades, 0);
}
