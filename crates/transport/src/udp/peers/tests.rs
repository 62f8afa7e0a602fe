//! Tests of `peers`: uses, ids that do not come back soon, and a model.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const SHAPE: Shape = Shape {
    datagram: 1472,
    pack: true,
    segment: true,
};

fn name(n: u16) -> (EndpointUid, SocketAddr) {
    (
        EndpointUid([n.to_le_bytes()[0]; 16]),
        SocketAddr::from(([127, 0, 0, 1], 1 + n)),
    )
}

fn info(n: u8) -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([n; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some([127, 0, 0, 1].into()),
    }
}

fn add(peers: &mut Peers, n: u16) -> Option<PeerId> {
    let (endpoint, addr) = name(n);
    peers.add(endpoint, addr, Peer::new(addr, SHAPE, 65536, 1440))
}

#[test]
fn the_same_endpoint_is_the_same_peer_until_its_last_use_ends() {
    let mut peers = Peers::new(10);
    let id = add(&mut peers, 1).unwrap();
    assert_eq!(add(&mut peers, 1), Some(id));
    assert_ne!(add(&mut peers, 2), Some(id));
    peers.release(id);
    assert!(peers.get(id).is_some());
    peers.release(id);
    assert!(peers.get(id).is_none());
    peers.release(id);
    peers.remove(id);
    assert_ne!(add(&mut peers, 1), Some(id));
}

#[test]
fn removal_ends_all_uses() {
    let mut peers = Peers::new(10);
    let id = add(&mut peers, 1).unwrap();
    add(&mut peers, 1).unwrap();
    peers.remove(id);
    assert!(peers.get(id).is_none());
    let again = add(&mut peers, 1).unwrap();
    peers.remove(id);
    assert!(
        peers.get(again).is_some(),
        "an old id must not remove a new peer"
    );
}

#[test]
fn a_restarted_endpoint_under_the_same_address_is_another_peer() {
    let mut peers = Peers::new(10);
    let addr = name(1).1;
    let old = add(&mut peers, 1).unwrap();
    let reborn = EndpointUid([99; 16]);
    let new = peers
        .add(reborn, addr, Peer::new(addr, SHAPE, 65536, 1440))
        .unwrap();
    assert_ne!(old, new);
    peers.remove(old);
    assert!(peers.get(new).is_some());
}

/// A claim is added before the honest peer, and is removed while that peer is in use.
#[test]
fn a_claim_that_is_not_proven_changes_no_packet_of_the_peer_it_names() {
    let (endpoint, addr) = name(1);
    let claim = Peer {
        foreign: true,
        ..Peer::new(addr, SHAPE, 100, 40)
    };
    for foreign in [false, true] {
        let mut peers = Peers::new(10);
        let claimed = peers.add(endpoint, addr, claim.clone()).unwrap();
        let honest = Peer {
            foreign,
            ..Peer::new(addr, SHAPE, 65536, 1440)
        };
        let id = peers.add(endpoint, addr, honest.clone()).unwrap();
        let again = peers.add(endpoint, addr, honest.clone()).unwrap();
        assert_eq!(id, again, "the peer's own sessions share its id");
        peers.add(endpoint, addr, claim.clone()).unwrap();
        let kept = peers.get(id).unwrap();
        assert_eq!((kept.shape, kept.data_size), (honest.shape, 1440));
        assert_eq!(
            (kept.max_packet, kept.foreign),
            (65536.min(MAX_DATAGRAM_BYTES), foreign)
        );
        peers.remove(claimed);
        assert!(peers.get(id).is_some());
    }
}

#[test]
fn an_id_does_not_come_back_soon() {
    let mut peers = Peers::new(1 << 16);
    let first = add(&mut peers, 1).unwrap();
    peers.release(first);
    for _ in 0..100_000 {
        let id = add(&mut peers, 2).unwrap();
        assert_ne!(id, first);
        assert_eq!(id.0 >> 31, 0, "the top bit belongs to `auto`");
        peers.release(id);
    }
    assert!(peers.get(first).is_none());
}

#[test]
fn peers_and_offers_are_limited() {
    let mut peers = Peers::new(2);
    let ids: Vec<_> = (0..2).map(|n| add(&mut peers, n).unwrap()).collect();
    assert_eq!(add(&mut peers, 2), None);
    peers.release(ids[0]);
    assert!(add(&mut peers, 2).is_some());

    let first = peers.begin_offer(&info(1)).unwrap();
    let second = peers.begin_offer(&info(2)).unwrap();
    assert_eq!(peers.begin_offer(&info(3)), None);
    assert_eq!(peers.end_offer(&first), Some(info(1)));
    assert_eq!(peers.end_offer(&first), None);
    assert_eq!(peers.end_offer(&second), Some(info(2)));
}

#[test]
fn invented_ids_find_nothing() {
    let mut peers = Peers::new(10);
    add(&mut peers, 1).unwrap();
    for id in [1, 1 << INDEX_BITS, TOP_BIT | 1, u32::MAX] {
        assert!(peers.get(PeerId(id)).is_none());
        peers.release(PeerId(id));
        peers.remove(PeerId(id));
    }
}

#[test]
fn a_peer_with_small_buffers_gets_small_datagrams() {
    let far = "192.0.2.1:9".parse().expect("an address");
    assert!(!Peer::new(far, SHAPE, 1000, 900).loopback);
    let near = "[::ffff:127.0.0.1]:9".parse().expect("an address");
    assert!(Peer::new(near, SHAPE, 1000, 900).loopback);
    let peer = Peer::new(name(1).1, SHAPE, 1000, 900);
    assert_eq!((peer.shape.datagram, peer.max_packet), (1000, 1000));
    let peer = Peer::new(name(1).1, SHAPE, u32::MAX, 1440);
    assert_eq!(
        (peer.shape.datagram, peer.max_packet),
        (1472, MAX_DATAGRAM_BYTES)
    );
}

#[test]
fn datagrams_have_room_for_a_full_packet_so_that_several_are_one_message() {
    let peer = Peer::new(name(1).1, SHAPE, u32::MAX, 16_320);
    assert_eq!(peer.shape.datagram, 16_320 + 24);
}

proptest! {
    #[test]
    fn uses_are_counted_as_in_a_model(
        ops in prop::collection::vec((0..3_u8, 0..6_u16), 1..400),
    ) {
        let mut peers = Peers::new(4);
        let mut model: HashMap<u16, (PeerId, u32)> = HashMap::new();
        for (op, n) in ops {
            match (op, model.get_mut(&n)) {
                (0, Some((id, uses))) => {
                    prop_assert_eq!(add(&mut peers, n), Some(*id));
                    *uses += 1;
                }
                (0, None) => match add(&mut peers, n) {
                    Some(id) => drop(model.insert(n, (id, 1))),
                    None => prop_assert_eq!(model.len(), 4),
                },
                (1, Some((id, uses))) => {
                    peers.release(*id);
                    *uses -= 1;
                }
                (2, Some((id, uses))) => {
                    peers.remove(*id);
                    *uses = 0;
                }
                _ => {}
            }
            if model.get(&n).is_some_and(|(_, uses)| *uses == 0) {
                let (id, _) = model.remove(&n).unwrap();
                prop_assert!(peers.get(id).is_none());
            }
            for (n, (id, _)) in &model {
                let peer = peers.get(*id);
                prop_assert_eq!(peer.map(|peer| peer.addr), Some(RawAddr::new(name(*n).1)));
            }
        }
    }
}

#[test]
fn reach_describes_the_peer_and_shows_a_mapped_address_as_ipv4() {
    let mut peers = Peers::new(10);
    let mapped = "[::ffff:10.0.0.9]:70".parse().unwrap();
    let peer = Peer::new(mapped, SHAPE, 1500, 1440);
    let id = peers.add(EndpointUid([1; 16]), mapped, peer).unwrap();
    let reach = peers.reach(id).unwrap();
    assert_eq!(reach.address, "10.0.0.9:70".parse().unwrap());
    assert_eq!(
        (reach.datagram, reach.packet, reach.pack),
        (1472, 1500, true)
    );
    assert_eq!(reach.place, place_of(id));
    let other = add(&mut peers, 2).unwrap();
    assert_ne!(peers.reach(other).unwrap().place, reach.place);
    peers.remove(id);
    assert_eq!(peers.reach(id), None);
}

#[test]
fn only_a_peer_that_is_alone_and_sends_to_one_of_our_addresses_may_be_tied() {
    let mut peers = Peers::new(10);
    let add_at = |peers: &mut Peers, n: u16, own: u8| {
        let (endpoint, addr) = name(n);
        let mut peer = Peer::new(addr, SHAPE, 65536, 1440);
        peer.own = Some([127, 0, 0, own].into());
        peers.add(endpoint, addr, peer).unwrap()
    };
    assert_eq!(peers.only(), None);
    let first = add_at(&mut peers, 1, 1);
    let aim = peers.only().unwrap();
    assert_eq!(aim.peer, RawAddr::new(name(1).1));
    assert_eq!(add_at(&mut peers, 1, 1), first);
    assert_eq!(peers.only(), Some(aim));
    let second = add_at(&mut peers, 2, 1);
    assert_eq!(peers.only(), None);
    peers.release(second);
    assert_eq!(peers.only(), Some(aim));
    let pending = peers.begin_offer(&info(3)).unwrap();
    assert_eq!(peers.only(), None);
    peers.end_offer(&pending);
    assert_eq!(peers.only(), Some(aim));
    // Another session of the same peer leads to another of our addresses.
    assert_eq!(add_at(&mut peers, 1, 2), first);
    assert_eq!(peers.only(), None);
}
