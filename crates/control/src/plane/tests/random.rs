//! Random histories: endpoints connect and disconnect, processes die, stop and come back, and
//! messages cross in any order. In the end the two sides of every session agree.

use std::collections::BTreeSet;

use dunlin_core::Nanos;
use dunlin_wire::control::EndpointIndex;
use proptest::prelude::*;

use super::endpoints::Seen;
use super::world::World;
use crate::SessionKey;

const NODES: usize = 4;

fn act(world: &mut World, sessions: &mut Vec<(usize, SessionKey)>) {
    let node = usize::try_from(world.rng.below(4)).unwrap();
    match world.rng.below(20) {
        0..=9 if world.nodes[node].plane.is_some() => {
            let to = usize::try_from(world.rng.below(4)).unwrap();
            let target = EndpointIndex(if world.rng.below(3) == 0 { u16::MAX } else { 0 });
            let patience = Nanos::from_millis(u64::from(1 + world.rng.below(3_000)));
            let key = world.connect(node, to, target, patience);
            sessions.push((node, key));
        }
        10..=13 => {
            let open: Vec<_> = world.open(node).into_iter().collect();
            if let Some(key) = open.get(usize::try_from(world.rng.below(8)).unwrap()) {
                world.disconnect(node, *key);
            }
        }
        14 => {
            let pick = usize::try_from(world.rng.below(1_000)).unwrap();
            if let Some((node, key)) = sessions.get(pick % sessions.len().max(1)).copied()
                && world.nodes[node].plane.is_some()
                && world.seen(node, key) == Some(Seen::Connecting)
            {
                world.disconnect(node, key);
            }
        }
        15 if world.nodes[node].plane.is_some() => world.kill(node),
        16 | 17 if world.nodes[node].plane.is_none() => world.start(node, 2),
        18 => {
            let span = Nanos::from_millis(u64::from(world.rng.below(4_000)));
            world.nodes[node].stopped_until = world.now + span;
        }
        19 if !world.streams.is_empty() => {
            let pick = usize::try_from(world.rng.next_u32()).unwrap() % world.streams.len();
            let side = usize::try_from(world.rng.below(2)).unwrap();
            world.streams[pick].cut[side] = true;
        }
        _ => {}
    }
}

/// Open sessions of living nodes whose other side, as they name it, is not open at any node.
fn disagreements(world: &World) -> Vec<(usize, SessionKey)> {
    let all: BTreeSet<_> = (0..NODES)
        .flat_map(|node| world.open(node).into_iter().map(move |key| (node, key)))
        .map(|(_, key)| (key.session, key.token.0))
        .collect();
    let mut wrong = Vec::new();
    for node in 0..NODES {
        for key in world.open(node) {
            let Some(Seen::Open { remote }) = world.seen(node, key) else {
                continue;
            };
            if !all.contains(&(remote.0, remote.1.0)) {
                wrong.push((node, key));
            }
        }
    }
    wrong
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_sides_agree_in_the_end(seed in any::<u64>()) {
        let mut world = World::new(seed);
        for host in [1, 1, 2, 3] {
            world.node(host, 2);
        }
        let mut sessions = Vec::new();
        for _ in 0..120 {
            let step = if world.rng.below(4) == 0 { 400_000_000 } else { 300_000 };
            let span = Nanos(u64::from(world.rng.below(step)));
            act(&mut world, &mut sessions);
            world.run(span);
        }
        // Faults end. Every attempt has a deadline, every stop an end, every dead peer a timeout.
        for stream in &mut world.streams {
            stream.cut = [false; 2];
        }
        world.run(Nanos::from_secs(10));
        for (node, key) in sessions {
            if world.nodes[node].plane.is_some() {
                prop_assert_ne!(world.seen(node, key), Some(Seen::Connecting));
            }
        }
        prop_assert_eq!(disagreements(&world), vec![]);
        for node in 0..NODES {
            let open = world.open(node).len();
            if let Some(plane) = &world.nodes[node].plane {
                prop_assert_eq!(plane.session_count(), open);
                prop_assert!(plane.attempts.is_empty() && plane.due.is_empty());
                prop_assert!(plane.tickets.is_empty() && plane.attempt_for.is_empty());
                prop_assert_eq!(plane.routes.len(), plane.route_to.len());
                let over_links: usize = plane.links.values().map(|link| link.sessions).sum();
                prop_assert_eq!(over_links, open);
            }
        }
        // The world still works.
        for node in 0..NODES {
            if world.nodes[node].plane.is_none() {
                world.start(node, 2);
            }
        }
        let key = world.connect(0, 3, EndpointIndex::ANY, Nanos::from_secs(3));
        world.run(Nanos::from_secs(1));
        let open = matches!(world.seen(0, key), Some(Seen::Open { .. }));
        prop_assert!(open);
    }

    #[test]
    fn any_bytes_disturb_no_other_connection(seed in any::<u64>(), frames in
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..20)) {
        let mut world = World::new(seed);
        let (client, server) = (world.node(1, 1), world.node(2, 1));
        let key = world.connect(client, server, EndpointIndex(0), Nanos::from_secs(1));
        world.run(Nanos::from_millis(50));
        let stream = world.raw(server, false);
        for frame in frames {
            world.write(stream, frame);
        }
        world.run(Nanos::from_secs(2));
        prop_assert!(world.is_closed(stream));
        let open = matches!(world.seen(client, key), Some(Seen::Open { .. }));
        prop_assert!(open);
    }
}
