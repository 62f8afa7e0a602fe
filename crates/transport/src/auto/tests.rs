//! An endpoint reports once why it has no shared memory, and only for a peer of this host.

use dunlin_wire::control::EndpointUid;

use super::offer::Parts;
use super::*;
use crate::connect::{Connect, ConnectError, Offer, PeerInfo};

fn peer(same_host: bool) -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([7; 16]),
        same_host,
        same_process: false,
        proves: true,
        local: None,
        remote: (!same_host).then_some([127, 0, 0, 1].into()),
    }
}

fn without_shm() -> Halves<AutoRx, AutoTx> {
    let why = io::Error::other("no memory");
    Auto::without_shm(Chosen::open(None, udp::Options::default()).unwrap(), why)
}

#[test]
fn missing_shared_memory_is_reported_only_for_peers_of_this_host() {
    let Halves { mut rx, mut tx, .. } = without_shm();
    // The endpoint reports the reason once.
    for (same_host, is_given) in [(false, false), (true, true), (true, false)] {
        let (pending, _) = Auto::offer(&mut rx, &mut tx, &peer(same_host)).unwrap();
        Auto::abandon(&mut rx, &mut tx, pending);
        assert_eq!(Auto::take_fallback(&mut tx).is_some(), is_given);
    }
}

/// An offer whose part for shared memory no endpoint can use.
fn false_offer(udp: Offer) -> Offer {
    let udp = Parts::decode(udp).unwrap().udp;
    let shm = Some(Offer::default());
    Parts { shm, udp }.encode().unwrap()
}

#[test]
fn a_peer_of_another_host_that_offers_memory_does_not_use_up_the_warning() {
    let (mut here, mut there) = (without_shm(), without_shm());
    let mut other = Auto::open(&Options::default()).unwrap();
    for ours in [&mut here, &mut other] {
        for same_host in [false, true] {
            let elsewhere = peer(false);
            let (pending, offer) = Auto::offer(&mut there.rx, &mut there.tx, &elsewhere).unwrap();
            Auto::abandon(&mut there.rx, &mut there.tx, pending);
            let offer = false_offer(offer);
            let from = peer(same_host);
            let (id, _) = Auto::accept(&mut ours.rx, &mut ours.tx, &from, offer).unwrap();
            let why = Auto::take_fallback(&mut ours.tx);
            assert_eq!(why.is_some(), same_host, "{why:?}");
            let was_opened = ours.tx.shm.is_some();
            assert_eq!(
                matches!(why, Some(ConnectError::Os(_))),
                same_host && !was_opened
            );
            Auto::remove(&mut ours.rx, &mut ours.tx, id);
        }
    }
}
