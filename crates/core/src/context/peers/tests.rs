//! The names of peers alone: a peer has the name that the control plane gave last, until it parts.

use super::*;

fn name(endpoint: u16) -> Peer {
    Peer {
        process: Some(SocketAddr::from(([10, 0, 0, 1], 7000))),
        endpoint: Some(endpoint),
    }
}

#[test]
fn a_peer_has_a_name_from_its_first_session_to_its_last() {
    let mut peers = Peers::default();
    let (one, other) = (PeerId(3), PeerId(4));
    assert_eq!(peers.find(one), None);
    peers.on_met(one, name(1));
    peers.on_met(other, name(2));
    assert_eq!(peers.find(one), Some(name(1)));
    peers.on_parted(one);
    assert_eq!((peers.find(one), peers.find(other)), (None, Some(name(2))));
}

#[test]
fn a_peer_that_is_met_again_has_its_new_name() {
    let mut peers = Peers::default();
    let peer = PeerId(3);
    let unknown = Peer {
        process: None,
        endpoint: None,
    };
    peers.on_parted(peer);
    peers.on_met(peer, unknown);
    peers.on_met(peer, name(9));
    assert_eq!(peers.find(peer), Some(name(9)));
    peers.on_parted(peer);
    assert_eq!(peers.find(peer), None);
}
